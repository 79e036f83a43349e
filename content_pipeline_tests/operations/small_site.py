"""A small site of Swiss towns, and a worker's runtime for it: the real parts on a folder of ours.

What belongs here: settings with short waits, rows, and the looks at the other side's own truth.
The processes of the crash tests build their runtime here as well.
"""

import itertools
import re
import tempfile
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

from content_pipeline import site_files
from content_pipeline.adapters.cms.folder import FolderCMS
from content_pipeline.adapters.hooks.index_page import IndexPage
from content_pipeline.adapters.hooks.sitemap import SitemapFile
from content_pipeline.adapters.llm.openai_model import OpenAIModel
from content_pipeline.adapters.llm.prices import GenaiPrices
from content_pipeline.adapters.llm.profiles import provider_profile
from content_pipeline.core.cms import CMS, PublicPages
from content_pipeline.core.ports import LanguageModel, SiteHook
from content_pipeline.core.site import SiteSettings
from content_pipeline.ledger.database import Ledger
from content_pipeline.operations.runtime import SiteRuntime
from content_pipeline.site_files import Site

BASE_URL = "https://towns.example"
PROMPT = "Write a page about {{ name }}.\n\n{{ facts }}\n"
FACTS = {"name": "Name", "canton": "Canton", "population": "Population", "river": "River"}
MUST_STATE = ("name", "canton", "population")

_NAMES = ("Aarau", "Baden", "Chur", "Davos", "Elgg", "Fribourg", "Glarus", "Horgen", "Ilanz")

Row = dict[str, str]


def rows_of(count: int) -> list[Row]:
    """``count`` rows with ids ``t0``, ``t1`` …, each of a town of its own."""
    return [
        {
            "id": f"t{number}",
            "name": f"{_NAMES[number % len(_NAMES)]} {number}",
            "canton": f"Canton {number % 26}",
            "population": f"{10_000 + 37 * number:,}",
            "river": ("Aare", "Reuss", "Limmat")[number % 3],
        }
        for number in range(count)
    ]


def path_of(row: Mapping[str, str]) -> str:
    """Where the page of ``row`` stands."""
    return "/" + row["name"].lower().replace(" ", "-") + "/"


def settings_of(name: str, **changes: Any) -> SiteSettings:
    """The settings of site ``name``; ``changes`` replace keys of one section, as in a site file."""
    document: dict[str, Any] = {
        "site": name,
        "title": "Towns",
        "base_url": BASE_URL,
        "owner": "town hall",
        "topics": {"table": "towns.csv", "id": "id", "name": "name"},
        "article": {"facts": FACTS, "must_state": MUST_STATE, "rules": {"min_words": 60}},
        "generation": {
            "provider": "sandbox",
            "model": "gpt-5-mini",
            "deadline_s": 10,
            "answer_slack_s": 0.2,
            "in_flight": 4,
        },
        "cms": {"folder": "public"},
        "lane": {"lease_s": 5, "patience_s": 3, "publish_quiet_s": 0.2},
    }
    for section, values in changes.items():
        before = document.get(section)
        if isinstance(before, dict) and isinstance(values, dict):
            values = before | values
        document[section] = values
    return SiteSettings.model_validate(document)


def site_of(
    settings: SiteSettings, *, prompt: str = PROMPT, files: Mapping[str, str] | None = None
) -> Site:
    """The site of ``settings``, as if read from a file; ``files`` stand beside it, by name."""
    with tempfile.TemporaryDirectory() as folder:
        for name, text in {"prompt.md": prompt, **(files or {})}.items():
            (Path(folder) / name).write_text(text, encoding="utf-8")
        return site_files.site_of(settings, Path(folder) / "towns.yaml")


def clock() -> datetime:
    """The time."""
    return datetime.now(UTC)  # noqa: TID251 - the adapters' clock in tests


def real_model(base_url: str, **more: Any) -> OpenAIModel:
    """The real client of a sandbox provider; ``more``: its ``api`` and ``background``. Close it."""
    profile = provider_profile("sandbox")
    return OpenAIModel(profile=profile, api_key="key", base_url=base_url, now=clock, **more)


@dataclass(frozen=True, slots=True, kw_only=True)
class Parts:
    """What a runtime is put together from; the real parts where nothing else is given."""

    site: Site
    ledger: Ledger
    model: LanguageModel
    folder: Path
    cms: CMS | None = None
    public: PublicPages | None = None
    hooks: tuple[SiteHook, ...] | None = None
    on_checkpoint: Callable[[str], None] | None = None
    day_usd: Decimal | None = None
    random: Callable[[], float] = field(default=lambda: 0.0)
    """No jitter, and so no wait that the other side did not announce."""


_numbers = itertools.count(1)


def runtime_of(parts: Parts, *, worker: str | None = None) -> SiteRuntime:
    """A worker's runtime; each has a name of its own."""
    settings = parts.site.settings
    cms = parts.cms or FolderCMS(parts.folder, base_url=BASE_URL, clock=clock)
    hooks = (SitemapFile(parts.folder), IndexPage(parts.folder))
    more: dict[str, Any] = {"on_checkpoint": parts.on_checkpoint} if parts.on_checkpoint else {}
    return SiteRuntime(
        site=settings,
        chain=parts.site.chain,
        columns=parts.site.columns,
        generation_version=parts.site.generation_version,
        ledger=parts.ledger,
        model=parts.model,
        embeddings=parts.model.embeddings if isinstance(parts.model, OpenAIModel) else None,
        prices=GenaiPrices(provider="openai", now=clock),
        model_route=f"scripted:{settings.site}",
        cms=cms,
        cms_route=f"folder:{settings.site}",
        public=parts.public,
        hooks=hooks if parts.hooks is None else parts.hooks,
        worker=worker or f"worker-{next(_numbers)}",
        run_id=None,
        random=parts.random,
        call_slots=threading.Semaphore(settings.generation.in_flight),
        day_usd=parts.day_usd,
        **more,
    )


def writes(folder: Path) -> list[tuple[str, int]]:
    """Every write of a page, as the folder itself logged it: path and revision."""
    log = folder / ".content-pipeline" / "writes.log"
    lines = log.read_text().splitlines() if log.exists() else []
    return [(path, int(revision)) for _, path, revision in (line.split("\t") for line in lines)]


def page_text(folder: Path, row: Mapping[str, str]) -> str | None:
    """What a visitor gets for the page of ``row``; None when there is nothing."""
    file = folder / path_of(row).strip("/") / "index.html"
    return file.read_text() if file.exists() else None


def sitemap_paths(folder: Path) -> list[str]:
    """The paths that the sitemap lists, sorted."""
    file = folder / "sitemap.xml"
    found = re.findall(r"<loc>([^<]*)</loc>", file.read_text()) if file.exists() else []
    return sorted(url.removeprefix(BASE_URL) for url in found)
