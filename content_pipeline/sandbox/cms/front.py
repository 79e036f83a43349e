"""The public side: what a visitor and a search engine get to see.

What belongs here: published pages as HTML, redirects, the sitemap and the key file, behind a cache
that can be stale. Nobody logs in here.
"""

from dataclasses import replace
from html import escape
from urllib.parse import urlencode

from content_pipeline.sandbox.cms.pages import Page
from content_pipeline.sandbox.cms.permalinks import at_path, guessed, link_of
from content_pipeline.sandbox.cms.routes import Asked
from content_pipeline.sandbox.cms.site import Site
from content_pipeline.sandbox.wire import Reply

_PAGE = (
    '<!DOCTYPE html>\n<html lang="en-US">\n<head>\n<meta charset="UTF-8" />\n'
    '<title>{title} &#8211; Sandbox</title>\n<link rel="canonical" href="{link}" />\n</head>\n'
    '<body class="page page-id-{id}">\n<h1 class="wp-block-post-title">{title}</h1>\n'
    '<div class="entry-content wp-block-post-content">\n{content}\n</div>\n</body>\n</html>\n'
)
_FRONT_PAGE = (
    '<!DOCTYPE html>\n<html lang="en-US">\n<head>\n<meta charset="UTF-8" />\n'
    "<title>Sandbox</title>\n</head>\n<body>\n<h1>Sandbox</h1>\n<ul>\n{items}</ul>\n"
    "</body>\n</html>\n"
)
_MISSING = (
    '<!DOCTYPE html>\n<html lang="en-US">\n<head>\n<title>Page not found &#8211; Sandbox</title>\n'
    "</head>\n<body>\n<h1>Oops! That page can&rsquo;t be found.</h1>\n</body>\n</html>\n"
)
_URLSET = (
    '<?xml version="1.0" encoding="UTF-8"?>\n'
    '<{kind} xmlns="http://www.sitemaps.org/schemas/sitemap/0.9">{entries}</{kind}>\n'
)
SITEMAP_PAGE = "/wp-sitemap-posts-page-1.xml"
HTML = "text/html; charset=UTF-8"


def visited(site: Site, ask: Asked) -> Reply:
    """The reply to a visitor; one to a ``HEAD`` has no body."""
    if ask.request.method not in ("GET", "HEAD"):
        return Reply(status=405, headers={"allow": "GET, HEAD"})
    reply = _through_cache(site, ask)
    return replace(reply, body=b"") if ask.request.method == "HEAD" else reply


def _through_cache(site: Site, ask: Asked) -> Reply:
    target = f"{ask.request.path}?{urlencode(ask.request.query)}"
    held = site.cached(target)
    if held is not None:
        return replace(held, headers={**held.headers, "x-cache": "HIT"})
    reply = _answered(site, ask)
    if site.settings.cache_s:
        site.cache(target, reply)
        return replace(reply, headers={**reply.headers, "x-cache": "MISS"})
    return reply


def _answered(site: Site, ask: Asked) -> Reply:
    path, key = ask.request.path, site.settings.indexnow_key
    if ask.operation == "sitemap":
        return _sitemap(site, ask)
    if key and path == f"/{key}.txt":
        return Reply(headers={"content-type": "text/plain"}, body=key.encode())
    if path == "/":
        return _home(site, ask)
    page = at_path(site.store, path if path.endswith("/") else f"{path}/")
    if page is not None:
        return _shown(site, page, ask) if path.endswith("/") else _moved(site, page, ask)
    page = guessed(site.store, path)
    return _moved(site, page, ask) if page else _missing()


def _home(site: Site, ask: Asked) -> Reply:
    if "page_id" not in ask.given:
        return _front_page(site, ask)
    number = ask.given["page_id"][-1]
    page = site.store.pages.get(int(number)) if number.isdecimal() else None
    return _moved(site, page, ask) if page and page.is_public else _missing()


def _front_page(site: Site, ask: Asked) -> Reply:
    """A list of all public pages by title, as a theme's front page has it."""
    live = sorted((page for page in site.store.pages.values() if page.is_public), key=_by_title)
    items = "".join(
        f'<li><a href="{escape(link_of(site.store, page, ask.home))}">'
        f"{escape(page.title, quote=False)}</a></li>\n"
        for page in live
    )
    body = _FRONT_PAGE.format(items=items)
    return Reply(headers={"content-type": HTML}, body=body.encode(errors="replace"))


def _by_title(page: Page) -> tuple[str, int]:
    return page.title, page.id


def _shown(site: Site, page: Page, ask: Asked) -> Reply:
    body = _PAGE.format(
        title=escape(page.title, quote=False),
        link=escape(link_of(site.store, page, ask.home)),
        id=page.id,
        content=page.content,
    )
    return Reply(headers={"content-type": HTML}, body=body.encode(errors="replace"))


def _moved(site: Site, page: Page, ask: Asked) -> Reply:
    return Reply(status=301, headers={"location": link_of(site.store, page, ask.home)})


def _missing() -> Reply:
    return Reply(status=404, headers={"content-type": HTML}, body=_MISSING.encode())


def _sitemap(site: Site, ask: Asked) -> Reply:
    if ask.request.path == "/wp-sitemap.xml":
        kind, tag, urls = "sitemapindex", "sitemap", [ask.home + SITEMAP_PAGE]
    elif ask.request.path == SITEMAP_PAGE:
        live = [page for page in site.store.pages.values() if page.is_public]
        kind, tag, urls = "urlset", "url", [link_of(site.store, each, ask.home) for each in live]
    else:
        return _missing()
    entries = "".join(f"<{tag}><loc>{escape(url)}</loc></{tag}>" for url in urls)
    body = _URLSET.format(kind=kind, entries=entries).encode()
    return Reply(headers={"content-type": "application/xml; charset=UTF-8"}, body=body)
