"""The WordPress adapter on an empty WordPress, real or not: the bench of the laws."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

from content_pipeline.adapters.cms.wordpress import WordPressCMS
from content_pipeline.adapters.cms.wordpress_pages import PageForm
from content_pipeline.adapters.cms.wordpress_rest import WordPressREST
from content_pipeline_tests.operations.small_site import clock

DEADLINE_S = 20.0

AnySite = TypeVar("AnySite", bound="Site")


class Site(Protocol):
    """A WordPress, real or not, and what its people and visitors can do there."""

    @property
    def url(self) -> str: ...

    @property
    def users(self) -> Mapping[str, str]: ...

    def as_person(
        self, method: str, route: str, document: Mapping[str, Any] | None = None
    ) -> Any: ...

    def id_at(self, path: str) -> int: ...

    def visible(self, path: str) -> str | None: ...


def connect(
    server: Site,
    *,
    user: str = "pipeline",
    password: str | None = None,
    content_type: str = "pages",
    deadline_s: float = DEADLINE_S,
    url: str | None = None,
    base_url: str | None = None,
    clock: Callable[[], Any] = clock,
    **form: Any,
) -> WordPressCMS:
    """The adapter for ``server``. Close it."""
    rest = WordPressREST(
        url or server.url,
        user=user,
        password=server.users[user] if password is None else password,
        content_type=content_type,
        deadline_s=deadline_s,
        clock=clock,
    )
    page_form = PageForm(base_url=base_url or server.url, home_path="", **form)
    return WordPressCMS(rest, page_form, content_type=content_type, clock=clock)


@dataclass(frozen=True, slots=True, kw_only=True)
class WordPressBench(Generic[AnySite]):
    """What a law works on."""

    server: AnySite
    cms: WordPressCMS
    kind: str = "pages"

    @property
    def base_url(self) -> str:
        return self.server.url

    def text_of(self, page: int) -> str:
        content = self.server.as_person("GET", f"{self.kind}/{page}?context=edit")["content"]["raw"]
        assert isinstance(content, str)
        return content

    def edit(self, path: str) -> None:
        page = self.server.id_at(path)
        content = self.text_of(page) + "\n<p>A person was here.</p>"
        self.server.as_person("POST", f"{self.kind}/{page}", {"content": content})

    def occupy(self, path: str) -> None:
        document = {
            "status": "publish",
            "title": "Theirs",
            "slug": path.strip("/"),
            "content": "<p>Ours it is not.</p>",
        }
        self.server.as_person("POST", self.kind, document)

    def delete(self, path: str) -> None:
        self.server.as_person("DELETE", f"{self.kind}/{self.server.id_at(path)}?force=true")

    def trash(self, path: str) -> None:
        self.server.as_person("DELETE", f"{self.kind}/{self.server.id_at(path)}")

    def hide(self, path: str) -> None:
        page = self.server.id_at(path)
        self.server.as_person("POST", f"{self.kind}/{page}", {"status": "draft"})

    def rename(self, path: str, to: str) -> None:
        page = self.server.id_at(path)
        self.server.as_person("POST", f"{self.kind}/{page}", {"slug": to.strip("/")})

    def visible(self, path: str) -> str | None:
        return self.server.visible(path)
