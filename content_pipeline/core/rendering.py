"""From an article to the document a CMS is asked to hold: plain text and sanitised HTML.

What belongs here: everything that makes a model's text safe and uniform for any CMS. A model
writes whatever it likes, and a row of the table may have told it to. How a whole web page looks,
and how a CMS stores it, is the adapters'. Pure: the same article gives the same bytes.
"""

import html
import re
from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from urllib.parse import urlsplit

import nh3
from markdown_it import MarkdownIt
from markdown_it.rules_core import StateCore
from markdown_it.token import Token

from content_pipeline.core.article import Article, Section
from content_pipeline.core.cms import Document, Marker
from content_pipeline.core.identity import content_hash

ALLOWED_TAGS = frozenset(
    {"p", "br", "hr", "h2", "h3", "h4", "ul", "ol", "li", "strong", "em", "code", "pre", "a"}
    | {"blockquote", "table", "thead", "tbody", "tr", "th", "td"}
)
"""What Markdown needs and nothing that loads, runs, submits or styles anything."""

ALLOWED_ATTRIBUTES: Mapping[str, frozenset[str]] = {
    "*": frozenset(),  # the sanitiser allows title and lang everywhere unless told otherwise
    "a": frozenset({"href"}),
    "ol": frozenset({"start"}),
}

LINK_REL = "nofollow noopener"
"""Nobody checked where a model's links lead, so the site does not vouch for them."""

_INVISIBLE = re.compile(
    "[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u200b\u202a-\u202e\u2060\u2066-\u2069\ufeff"
    "\ud800-\udfff\ufffe\uffff]"
)
"""Controls, halves of characters, and the marks that reorder or hide text (CVE-2021-42574)."""

_TAG = re.compile(r"<(/?)([A-Za-z][A-Za-z0-9]*)(?:\s[^<>]*)?/?>")
_LINE_BREAK = re.compile(r"<br ?/?>", re.IGNORECASE)


def render_document(
    article: Article,
    *,
    page_id: str,
    revision: int,
    site_title: str,
    language: str,
    path: str,
    url: str,
) -> Document:
    """The document that publishes ``article`` as ``revision`` of the page at ``path``.

    ``path`` is canonical below the site's base, ``url`` the canonical absolute URL of it.
    """
    title = plain_text(article.title)
    meta_description = plain_text(article.meta_description)
    body_html = render_body(article)
    return Document(
        marker=Marker(
            page_id=page_id,
            revision=revision,
            content_hash=content_hash(title, meta_description, body_html),
        ),
        site_title=site_title,
        language=language,
        path=path,
        url=url,
        title=title,
        meta_description=meta_description,
        body_html=body_html,
        json_ld={
            "@context": "https://schema.org",
            "@type": "Article",
            "headline": title,
            "description": meta_description,
            "inLanguage": language,
            "url": url,
            "mainEntityOfPage": {"@type": "WebPage", "@id": url},
            "isPartOf": {"@type": "WebSite", "name": site_title},
        },
    )


def render_body(article: Article) -> str:
    """Sanitised HTML of the introduction and the sections, each under an ``h2``."""
    parts = [_markdown().render(_visible(article.introduction))]
    for section in article.sections:
        parts += _rendered_section(section)
    # Before the sanitiser, never after it: taking a character out of `java<U+202E>script:` later
    # would make a live link out of one that was judged harmless.
    return nh3.clean(
        _visible("".join(parts)),
        tags=ALLOWED_TAGS,
        attributes=ALLOWED_ATTRIBUTES,
        link_rel=LINK_REL,
        url_schemes={"http", "https"},
        url_relative="deny",
    ).strip()


def plain_text(text: str) -> str:
    """``text`` as one visible line: Markdown and pairs of HTML tags taken off, spacing folded.

    A lone tag stays, as text, because it is what the sentence is about: "The <canvas> element".
    The result is not HTML: whoever puts it into a page escapes it.
    """
    line = _visible(" ".join(text.split()))
    return " ".join(_visible(_without_tag_pairs(_without_marks(line))).split())


def _rendered_section(section: Section) -> Iterable[str]:
    heading = plain_text(section.heading)
    if heading:
        yield f"<h2>{html.escape(heading, quote=False)}</h2>\n"
    yield _markdown().render(_visible(section.body_markdown))


def _visible(text: str) -> str:
    return _INVISIBLE.sub("", text)


def _without_marks(line: str) -> str:
    """What a reader sees of one line of Markdown, emphasis, links and entities resolved."""
    inline = _markdown().parseInline(line)[0].children or []
    return "".join(" " if "break" in token.type else token.content for token in inline)


def _without_tag_pairs(line: str) -> str:
    """``line`` without the tags that have a partner; what they enclose stays."""
    opened: dict[str, list[tuple[int, int]]] = {}
    paired: list[tuple[int, int]] = []
    for tag in _TAG.finditer(line):
        unclosed = opened.setdefault(tag[2].lower(), [])
        if not tag[1]:
            unclosed.append(tag.span())
        elif unclosed:
            paired += [unclosed.pop(), tag.span()]
    kept, position = [], 0
    for start, end in sorted(paired):
        kept.append(line[position:start])
        position = end
    return "".join([*kept, line[position:]])


@cache
def _markdown() -> MarkdownIt:
    """CommonMark with tables; raw HTML is text, and our rules judge links and headings."""
    parser = MarkdownIt("commonmark", {"html": False}).enable("table")
    parser.core.ruler.push("site_rules", _apply_site_rules)
    return parser


def _apply_site_rules(state: StateCore) -> None:
    """Headings below the section's own level; in text, no images and only public links."""
    for token in state.tokens:
        if token.type in ("heading_open", "heading_close"):
            token.tag = "h3" if token.tag in ("h1", "h2", "h3") else "h4"
        if token.children is not None:
            token.children = list(_readable(token.children))


def _readable(tokens: Sequence[Token]) -> Iterable[Token]:
    """``tokens`` with images as their words, ``<br>`` as a break, and no link but public ones."""
    kept_links: list[bool] = []
    for token in tokens:
        if token.type == "link_open":
            kept_links.append(_is_public_link(str(token.attrGet("href"))))
            if not kept_links[-1]:
                continue
        elif token.type == "link_close" and not kept_links.pop():
            continue
        if token.type == "image":
            yield from _readable(token.children or [])
        elif token.type == "text":
            yield from _broken_lines(token.content)
        else:
            yield token


def _broken_lines(text: str) -> Iterable[Token]:
    """``text`` with the one tag that models write into table cells turned into a real break."""
    for number, line in enumerate(_LINE_BREAK.split(text)):
        if number:
            yield Token("hardbreak", "br", 0)
        yield Token("text", "", 0, content=line)


def _is_public_link(href: str) -> bool:
    """Whether ``href`` is an absolute web address that does not dress up as another one.

    A relative link is a guess of the model about a site it has never seen.
    """
    try:
        parts = urlsplit(href)
    except ValueError:
        return False
    return parts.scheme in ("http", "https") and bool(parts.hostname) and "@" not in parts.netloc
