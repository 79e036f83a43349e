"""The requests to Ghost's Admin API that publishing takes, one method each.

What belongs here: routes, parameters and the shape of answers. A method returns what it asked for
or raises CallFailed; what a page means to the publish protocol is ``ghost``'s to say. Pages are
read only once the second of their last write has passed: ``server_clock`` says why.
"""

import re
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from urllib.parse import urlsplit

from content_pipeline.adapters.cms.ghost_errors import failure_in, is_not_found
from content_pipeline.adapters.cms.ghost_pages import PAGE_FIELDS, written_at
from content_pipeline.adapters.cms.ghost_token import AdminKey
from content_pipeline.adapters.cms.json_service import Json, JSONService
from content_pipeline.adapters.cms.server_clock import ServerClock
from content_pipeline.adapters.http_calls import Answer, Call, HTTPService

PER_PAGE = 100
"""The most that Ghost gives at once, whatever is asked."""

_ID = re.compile(r"[0-9a-f]{24}")
"""Another id, of a CMS that the site had before, is refused as invalid instead of not found."""

_ROOT = "/ghost/api/admin"


@dataclass(frozen=True, slots=True, kw_only=True)
class Listed:
    """One slice of a listing."""

    pages: tuple[Json, ...]
    more: bool


class GhostAPI:
    """One Ghost, one integration, pages or posts; safe for many threads."""

    def __init__(
        self,
        url: str,
        *,
        key: AdminKey,
        content_type: str,
        deadline_s: float,
        clock: Callable[[], datetime],
        at_once: int | None = None,
        pause: Callable[[float], None] = time.sleep,
    ) -> None:
        """``pause`` waits for so many seconds, for a read to be old enough."""
        name = f"Ghost at {urlsplit(url).netloc}"
        self._kind = content_type
        self._route = f"{_ROOT}/{content_type}/"
        self.server_clock = ServerClock(clock=clock, pause=pause)
        service = HTTPService(
            url,
            name=name,
            headers={"Accept": "application/json", "Accept-Version": "v5.0"},
            deadline_s=deadline_s,
            at_once=at_once,
            sign=lambda *_: {"Authorization": key.authorization(clock())},
        )
        self.json = JSONService(
            service, lambda answer, call: failure_in(answer, call, service=name, now=clock())
        )

    # --- one page -------------------------------------------------------------------------------

    def get(self, remote_id: str, *, doing: str, fields: str = PAGE_FIELDS) -> Json | None:
        """The page; None when Ghost has no such id. The token was accepted in either case."""
        if not _ID.fullmatch(remote_id):
            return None

        def ask() -> Json | None:
            call = Call(
                doing=doing, method="GET", path=f"{self._route}{remote_id}/", params=_asked(fields)
            )
            answer = self._send(call)
            return None if is_not_found(answer) else self._one(answer, call)

        return self.server_clock.settled(ask, lambda found: self._newest([found], doing))

    def create(self, document: Json, *, doing: str) -> str:
        """The id of the page just created."""
        return self._written("POST", self._route, document, doing=doing)

    def update(self, remote_id: str, document: Json, *, version: str, doing: str) -> None:
        """Change the fields of ``document``; refused unless the page is at ``version``."""
        path, changed = f"{self._route}{remote_id}/", {**document, "updated_at": version}
        self._written("PUT", path, changed, doing=doing)

    def delete(self, remote_id: str, *, doing: str) -> None:
        """Delete the page for good; harmless when that was done."""
        call = Call(doing=doing, method="DELETE", path=f"{self._route}{remote_id}/")
        answer = self._send(call)
        if answer.status != 204 and not is_not_found(answer):
            raise self.json.failed(answer, call)

    # --- many pages -----------------------------------------------------------------------------

    def find(self, token: str, slug: str, *, doing: str) -> tuple[Json, ...]:
        """Pages whose head holds ``token``, and the one with ``slug``, of every status."""
        chosen = f"codeinjection_head:~'{token}',slug:'{slug}'"

        def ask() -> Listed:
            return self._list({"filter": chosen, "order": "id asc"}, 1, PAGE_FIELDS, doing)

        return self.server_clock.settled(
            ask, lambda listed: self._newest(listed.pages, doing)
        ).pages

    def slice(self, number: int, *, fields: str, doing: str) -> Listed:
        """The 1-based slice ``number`` of all pages, oldest first."""
        return self._list({"order": "id asc"}, number, fields, doing)

    def written_since(self, moment: datetime, number: int, *, doing: str) -> Listed:
        """The slice ``number`` of the pages written at or after ``moment``."""
        # The form with T and Z compares as text, and wrongly, where Ghost runs on SQLite.
        since = moment.strftime("%Y-%m-%d %H:%M:%S")
        params = {"filter": f"updated_at:>='{since}'", "order": "id asc"}

        def ask() -> Listed:
            return self._list(params, number, PAGE_FIELDS, doing)

        return self.server_clock.settled(ask, lambda listed: self._newest(listed.pages, doing))

    # --- the site -------------------------------------------------------------------------------

    def site(self) -> tuple[Json, str | None]:
        """What Ghost says of itself to anybody, and the server's ``Date``."""
        call = Call(doing="asking what it is", method="GET", path=f"{_ROOT}/site/")
        answer = self._send(call)
        site = self.json.object_in(answer, call).get("site")
        if not isinstance(site, dict):
            raise self.json.failed(answer, call)
        return site, answer.headers.get("date")

    # --- answers --------------------------------------------------------------------------------

    def _written(self, method: str, path: str, document: Json, *, doing: str) -> str:
        call = Call(
            doing=doing,
            method=method,
            path=path,
            # With it every text that a write replaces stays in the history that editors see.
            params={"fields": "id", "save_revision": "true"},
            document={self._kind: [document]},
        )
        answer = self._send(call)
        remote_id = self._one(answer, call).get("id")
        if not isinstance(remote_id, str):
            raise self.json.failed(answer, call)
        return remote_id

    def _list(self, params: Mapping[str, str], number: int, fields: str, doing: str) -> Listed:
        sliced = {"limit": str(PER_PAGE), "page": str(number), **_asked(fields)}
        call = Call(doing=doing, method="GET", path=self._route, params=sliced | dict(params))
        answer = self._send(call)
        pages = self.json.objects_under(self._kind, answer, call)
        return Listed(pages=pages, more=len(pages) == PER_PAGE)

    def _one(self, answer: Answer, call: Call) -> Json:
        pages = self.json.objects_under(self._kind, answer, call)
        if len(pages) != 1:
            raise self.json.failed(answer, call)
        return pages[0]

    def _newest(self, pages: Iterable[Json | None], doing: str) -> datetime | None:
        times = [self.json.read(written_at, page, doing=doing) for page in pages if page]
        return max(times, default=None)

    def _send(self, call: Call) -> Answer:
        answer = self.json.send(call)
        self.server_clock.note(answer.headers.get("date"))
        return answer


def _asked(fields: str) -> dict[str, str]:
    """The parameters that ask for ``fields``; two of them are formats as well."""
    names = fields.split(",")
    formats = [name for name in ("lexical", "html") if name in names]
    return {"fields": fields} | ({"formats": ",".join(formats)} if formats else {})
