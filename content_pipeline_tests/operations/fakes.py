"""Other sides with a truth of their own that misbehave on purpose: a CMS, a model, a hook.

What belongs here: stand-ins behind the ports of ``core.ports`` for what no real server can be told
to do. Each keeps what it really did, which is what tests look at.
"""

import json
import threading
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace

from content_pipeline.core.article import Article, Section
from content_pipeline.core.cms import (
    CMSCapabilities,
    CMSCheck,
    Document,
    Glance,
    Inventory,
    Marker,
    PageLookUp,
    RecentChanges,
    RemoteContent,
    RemotePage,
    RemoteStatus,
)
from content_pipeline.core.errors import CallFailed
from content_pipeline.core.failures import Failure, FailureClass
from content_pipeline.core.identity import digest
from content_pipeline.core.money import Usage
from content_pipeline.core.ports import (
    Announcement,
    GenerationLookUp,
    GenerationRequest,
    HookTerms,
    LanguageModelCapabilities,
    RawResponse,
    Reading,
    SiteListing,
    SiteNews,
    Verdict,
)


def failed(failure_class: FailureClass, message: str = "as scripted") -> CallFailed:
    return CallFailed(Failure(failure_class=failure_class, message=message))


PLAIN = CMSCapabilities(
    client_id=False, compare_and_swap=False, drafts=False, marker_look_up=True, trash=False
)
"""A CMS that gives no guarantee at all, so that absent must be seen twice."""

STRICT = CMSCapabilities(
    client_id=True, compare_and_swap=True, drafts=False, marker_look_up=False, trash=False
)


@dataclass(slots=True)
class ScriptedCMS:
    """A CMS in memory. ``on_write`` and ``on_look`` are done instead of the next calls.

    Each entry is called once with the CMS and the call's own work (a function without arguments).
    """

    capabilities: CMSCapabilities = PLAIN
    pages: dict[str, RemotePage] = field(default_factory=dict)
    writes: list[tuple[str, int]] = field(default_factory=list)
    """Every write that took effect: path and revision."""
    looks: int = 0
    on_write: deque["Script"] = field(default_factory=deque)
    on_look: deque["LookScript"] = field(default_factory=deque)
    texts: dict[str, RemoteContent] = field(default_factory=dict)
    removed: list[str] = field(default_factory=list)
    """Remote ids of pages that were taken away."""
    changed: list[RemotePage] = field(default_factory=list)
    """What a person changed since anybody asked."""
    late: list[Callable[[], RemotePage]] = field(default_factory=list)
    """Writes that were accepted and take effect when the test lets them."""
    lock: threading.RLock = field(default_factory=threading.RLock)

    def look_up(self, page_id: str, path: str, remote_id: str | None) -> PageLookUp:
        with self.lock:
            self.looks += 1
            script = self.on_look.popleft() if self.on_look else None
        if script is not None:
            return script(self)
        found = self.pages.get(path)
        if found is None:
            return PageLookUp(verdict=Verdict.ABSENT)
        return PageLookUp(verdict=Verdict.PRESENT, page=found)

    def create_draft(self, document: Document) -> RemotePage:
        return self._store(document, RemoteStatus.HIDDEN)

    def publish(self, document: Document, *, replacing: RemotePage | None) -> RemotePage:
        with self.lock:
            script = self.on_write.popleft() if self.on_write else None
        if script is None:
            return self.write(document)
        return script(self, document)

    def write(self, document: Document) -> RemotePage:
        """What a write really does."""
        with self.lock:
            self.writes.append((document.path, document.marker.revision))
            return self._store(document, RemoteStatus.PUBLISHED)

    def withdraw(self, page: RemotePage) -> None:
        with self.lock:
            self.pages[page.path] = replace(self.pages[page.path], status=RemoteStatus.HIDDEN)

    def remove(self, page: RemotePage) -> None:
        with self.lock:
            self.removed.append(page.remote_id)
            self.pages.pop(page.path, None)

    def content_of(self, page: RemotePage) -> RemoteContent:
        return self.texts[page.path]

    def inventory(self, next_slice: str | None) -> Inventory:
        """Two pages a slice, so that every test goes through several."""
        paths = sorted(path for path in self.pages if next_slice is None or path >= next_slice)
        found = [self.pages[path] for path in paths[:2]]
        return Inventory(
            glances=tuple(
                Glance(remote_id=at.remote_id, path=at.path, status=at.status, version=at.version)
                for at in found
            ),
            next_slice=paths[2] if len(paths) > 2 else None,
        )

    def recent_changes(self, point: str | None) -> RecentChanges:
        """Everything that was changed by hand since the last call: see ``changed``."""
        pages = () if point is None else tuple(self.changed)
        self.changed.clear()
        return RecentChanges(pages=pages, point="now")

    def check(self) -> CMSCheck:
        return CMSCheck(identity="a CMS in memory")

    def _store(self, document: Document, status: RemoteStatus) -> RemotePage:
        page = remote_page(document.path, document.marker, status=status)
        self.pages[document.path] = page
        self.texts[document.path] = RemoteContent(
            title=document.title,
            meta_description=document.meta_description,
            body_html=document.body_html,
        )
        return page


