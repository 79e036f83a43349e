"""Cache purge: has the caches before a site fetch changed pages anew.

What belongs here: Cloudflare's call, and the plain list of URLs that other caches take.
"""

from collections.abc import Mapping

from content_pipeline.adapters.hooks.told_by_http import ToldByHTTP, urls_of
from content_pipeline.core.ports import Announcement, HookTerms, SiteNews

CLOUDFLARE_ADVICE = {
    400: "it refuses the list of URLs; check that base_url is of the zone, and lower `batch`",
    401: "it refuses the token; make one with the right Zone.Cache Purge and set it in the "
    "environment",
    403: "the token may not purge the zone; give it the right Zone.Cache Purge for this zone",
    404: "it knows no such zone; correct `zone`",
}


class CloudflarePurge:
    """Purges URLs of one zone."""

    def __init__(self, told: ToldByHTTP, *, kind: str, terms: HookTerms, zone: str) -> None:
        self.kind = kind
        self.terms = terms
        self._told = told
        self._zone = zone

    def tell(self, news: SiteNews) -> Announcement:
        """One call. Raises CallFailed, also for a 200 that says it was no success."""
        path = f"/zones/{self._zone}/purge_cache"
        answer = self._told.post(news, path=path, document={"files": urls_of(news)})
        try:
            document = answer.document()
        except ValueError:
            document = None
        if not isinstance(document, Mapping) or document.get("success") is not True:
            raise self._told.refused(answer, "its answer does not say that it purged")
        return Announcement(location=f"zone {self._zone}", changed=True)

    def close(self) -> None:
        """Close every connection."""
        self._told.close()


class CachePurge:
    """Posts URLs to any cache: a list, or an object with the list under ``urls_in``."""

    def __init__(
        self, told: ToldByHTTP, *, kind: str, terms: HookTerms, urls_in: str | None
    ) -> None:
        self.kind = kind
        self.terms = terms
        self._told = told
        self._urls_in = urls_in

    def tell(self, news: SiteNews) -> Announcement:
        """One call. Raises CallFailed."""
        urls = urls_of(news)
        document = urls if self._urls_in is None else {self._urls_in: urls}
        answer = self._told.post(news, document=document)
        return Announcement(location=f"HTTP {answer.status}", changed=True)

    def close(self) -> None:
        """Close every connection."""
        self._told.close()
