"""Deploy hook: has the host of a site build it anew.

What belongs here: the one call, and finding the id of the build in what the host answers. Every
call is a build, whatever it says, so a call stands for all changes since the last one.
"""

import re
from collections.abc import Mapping
from typing import Any

from content_pipeline.adapters.hooks.told_by_http import ToldByHTTP
from content_pipeline.adapters.http_calls import Answer
from content_pipeline.core.ports import Announcement, HookTerms, SiteNews

ALL_PAGES = 10_000_000
"""In one call: the build fetches them by itself."""

ADVICE = {
    401: "it refuses the call; make a new hook at the host and set its address in the environment",
    403: "it refuses the call; make a new hook at the host and set its address in the environment",
    404: "there is no such hook; make a new one at the host and set its address in the environment",
}

_PLACES = (("job", "id"), ("result", "build_uuid"), ("build_uuid",), ("deploy_id",), ("id",))
"""Where Vercel, Cloudflare and others say which build it is."""

_ID = re.compile(r"[A-Za-z0-9_-]{1,100}")


class DeployHook:
    """Calls one build hook. Its address is a secret and appears nowhere."""

    def __init__(self, told: ToldByHTTP, *, kind: str, terms: HookTerms) -> None:
        self.kind = kind
        self.terms = terms
        self._told = told

    def tell(self, news: SiteNews) -> Announcement:
        """One build. Raises CallFailed."""
        answer = self._told.post(news, document={})
        build = _build_id(answer)
        location = f"build {build}" if build else f"HTTP {answer.status}"
        return Announcement(location=location, changed=True)

    def close(self) -> None:
        """Close every connection."""
        self._told.close()


def _build_id(answer: Answer) -> str | None:
    try:
        document = answer.document()
    except ValueError:
        return None  # Netlify answers nothing at all
    for place in _PLACES:
        found: Any = document
        for key in place:
            found = found.get(key) if isinstance(found, Mapping) else None
        if isinstance(found, str) and _ID.fullmatch(found):
            return found
    return None
