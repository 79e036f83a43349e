"""The requests to Directus's REST API that publishing takes, one method each.

What belongs here: routes, parameters and the shape of answers. A method returns what it asked for
or raises CallFailed; what an item means to the publish protocol is ``directus``'s to say.

Directus answers a change of an item that does not exist with 204, or with 403 to a token that is
not an administrator's, and a question for it with 403. So items are looked for by filters, and what
a write left is taken from its answer alone when that holds the item.
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from urllib.parse import urlsplit

from content_pipeline.adapters.cms.directus_errors import FORBIDDEN, error_code, failure_in
from content_pipeline.adapters.cms.json_service import Json, JSONService
from content_pipeline.adapters.http_calls import Answer, Call, HTTPService
from content_pipeline.core.errors import CallFailed, ConfigurationError

PER_PAGE = 100
"""Items of one slice: 5 MB with pages of 50 kB."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Listed:
    """One slice of a listing."""

    items: tuple[Json, ...]
    more: bool
    date: str | None
    """The server's ``Date``."""


class DirectusAPI:
    """One collection, one token; safe for many threads."""

    def __init__(
        self,
        url: str,
        *,
        token: str,
        collection: str,
        fields: Sequence[str],
        deadline_s: float,
        clock: Callable[[], datetime],
        at_once: int | None = None,
    ) -> None:
        """``fields`` are read of every item. Raises ConfigurationError for what is no token."""
        if not token or not token.isascii() or not token.isprintable() or " " in token:
            raise ConfigurationError(
                "the token for Directus is empty or holds characters that none has; copy it again"
            )
        name = f"Directus at {urlsplit(url).netloc}"
        self.collection = collection
        self._fields = ",".join(fields)
        service = HTTPService(
            url,
            name=name,
            headers={"Authorization": f"Bearer {token}", "Accept": "application/json"},
            deadline_s=deadline_s,
            at_once=at_once,
        )
        self.json = JSONService(
            service, lambda answer, call: failure_in(answer, call, service=name, now=clock())
        )

    # --- items ----------------------------------------------------------------------------------

    def find(self, any_of: Sequence[Mapping[str, str]], *, doing: str) -> tuple[Json, ...]:
        """Items of which one of ``any_of`` (field: value) holds, of every status."""
        terms = [{name: {"_eq": value}} for each in any_of for name, value in each.items()]
        return self._list({"filter": json.dumps({"_or": terms})}, 1, doing).items

    def slice(self, number: int, *, sort: str, doing: str) -> Listed:
        """The 1-based slice ``number`` of all items."""
        return self._list({"sort": sort}, number, doing)

    def changed_since(self, field: str, moment: datetime, number: int, *, doing: str) -> Listed:
        """The slice ``number`` of items whose time ``field`` is ``moment`` or later."""
        since = {field: {"_gte": moment.strftime("%Y-%m-%dT%H:%M:%SZ")}}
        return self._list({"filter": json.dumps(since), "sort": field}, number, doing)

    def create(self, item: Json, *, doing: str) -> Json:
        """The item just created. Raises CallFailed; one of that key or path: conflict."""
        call = self._writing("POST", self._route, item, doing)
        return self._item(self.json.send(call), call)

    def update(self, item_id: str, fields: Json, *, doing: str) -> Json | None:
        """The item with other ``fields``; None when nothing was there to be changed."""
        call = self._writing("PATCH", f"{self._route}/{item_id}", fields, doing)
        answer = self.json.send(call)
        return None if self._is_nothing(answer) else self._item(answer, call)

    def delete(self, item_id: str, *, doing: str) -> bool:
        """Delete the item for good; False when Directus does not say that it did."""
        call = Call(doing=doing, method="DELETE", path=f"{self._route}/{item_id}")
        answer = self.json.send(call)
        if answer.status != 204 and not self._is_nothing(answer):
            raise self.json.failed(answer, call)
        return answer.status == 204

    def refused(self, doing: str) -> CallFailed:
        """What a 403 to a write means once the item is known to exist."""
        body = json.dumps({"errors": [{"extensions": {"code": FORBIDDEN}}]}).encode()
        call = Call(doing=doing, method="PATCH", path="")
        return self.json.failed(Answer(status=403, headers={}, body=body), call)

    # --- the collection -------------------------------------------------------------------------

    def me(self) -> Json:
        """The account, as far as it may see itself."""
        return self._one("/users/me", "asking for the account", {"fields": "id,first_name,email"})

    def rights(self) -> Json:
        """What the account may do with the collection, by verb."""
        found = self._one("/permissions/me", "asking for its rights", {}).get(self.collection, {})
        return found if isinstance(found, dict) else {}

    def schema(self) -> tuple[Json, ...]:
        """The collection's fields; only some accounts may see them."""
        call = Call(doing="asking for the fields", method="GET", path=f"/fields/{self.collection}")
        return self.json.objects_under("data", self.json.send(call), call)

    # --- answers --------------------------------------------------------------------------------

    @property
    def _route(self) -> str:
        return f"/items/{self.collection}"

    def _list(self, params: Mapping[str, str], number: int, doing: str) -> Listed:
        sliced = {"limit": str(PER_PAGE), "page": str(number), "fields": self._fields}
        call = Call(doing=doing, method="GET", path=self._route, params=sliced | dict(params))
        answer = self.json.send(call)
        items = self.json.objects_under("data", answer, call)
        return Listed(items=items, more=len(items) == PER_PAGE, date=answer.headers.get("date"))

    def _writing(self, method: str, path: str, document: Json, doing: str) -> Call:
        fields = {"fields": self._fields}
        return Call(doing=doing, method=method, path=path, params=fields, document=document)

    def _item(self, answer: Answer, call: Call) -> Json:
        found = self.json.object_in(answer, call).get("data")
        if not isinstance(found, dict):
            raise self.json.failed(answer, call)
        return found

    def _one(self, path: str, doing: str, params: Mapping[str, Any]) -> Json:
        call = Call(doing=doing, method="GET", path=path, params=params)
        return self._item(self.json.send(call), call)

    def _is_nothing(self, answer: Answer) -> bool:
        """Whether Directus says that there is nothing, or that it does not tell."""
        return answer.status == 204 or (answer.status == 403 and error_code(answer) == FORBIDDEN)