Script = Callable[[ScriptedCMS, Document], RemotePage]
LookScript = Callable[[ScriptedCMS], PageLookUp]


def remote_page(
    path: str,
    marker: Marker | None,
    *,
    status: RemoteStatus = RemoteStatus.PUBLISHED,
    edits: int = 0,
) -> RemotePage:
    """A page as a CMS holds it; each edit of a person gives it another fingerprint."""
    return RemotePage(
        remote_id=f"remote:{path}",
        path=path,
        url=f"https://towns.example{path}",
        status=status,
        marker=marker,
        fingerprint=digest(path, str(marker), edits),
        version=digest(path, str(marker), edits, status),
    )


def loses_the_answer(cms: ScriptedCMS, document: Document) -> RemotePage:
    """The write takes effect and its answer never arrives."""
    cms.write(document)
    raise failed(FailureClass.UNCERTAIN, "the connection broke after the request was sent")


def loses_the_request(_cms: ScriptedCMS, _document: Document) -> RemotePage:
    """Nothing takes effect, and nobody can tell."""
    raise failed(FailureClass.UNCERTAIN, "the connection broke")


def takes_effect_later(cms: ScriptedCMS, document: Document) -> RemotePage:
    """The answer is lost and the write waits in some queue."""
    cms.late.append(lambda: cms.write(document))
    raise failed(FailureClass.UNCERTAIN, "a timeout")


def accepts_and_hides(_cms: ScriptedCMS, document: Document) -> RemotePage:
    """Status 200, and the page is not there."""
    return remote_page(document.path, document.marker)


def puts_it_elsewhere(cms: ScriptedCMS, document: Document) -> RemotePage:
    """The path is taken, so the CMS makes one of its own by a suffix, as many do."""
    cms.writes.append((document.path + "2/", document.marker.revision))
    page = remote_page(document.path + "2/", document.marker)
    cms.pages[document.path] = page
    return page


def raises(error: Exception) -> Callable[..., RemotePage]:
    def script(*_: object) -> RemotePage:
        raise error

    return script


def says_unknown(_cms: ScriptedCMS) -> PageLookUp:
    return PageLookUp(verdict=Verdict.UNKNOWN, failure=failed(FailureClass.TRANSIENT).failure)


def says_absent(_cms: ScriptedCMS) -> PageLookUp:
    return PageLookUp(verdict=Verdict.ABSENT)


def look_raises(error: Exception) -> LookScript:
    def script(_cms: ScriptedCMS) -> PageLookUp:
        raise error

    return script


ARTICLE = Article(
    title="A town",
    meta_description="A description of a town that is neither too short nor too long.",
    introduction="A town. " * 40,
    sections=[
        Section(heading="People", body_markdown="Many people live there. " * 10),
        Section(heading="River", body_markdown="A river runs through it. " * 10),
    ],
)


