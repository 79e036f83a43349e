"""The requests to WordPress's REST API that publishing takes, one method each.

What belongs here: routes, parameters and the shape of answers. A method returns what it asked for
or raises CallFailed; what a page means to the publish protocol is ``wordpress``'s to say.
"""

import base64
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypeVar
from urllib.parse import urlsplit

from content_pipeline.adapters.cms.wordpress_errors import error_code, failure_in
from content_pipeline.adapters.cms.wordpress_pages import Json
from content_pipeline.adapters.http_calls import Answer, Call, HTTPService
from content_pipeline.core.errors import CallFailed, ConfigurationError
from content_pipeline.core.failures import Failure

EVERY_STATUS = "publish,future,draft,pending,private,trash"
"""``any`` leaves out the trash."""

PER_PAGE = 100
"""The most that WordPress gives at once."""

LISTED_TOGETHER = 20
"""Pages with one mark or slug; two are rare already."""

GUARD_HEADER = "x-content-pipeline-guard"
"""Only a site with the companion plugin sends it."""

KEY_HEADER = "X-Content-Pipeline-Key"
"""Tells the companion plugin whose page is created."""

Read = TypeVar("Read")

OR_SLUG = "content_pipeline_or_slug"
"""Lets the companion plugin find by mark or slug at once; WordPress itself ignores it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Listed:
    """One slice of a listing."""

    pages: tuple[Json, ...]
    more: bool
    guarded: bool
    """The companion plugin had its say in this answer."""


class WordPressREST:
    """One WordPress site, one account, pages or posts; safe for many threads."""

    def __init__(
        self,
        url: str,
        *,
        user: str,
        password: str,
        content_type: str,
        deadline_s: float,
        clock: Callable[[], datetime],
        at_once: int | None = None,
    ) -> None:
        """Raises ConfigurationError for credentials that cannot be sent in a header."""
        self.url = url
        self.name = f"WordPress at {urlsplit(url).netloc}"
        self._route = f"/wp-json/wp/v2/{content_type}"
        self._clock = clock
        self._service = HTTPService(
            url,
            name=self.name,
            headers={"Authorization": _basic(user, password), "Accept": "application/json"},
            deadline_s=deadline_s,
            at_once=at_once,
        )
        self._account_id: int | None = None
        self.guarded: bool | None = None
        """Whether the last answer came from a site with the companion plugin; None before one."""

    def close(self) -> None:
        """Close every connection."""
        self._service.close()

    # --- one page -------------------------------------------------------------------------------

    def get(self, remote_id: str, *, fields: str, doing: str) -> Json | None:
        """The page; None when WordPress knows no such id."""
        call = Call(
            doing=doing,
            method="GET",
            path=f"{self._route}/{remote_id}",
            params={"context": "edit", "_fields": fields},
        )
        answer = self._send(call)
        # No proof of absence by itself: a wrong password is told the same of an id in no use.
        if answer.status == 404 and error_code(answer) == "rest_post_invalid_id":
            return None
        return self._object(answer, call)

    def create(self, document: Json, *, key: str, fields: str, doing: str) -> Json:
        """The page just created."""
        call = Call(
            doing=doing,
            method="POST",
            path=self._route,
            params={"_fields": fields},
            document=document,
            headers={KEY_HEADER: key},
        )
        return self._object(self._send(call), call)

    def update(
        self, remote_id: str, document: Json, *, version: str, fields: str, doing: str
    ) -> Json:
        """The page with the fields of ``document``; refused by a guard unless at ``version``."""
        call = Call(
            doing=doing,
            method="POST",
            path=f"{self._route}/{remote_id}",
            params={"_fields": fields},
            document=document,
            headers=self._only_at(version),
        )
        return self._object(self._send(call), call, remote_id=remote_id)

    def delete(self, remote_id: str, *, version: str, for_good: bool, doing: str) -> None:
        """Put the page into the trash, or delete it for good; harmless when that was done."""
        call = Call(
            doing=doing,
            method="DELETE",
            path=f"{self._route}/{remote_id}",
            params={"force": "true" if for_good else "false", "_fields": "id"},
            headers=self._only_at(version),
        )
        answer = self._send(call)
        done = {"rest_post_invalid_id", "rest_already_trashed"}
        if answer.status != 200 and error_code(answer) not in done:
            raise self._failed(answer, call)

    # --- many pages -----------------------------------------------------------------------------

    def find(self, token: str, *, or_slugs: Sequence[str], fields: str, doing: str) -> Listed:
        """Pages that hold ``token``; under the companion plugin those with a slug as well."""
        params = {"search": token, OR_SLUG: ",".join(or_slugs)}
        return self._list(params, per_page=LISTED_TOGETHER, page=1, fields=fields, doing=doing)

    def with_slugs(self, slugs: Sequence[str], *, fields: str, doing: str) -> Listed:
        """Pages with one of ``slugs``, wherever they stand."""
        params = {"slug": ",".join(slugs)}
        return self._list(params, per_page=LISTED_TOGETHER, page=1, fields=fields, doing=doing)

    def slice(
        self, number: int, *, fields: str, doing: str, params: Mapping[str, str] | None = None
    ) -> Listed:
        """The 1-based slice ``number`` of all pages, oldest first."""
        order = {"orderby": "id", "order": "asc"}
        return self._list(
            order | dict(params or {}), per_page=PER_PAGE, page=number, fields=fields, doing=doing
        )

    def newest(
        self, *, fields: str, doing: str, params: Mapping[str, str] | None = None
    ) -> tuple[tuple[Json, ...], str | None]:
        """The hundred pages written last, the last one first, and the server's ``Date``."""
        order = {"orderby": "modified", "order": "desc"}
        call = self._listing(order | dict(params or {}), PER_PAGE, 1, fields, doing)
        answer = self._send(call)
        return self._objects(answer, call), answer.headers.get("date")

    # --- the site -------------------------------------------------------------------------------

    def index(self) -> tuple[Json, str | None]:
        """What the site says of itself, and the server's ``Date``."""
        call = Call(
            doing="asking what it is",
            method="GET",
            path="/wp-json/",
            params={"_fields": "name,url,home,namespaces"},
        )
        answer = self._send(call)
        return self._object(answer, call), answer.headers.get("date")

    def me(self) -> Json:
        """The account: name, roles and capabilities."""
        call = Call(
            doing="asking for the account",
            method="GET",
            path="/wp-json/wp/v2/users/me",
            params={"context": "edit", "_fields": "id,username,roles,capabilities"},
        )
        answer = self._send(call)
        account = self._object(answer, call)
        if not isinstance(account.get("id"), int):
            raise self._failed(answer, call)
        return account

    def is_mine(self, page: Json) -> bool:
        """Whether the page was made by our account, which is asked for once."""
        if self._account_id is None:
            self._account_id = int(self.me()["id"])
        return page.get("author") == self._account_id

    def generator(self) -> bytes:
        """A small file in which WordPress names its version."""
        call = Call(doing="asking for its version", method="GET", path="/wp-links-opml.php")
        return self._send(call).body

    # --- answers --------------------------------------------------------------------------------

    def read(
        self, reader: Callable[[Json], Read], found: Json, *, doing: str, writes: bool = False
    ) -> Read:
        """What ``reader`` makes of ``found``. Raises CallFailed for what it cannot read."""
        try:
            return reader(found)
        except ValueError:
            failure = self.unreadable(doing, writes=writes)
        raise CallFailed(failure)

    def unreadable(self, doing: str, *, writes: bool) -> Failure:
        """The failure of an answer that is JSON and still not what was asked for."""
        call = Call(doing=doing, method="POST" if writes else "GET", path="")
        answer = Answer(status=200, headers={}, body=b"")
        return failure_in(answer, call, service=self.name, now=self._clock())

    def _list(
        self, params: Mapping[str, str], *, per_page: int, page: int, fields: str, doing: str
    ) -> Listed:
        call = self._listing(params, per_page, page, fields, doing)
        answer = self._send(call)
        if answer.status == 400 and error_code(answer) == "rest_post_invalid_page_number":
            return Listed(pages=(), more=False, guarded=_is_guarded(answer))
        pages = self._objects(answer, call)
        total = answer.headers.get("x-wp-totalpages", "")
        more = page < int(total) if total.isdecimal() else len(pages) == per_page
        return Listed(pages=pages, more=more, guarded=_is_guarded(answer))

    def _listing(
        self, params: Mapping[str, str], per_page: int, page: int, fields: str, doing: str
    ) -> Call:
        # Without context and statuses WordPress answers a wrong password with what visitors see,
        # and a draft of ours would read as absent.
        everything = {
            "context": "edit",
            "status": EVERY_STATUS,
            "per_page": str(per_page),
            "page": str(page),
            "_fields": fields,
        }
        return Call(doing=doing, method="GET", path=self._route, params=everything | dict(params))

    def _send(self, call: Call) -> Answer:
        answer = self._service.send(call)
        if answer.status < 300:
            self.guarded = _is_guarded(answer)
        return answer

    def _only_at(self, version: str) -> dict[str, str]:
        """The header of a write that a guard refuses unless the page is at ``version``.

        WordPress alone ignores it, and what stands before it may not.
        """
        return {"If-Match": f'"{version}"'} if self.guarded else {}

    def _objects(self, answer: Answer, call: Call) -> tuple[Json, ...]:
        found = self._parsed(answer, call)
        if not isinstance(found, list) or not all(isinstance(page, dict) for page in found):
            raise self._failed(answer, call)
        return tuple(found)

    def _object(self, answer: Answer, call: Call, *, remote_id: str | None = None) -> Json:
        found = self._parsed(answer, call)
        if not isinstance(found, dict) or (remote_id and str(found.get("id")) != remote_id):
            raise self._failed(answer, call)
        return found

    def _parsed(self, answer: Answer, call: Call) -> Any:
        if not 200 <= answer.status < 300:
            raise self._failed(answer, call)
        try:
            return answer.document()
        except ValueError:
            failed = self._failed(answer, call)
        raise failed

    def _failed(self, answer: Answer, call: Call) -> CallFailed:
        return CallFailed(failure_in(answer, call, service=self.name, now=self._clock()))


def _is_guarded(answer: Answer) -> bool:
    return GUARD_HEADER in answer.headers


def _basic(user: str, password: str) -> str:
    """The header of the credentials; an error about them must not show them."""
    for what, value in (("user", user), ("application password", password)):
        if not value or not value.isprintable() or (what == "user" and ":" in value):
            raise ConfigurationError(
                f"the {what} for WordPress is empty or holds characters that none has; copy it "
                "again"
            )
    return "Basic " + base64.b64encode(f"{user}:{password}".encode()).decode()
