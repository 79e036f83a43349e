"""One page as a content file of a static site: YAML front matter, and HTML that is left as it is.

What belongs here: writing such a file, reading whatever stands in one, and the proof that what was
written reads back as meant. A generator parses every file of a site before it shows any, so one
broken page would keep all others from the public: none ever leaves here.
"""

import json
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, date, datetime
from typing import Any

import yaml

from content_pipeline.adapters.cms.page_html import script_json
from content_pipeline.adapters.cms.page_marker import parse_marker
from content_pipeline.adapters.cms.page_reading import says_what_it_is_marked
from content_pipeline.core.cms import Document, Marker, RemoteContent
from content_pipeline.core.cms_settings import RESERVED_FRONT_MATTER
from content_pipeline.core.errors import CallFailed
from content_pipeline.core.failures import Failure, FailureClass
from content_pipeline.core.identity import digest

Scalar = str | int | bool

MAX_FRONT_MATTER = 64 * 1024
"""Ours has some hundred bytes; of a stranger's nothing beyond this is parsed."""

_FRONT = re.compile(r"\A\ufeff?(---|\+\+\+)[ \t]*\r?\n(.*?)^\1[ \t]*(?:\r?\n|\Z)", re.DOTALL | re.M)
_KEY = re.compile(r"([A-Za-z_][\w-]*)[ \t]*:")
_TEMPLATE_OPENS = re.compile(r"\{(?=[{%#])")
"""What generators take for the start of a shortcode or tag of theirs, wherever it stands."""
_ENCODED = "&#123;"
_CUT = "<!--more-->"
"""Generators cut a page in two where this stands."""
_YAML_UNSAFE = re.compile("[\x7f-\xa0\u2028\u2029\ufeff]")
"""JSON takes these as they are; YAML breaks lines at them or refuses them."""

_Loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)


@dataclass(frozen=True, slots=True, kw_only=True)
class PageFile:
    """What a content file says."""

    front: Mapping[str, Any]
    """Keys in lower case, as generators read them; empty when there is none that can be read."""
    lines: str = field(repr=False)
    """The text of the front matter."""
    body: str = field(repr=False)

    @property
    def marker(self) -> Marker | None:
        """Our mark; None when it is not whole."""
        key, revision, content = (self.front.get(f"cp_{part}") for part in ("key", "rev", "hash"))
        return parse_marker(f"page={key} rev={revision} hash={content}")

    @property
    def content(self) -> RemoteContent:
        """Title, description and body; of a page of ours the body as we were given it."""
        body = self.body.removesuffix("\n")
        return RemoteContent(
            title=str(self.front.get("title") or ""),
            meta_description=str(self.front.get("description") or ""),
            body_html=body if self.marker is None else _decoded(body),
        )

    @property
    def intact(self) -> bool:
        """Whether the text is what our mark was made for."""
        return says_what_it_is_marked(self.content, self.marker)

    @property
    def fingerprint(self) -> str:
        """Digest of title, description and body."""
        content = self.content
        return digest("text", content.title, content.meta_description, content.body_html)

    def is_hidden(self, now: datetime) -> bool:
        """Whether a generator leaves the page out at the time ``now``."""
        build = self.front.get("build", self.front.get("_build"))
        shown = build.get("render", "always") if isinstance(build, dict) else "always"
        begins = _time(self.front.get("publishdate")) or _time(self.front.get("date"))
        ends = _time(self.front.get("expirydate"))
        return (
            self.front.get("draft") is True
            or str(shown).lower() in ("never", "link", "false")
            or (begins is not None and begins > now)
            or (ends is not None and ends <= now)
        )


def read_page_file(data: bytes) -> PageFile:
    """What ``data`` says; never raises. Without front matter that can be read all is body."""
    text = data.decode(errors="replace")
    found = _FRONT.match(text)
    if found is None or len(found[2]) > MAX_FRONT_MATTER:
        return PageFile(front={}, lines="", body=text)
    front = _parsed(found[2], is_toml=found[1] == "+++")
    return PageFile(front=front, lines=found[2], body=text[found.end() :])