@dataclass(slots=True)
class ScriptedModel:
    """A provider that can only be asked afterwards if ``look_up_by_attempt``.

    ``on_send`` is done instead of the next calls; a call without one gives an article. ``on_look``
    answers the next look-ups; one without is absent.
    """

    look_up_by_attempt: bool = False
    look_up_by_id: bool = False
    sent: list[GenerationRequest] = field(default_factory=list)
    on_send: deque[Callable[[GenerationRequest], RawResponse]] = field(default_factory=deque)
    on_look: deque[GenerationLookUp] = field(default_factory=deque)
    looks: int = 0
    cancelled: list[str] = field(default_factory=list)
    is_closed: bool = False
    lock: threading.Lock = field(default_factory=threading.Lock)

    @property
    def capabilities(self) -> LanguageModelCapabilities:
        return LanguageModelCapabilities(
            look_up_by_attempt=self.look_up_by_attempt, look_up_by_id=self.look_up_by_id
        )

    def send(self, request: GenerationRequest) -> RawResponse:
        with self.lock:
            self.sent.append(request)
            script = self.on_send.popleft() if self.on_send else article_answer
        return script(request)

    def read(self, raw: RawResponse) -> Reading:
        return Reading(
            text=raw.body.decode(),
            usage=Usage(input_tokens=100, output_tokens=200),
            model="gpt-5-mini",
            response_id="r",
            request_id="q",
            finish_reason="stop",
            failure=None,
        )

    def look_up(self, attempt_id: str, kept_as: str | None = None) -> GenerationLookUp:
        self.looks += 1
        if self.on_look:
            return self.on_look.popleft()
        return GenerationLookUp(verdict=Verdict.ABSENT)

    def cancel(self, kept_as: str) -> None:
        self.cancelled.append(kept_as)

    def close(self) -> None:
        self.is_closed = True


def article_answer(request: GenerationRequest) -> RawResponse:
    """An article that states every fact of the request."""
    told = request.user.partition("<source_facts>\n")[2].partition("\n</source_facts>")[0]
    facts = " ".join(json.loads(told).values())
    section = ARTICLE.sections[0]
    stated = section.model_copy(update={"body_markdown": f"{section.body_markdown} {facts}"})
    article = ARTICLE.model_copy(update={"sections": [stated, ARTICLE.sections[1]]})
    return RawResponse(status=200, headers={}, body=article.model_dump_json().encode())


def call_raises(error: Exception) -> Callable[[GenerationRequest], RawResponse]:
    def script(_request: GenerationRequest) -> RawResponse:
        raise error

    return script


@dataclass(slots=True)
class ScriptedHook:
    """Remembers every listing it was told; ``on_announce`` is done before the next ones."""

    kind: str = "sitemap"
    told: list[SiteListing] = field(default_factory=list)
    on_announce: deque[Callable[[], None]] = field(default_factory=deque)

    def announce(self, listing: SiteListing) -> Announcement:
        if self.on_announce:
            self.on_announce.popleft()()
        changed = not self.told or self.told[-1] != listing
        self.told.append(listing)
        return Announcement(location="sitemap.xml", changed=changed)

    def paths(self) -> Iterable[str]:
        return [page.path for page in self.told[-1].pages] if self.told else []


@dataclass(slots=True)
class ScriptedNewsHook:
    """Remembers all news it was told; ``on_tell`` is done before the next ones."""

    kind: str = "indexnow"
    debounce_s: float = 0.0
    batch: int = 100
    tells_existing: bool = False
    told: list[SiteNews] = field(default_factory=list)
    on_tell: deque[Callable[[], None]] = field(default_factory=deque)

    @property
    def terms(self) -> HookTerms:
        return HookTerms(
            debounce_s=self.debounce_s, batch=self.batch, tells_existing=self.tells_existing
        )

    def tell(self, news: SiteNews) -> Announcement:
        if self.on_tell:
            self.on_tell.popleft()()
        self.told.append(news)
        return Announcement(location=f"call {len(self.told)}", changed=True)

    def close(self) -> None:
        """Nothing is open."""

    def paths(self) -> list[str]:
        """The path of every page it was told of as changed, once for each time."""
        return [page.path for news in self.told for page in news.changed]

    def gone(self) -> list[str]:
        """The path of every page it was told of as taken off."""
        return [page.path for news in self.told for page in news.withdrawn]
