"""A document or a list of pages as a complete web page that needs nothing but a browser.

What belongs here: filling the templates, and the two texts that need escaping of their own: JSON
inside a script element, and the policy that lets the page load and run nothing. All links between
pages are relative and name files, so a site works under any base and opened from a disk.
"""

import base64
import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any
from urllib.parse import quote

from jinja2 import Environment, PackageLoader, StrictUndefined

from content_pipeline.adapters.cms.page_marker import INDEX_MARK, META_NAME, format_marker
from content_pipeline.core.cms import Document
from content_pipeline.core.ports import ListedPage

RIGHT_TO_LEFT = frozenset({"ar", "arc", "ckb", "dv", "fa", "he", "ps", "sd", "ug", "ur", "yi"})
"""Primary language subtags whose script runs from right to left."""

_JSON_IN_SCRIPT = {ord(c): f"\\u{ord(c):04x}" for c in "<>&\u2028\u2029"}
"""Inside a script element only ``</script`` and ``<!--`` matter; no ``<`` means neither occurs."""


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexGroup:
    """The pages listed under one letter."""

    letter: str
    pages: tuple[ListedPage, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexSheet:
    """One of the pages that together list a site."""

    site_title: str
    language: str
    url: str
    description: str
    groups: Sequence[IndexGroup]
    number: int
    """1-based."""
    file_names: Sequence[str]
    """Of all sheets, in order."""


def render_page(document: Document) -> bytes:
    """The web page of one document; equal documents give equal bytes."""
    levels = document.path.strip("/").count("/") + 1
    return _rendered(
        "page.html.j2",
        language=document.language,
        mark=format_marker(document.marker),
        home="../" * levels + "index.html",
        document=document,
        json_ld=script_json(document.json_ld),
    )


def render_index(sheet: IndexSheet) -> bytes:
    """The web page of one sheet of a site's index."""
    return _rendered(
        "index.html.j2", language=sheet.language, mark=INDEX_MARK, home="index.html", sheet=sheet
    )


def relative_link(path: str) -> str:
    """From the root's own pages to the file of ``path``, fit for an attribute of a link."""
    return f"./{quote(path.strip('/'))}/index.html"


def _rendered(template: str, *, language: str, **values: Any) -> bytes:
    style = _style()
    text = (
        _templates()
        .get_template(template)
        .render(
            meta_name=META_NAME,
            language=language,
            direction="rtl" if language.split("-")[0].lower() in RIGHT_TO_LEFT else "ltr",
            style=style,
            policy=_content_security_policy(style),
            **values,
        )
    )
    return text.encode()


def script_json(value: Mapping[str, Any]) -> str:
    """``value`` as JSON that may stand in a script element."""
    return json.dumps(value, ensure_ascii=False, sort_keys=True).translate(_JSON_IN_SCRIPT)


def _content_security_policy(style: str) -> str:
    """Nothing is loaded, run, framed or submitted; only our own style sheet applies."""
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    return f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"


@cache
def _style() -> str:
    return _templates().get_template("style.css.j2").render()


@cache
def _templates() -> Environment:
    environment = Environment(
        loader=PackageLoader("content_pipeline.adapters.cms"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters["relative_link"] = relative_link
    return environment
