"""The site's side of the verdict: what visitors could see, turned into numbers and broken promises.

What belongs here: pure arithmetic on what a folder or a CMS recorded itself. Where the records are
read is ``site_records``.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime

from content_pipeline.chaos.waits import Received, early_for_account, early_for_page
from content_pipeline.sandbox.cms.faults import WRITES

RENEWED = 2
"""The revision of a page whose input was changed once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Wanted:
    """What the table asked for, by path."""

    live: frozenset[str]
    """Paths that must be live."""
    changed: frozenset[str] = frozenset()
    """Those of them whose input was changed for the second run."""
    edited: frozenset[str] = frozenset()
    """Those of the changed ones that a person had edited before."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Write:
    """One write of a page, from the folder's own log; in the order of the log."""

    path: str
    revision: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LivePage:
    """One page as a visitor gets it."""

    path: str
    page_id: str
    revision: int


@dataclass(frozen=True, slots=True, kw_only=True)
class FolderRecords:
    """What a folder of pages holds and logged."""

    live: Sequence[LivePage]
    writes: Sequence[Write]
    sitemap: Sequence[str]
    """The paths it lists."""


@dataclass(frozen=True, slots=True, kw_only=True)
class CMSRecords:
    """What the sandbox CMS says of itself."""

    live: Sequence[LivePage]
    pages_by_key: Mapping[str, int]
    """Pages that bear one mark in the end, hidden and trashed ones included."""
    public_doubles: int
    """Marks that visitors saw on more than one page at any one instant."""
    stale_overwrites: int
    edits_overwritten: int
    received: Sequence[Received]
    changed_at: datetime | None = None
    """When we last changed what visitors see."""
    deployed_at: Sequence[datetime] = ()
    """When the host was told to build the site anew, in order."""


SiteRecords = FolderRecords | CMSRecords


@dataclass(frozen=True, slots=True, kw_only=True)
class SiteNumbers:
    """What came of a run on the site."""

    pages_live: int
    missing: int
    unwanted: int
    """Live pages that nobody asked for, or one page at two paths."""
    outdated: int
    """Live pages with a text of before the change of their input, a person's edits not counted."""
    stale_overwrites: int
    # --- of a folder -----------------------------------------------------------------------------
    written_twice: int = 0
    sitemap_wrong: int = 0
    """Live pages that the sitemap lacks, and entries that are not live or stand there twice."""
    # --- of a CMS --------------------------------------------------------------------------------
    public_doubles: int = 0
    doubles_left: int = 0
    """Pages beyond the first of each mark in the end, hidden and trashed ones included."""
    edited: int = 0
    edits_overwritten: int = 0
    cms_early_for_page: int = 0
    cms_early_for_site: int = 0
    cms_requests: int = 0
    cms_writes: int = 0
    cms_faults: int = 0
    deploy_calls: int = 0
    never_deployed: bool = False
    """Whether the host was not told of our last change."""

    @property
    def requests_per_page(self) -> float:
        """Requests to the CMS for each page that is live."""
        return self.cms_requests / self.pages_live if self.pages_live else float(self.cms_requests)

    def broken_promises(self) -> list[str]:
        """One sentence for each promise that was broken; empty when all were kept."""
        checks = (
            (self.missing, "a page is missing"),
            (self.unwanted, "a page is live that nobody asked for, or twice"),
            (self.outdated, "a page shows the text of before its input was changed"),
            (self.written_twice, "a revision was written more than once"),
            (self.stale_overwrites, "an older revision was written over a newer one"),
            (self.sitemap_wrong, "the sitemap does not list exactly the live pages"),
            (self.public_doubles, "visitors saw one page twice at one instant"),
            (self.doubles_left, "a second page with the mark of another is left on the site"),
            (self.edits_overwritten, "a person's edit was overwritten"),
            (self.cms_early_for_page, "a page was sent again before the CMS's wait was over"),
            (self.cms_early_for_site, "the CMS was called before its announced wait was over"),
            (self.never_deployed, "the deploy hook was not called after the last change"),
        )
        return [sentence for is_broken, sentence in checks if is_broken]


def judge_site(records: SiteRecords, wanted: Wanted, kills: Sequence[datetime]) -> SiteNumbers:
    """The numbers of a run on its site; ``kills``: when all workers died together."""
    if isinstance(records, FolderRecords):
        return _judge_folder(records, wanted)
    return _judge_cms(records, wanted, kills)


def _judge_folder(records: FolderRecords, wanted: Wanted) -> SiteNumbers:
    paths = [page.path for page in records.live]
    return SiteNumbers(
        pages_live=len(paths),
        missing=len(wanted.live - set(paths)),
        unwanted=_unwanted(records.live, wanted.live),
        outdated=_outdated(records.live, wanted),
        stale_overwrites=_stale_overwrites(records.writes),
        written_twice=sum(times - 1 for times in Counter(records.writes).values()),
        sitemap_wrong=_sitemap_wrong(records.sitemap, paths),
    )


def _judge_cms(records: CMSRecords, wanted: Wanted, kills: Sequence[datetime]) -> SiteNumbers:
    writes = [each for each in records.received if each.operation in WRITES]
    return SiteNumbers(
        pages_live=len(records.live),
        missing=len(wanted.live - {page.path for page in records.live}),
        unwanted=_unwanted(records.live, wanted.live),
        outdated=_outdated(records.live, wanted),
        stale_overwrites=records.stale_overwrites,
        public_doubles=records.public_doubles,
        doubles_left=sum(pages - 1 for pages in records.pages_by_key.values() if pages),
        edited=len(wanted.edited),
        edits_overwritten=records.edits_overwritten,
        cms_early_for_page=early_for_page(records.received),
        cms_early_for_site=early_for_account(records.received, kills),
        cms_requests=len(records.received),
        cms_writes=len(writes),
        cms_faults=sum(each.fault is not None for each in writes),
        deploy_calls=len(records.deployed_at),
        never_deployed=_never_deployed(records),
    )


def _never_deployed(records: CMSRecords) -> bool:
    if records.changed_at is None:
        return False
    return not records.deployed_at or records.deployed_at[-1] < records.changed_at


def _unwanted(live: Iterable[LivePage], wanted: Collection[str]) -> int:
    pages = Counter(page.page_id for page in live if page.path in wanted)
    strangers = sum(page.path not in wanted for page in live)
    return strangers + sum(times - 1 for times in pages.values())


def _outdated(live: Iterable[LivePage], wanted: Wanted) -> int:
    renewed = wanted.changed - wanted.edited
    return sum(page.path in renewed and page.revision < RENEWED for page in live)


def _stale_overwrites(writes: Iterable[Write]) -> int:
    highest: dict[str, int] = {}
    stale = 0
    for write in writes:
        before = highest.get(write.path, 0)
        stale += write.revision < before
        highest[write.path] = max(before, write.revision)
    return stale


def _sitemap_wrong(listed: Sequence[str], live: Sequence[str]) -> int:
    repeated = len(listed) - len(set(listed))
    return len(set(listed) ^ set(live)) + repeated
