"""IndexNow: tells search engines which URLs changed.

What belongs here: the protocol of indexnow.org. All URLs of a call are of the host of the site's
canonical base, since one call is for one host. A page is named once for each change of its text:
services count anything more as spam.
"""

from urllib.parse import urlsplit

from content_pipeline.adapters.hooks.told_by_http import ToldByHTTP, urls_of
from content_pipeline.core.ports import Announcement, HookTerms, SiteNews

MAX_URLS = 10_000
"""Per call, by the protocol."""

ADVICE = {
    400: "it cannot read what it was told; please report it",
    403: "it does not find the key on the site; put the key into the file KEY.txt at the root of "
    "the site's host, or set key_location",
    422: "it says that the URLs are not of the host, or that the key is not as it should be; check "
    "base_url and the file with the key",
    429: "it takes so many calls for spam; it is told again later",
}


class IndexNow:
    """Tells one endpoint, which passes it on to all engines that take part."""

    def __init__(
        self, told: ToldByHTTP, *, kind: str, terms: HookTerms, key: str, key_location: str | None
    ) -> None:
        self.kind = kind
        self.terms = terms
        self._told = told
        self._key = key
        self._key_location = key_location

    def tell(self, news: SiteNews) -> Announcement:
        """One call for one host; a 202 says the key is yet to be checked. Raises CallFailed."""
        base = urlsplit(news.base_url)
        location = self._key_location or f"{base.scheme}://{base.netloc}/{self._key}.txt"
        document = {
            "host": base.netloc,
            "key": self._key,
            "keyLocation": location,
            "urlList": urls_of(news),
        }
        answer = self._told.post(news, document=document)
        return Announcement(location=f"HTTP {answer.status} for {base.netloc}", changed=True)

    def close(self) -> None:
        """Close every connection."""
        self._told.close()
