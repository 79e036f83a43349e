"""News for tests of hooks that are told what changed, and hooks opened on a loopback server."""

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing, contextmanager
from datetime import UTC, datetime

from content_pipeline.adapters.hooks.told_by_http import ToldByHTTP
from content_pipeline.adapters.http_calls import HTTPService
from content_pipeline.core.ports import HookTerms, ListedPage, SiteNews, WithdrawnPage
from content_pipeline_tests.adapters.hooks.listings import listed

NOW = datetime(2026, 3, 2, 9, 30, tzinfo=UTC)
BASE = "https://example.com"
TERMS = HookTerms(debounce_s=0, batch=100)


def clock() -> datetime:
    return NOW


def news(
    changed: Iterable[ListedPage] | None = None,
    *,
    withdrawn: Iterable[str] = (),
    base_url: str = BASE,
    delivery_id: str = "0123456789abcdef",
    site_title: str = "Countries",
) -> SiteNews:
    return SiteNews(
        site="countries",
        site_title=site_title,
        base_url=base_url,
        delivery_id=delivery_id,
        changed=tuple([listed("Austria")] if changed is None else changed),
        withdrawn=tuple(WithdrawnPage(path=path, url=base_url + path) for path in withdrawn),
    )


@contextmanager
def telling(
    url: str,
    *,
    advice: Mapping[int, str] | None = None,
    token: str | None = None,
    deadline_s: float = 5.0,
    clock: Callable[[], datetime] = clock,
) -> Iterator[ToldByHTTP]:
    """What hooks tell a service by, closed afterwards."""
    headers = {} if token is None else {"Authorization": f"Bearer {token}"}
    service = HTTPService(url, name="The service", headers=headers, deadline_s=deadline_s)
    with closing(ToldByHTTP(service=service, clock=clock, advice=advice or {})) as told:
        yield told