def write_page_file(
    document: Document, *, over: PageFile | None, extra: Mapping[str, Scalar], now: datetime
) -> bytes:
    """The content file of ``document``.

    ``over`` is the page of ours that it replaces: the date of its first publish and what people
    added to its front matter stay. ``extra`` are further keys of every page of the site. Raises
    CallFailed: invalid_input for a text that no generator would leave as it is, conflict for front
    matter that cannot be kept.
    """
    keeps = over is not None and over.marker is not None
    values: dict[str, Scalar] = {
        "title": document.title,
        "description": document.meta_description,
        "url": document.path,
        "json_ld": script_json(document.json_ld),
        "cp_key": document.marker.page_id,
        "cp_rev": document.marker.revision,
        "cp_hash": document.marker.content_hash,
    }
    kept = _kept(over, set(extra)) if over is not None and keeps else ""
    since = _time(over.front.get("date")) if over is not None and keeps else None
    lines = [f"{key}: {_scalar(value)}" for key, value in (values | dict(extra)).items()]
    lines.insert(3, f"date: {_stamp(min(since or now, now))}")
    lines.insert(4, f"lastmod: {_stamp(now)}")
    body = _TEMPLATE_OPENS.sub(_ENCODED, document.body_html)
    data = f"---\n{chr(10).join(lines)}\n{kept}---\n{body}\n".encode()
    _refuse_unless_it_reads_back(data, document, kept=bool(kept), now=now)
    return data


def _refuse_unless_it_reads_back(
    data: bytes, document: Document, *, kept: bool, now: datetime
) -> None:
    page = read_page_file(data)
    wanted = (document.title, document.meta_description, document.body_html)
    content = page.content
    whole = (
        (content.title, content.meta_description, content.body_html) == wanted
        and page.marker == document.marker
        and page.front.get("url") == document.path
        and not page.is_hidden(now)
        and _CUT not in document.body_html
    )
    if whole:
        return
    if kept:
        failure_class = FailureClass.CONFLICT
        why = "the front matter that people added to it cannot be kept; take it off or correct it"
    else:
        failure_class = FailureClass.INVALID_INPUT
        why = "a static site generator would not leave its text as it is"
    raise CallFailed(
        Failure(failure_class=failure_class, message=f"{document.path} was not committed: {why}")
    )


def _parsed(lines: str, *, is_toml: bool) -> Mapping[str, Any]:
    try:
        found = tomllib.loads(lines) if is_toml else yaml.load(lines, Loader=_Loader)  # noqa: S506 - a safe loader
    except (yaml.YAMLError, ValueError, RecursionError):
        return {}
    if not isinstance(found, dict):
        return {}
    return {str(key).lower(): value for key, value in found.items()}


def _kept(over: PageFile, extra: set[str]) -> str:
    """The lines of the front matter under keys that are not ours, to the letter."""
    kept: list[str] = []
    keep = True
    for line in over.lines.splitlines(keepends=True):
        key = _KEY.match(line)
        if key is not None:
            keep = key[1].lower() not in RESERVED_FRONT_MATTER and key[1] not in extra
        if keep or line.startswith("#"):  # a comment is about what follows it
            kept.append(line)
    return "".join(kept)


def _scalar(value: Scalar) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return _YAML_UNSAFE.sub(lambda found: f"\\u{ord(found[0]):04x}", text)


def _decoded(body: str) -> str:
    return body.replace(_ENCODED, "{")


def _stamp(at: datetime) -> str:
    return at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def _time(value: object) -> datetime | None:
    """A time of front matter, which may be a date, a time without a zone, or text."""
    if isinstance(value, str):
        try:
            value = datetime.fromisoformat(value)
        except ValueError:
            return None
    if isinstance(value, datetime):
        return value if value.tzinfo else value.replace(tzinfo=UTC)
    if isinstance(value, date):
        return datetime(value.year, value.month, value.day, tzinfo=UTC)
    return None
