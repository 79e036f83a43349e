"""The preflight of a WordPress site: what keeps us from publishing, and what people should know.

What belongs here: three questions that change nothing, and what their answers mean in words.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from email.utils import parsedate_to_datetime

from content_pipeline.adapters.cms.wordpress_pages import Json, PageForm
from content_pipeline.adapters.cms.wordpress_rest import WordPressREST
from content_pipeline.core.cms import CMSCheck
from content_pipeline.core.errors import CallFailed

CLOCK_SKEW_S = 60.0
"""WordPress schedules what is dated a minute ahead of its clock instead of publishing it."""

GUARD_NAMESPACE = "content-pipeline/v1"

_VERSION = re.compile(rb'generator="WordPress/([0-9][0-9A-Za-z.-]{0,30})"')


@dataclass(slots=True, kw_only=True)
class _Findings:
    identity: str = ""
    problems: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)


def check_site(
    rest: WordPressREST, form: PageForm, *, content_type: str, clock: Callable[[], datetime]
) -> CMSCheck:
    """What was found; never raises."""
    found = _Findings()
    try:
        index, date = rest.index()
        _check_index(found, index, rest, form)
        _check_clock(found, date, clock())
        _check_account(found, rest.me(), content_type, form)
        found.identity += _version(rest)
        _check_permalinks(found, rest, form)
    except CallFailed as failed:
        found.problems.append(failed.failure.message)
    return CMSCheck(
        identity=found.identity, problems=tuple(found.problems), notes=tuple(found.notes)
    )


def _check_index(found: _Findings, index: Json, rest: WordPressREST, form: PageForm) -> None:
    home = index.get("home")
    if isinstance(home, str) and home.rstrip("/") != form.base_url:
        found.notes.append(
            f"{rest.name} serves its pages below {home} while base_url is {form.base_url}: that is "
            "right only when something publishes the one as the other"
        )
    namespaces = index.get("namespaces")
    if isinstance(namespaces, list) and GUARD_NAMESPACE in namespaces:
        found.notes.append("the companion plugin is installed: second pages and stale writes fail")
    else:
        found.notes.append(
            "the companion plugin is not installed: an edit made within the second of our write "
            "can be overwritten; see companions/wordpress"
        )


def _check_clock(found: _Findings, date: str | None, now: datetime) -> None:
    try:
        skew_s = (parsedate_to_datetime(date or "") - now).total_seconds()
    except (ValueError, TypeError):
        return
    if abs(skew_s) > CLOCK_SKEW_S:
        way = "ahead of" if skew_s > 0 else "behind"
        found.notes.append(
            f"the server's clock is {abs(skew_s):.0f} s {way} ours; times on the site will be off, "
            "so let it keep time by NTP"
        )


def _check_account(found: _Findings, me: Json, content_type: str, form: PageForm) -> None:
    roles, rights = me.get("roles"), me.get("capabilities")
    names = ", ".join(map(str, roles)) if isinstance(roles, list) and roles else "no role"
    found.identity = f"{me.get('username', '?')} ({names})"
    held = rights if isinstance(rights, Mapping) else {}
    needed = [f"{verb}_{content_type}" for verb in ("edit", "edit_others", "publish", "delete")]
    needed += [f"{verb}_published_{content_type}" for verb in ("edit", "delete")]
    missing = [right for right in needed if held.get(right) is not True]
    if missing:
        found.problems.append(
            f"the user {me.get('username', '?')} lacks {', '.join(missing)}; give it the role of "
            "an editor"
        )
    if held.get("unfiltered_html") is not True:
        words = (
            "the user may not write unfiltered HTML, so WordPress takes elements out of what it is "
            "sent; an altered draft is not published"
        )
        if form.json_ld:
            found.problems.append(f"{words}. Give it that right, or set cms.json_ld to false")
        else:
            found.notes.append(words)


def _check_permalinks(found: _Findings, rest: WordPressREST, form: PageForm) -> None:
    """Only a page tells what addresses look like; a site without any is not asked further."""
    listed = rest.slice(1, fields="id,slug,status,permalink_template", doing="asking for addresses")
    slugged = [page for page in listed.pages if page.get("slug")]
    try:
        plain = bool(slugged) and all(form.path(page).startswith("/?") for page in slugged)
    except ValueError:
        plain = False
    if plain:
        found.problems.append(
            f"{rest.name} uses plain permalinks, so no page has a path; choose Post name under "
            "Settings, Permalinks"
        )


def _version(rest: WordPressREST) -> str:
    """The version of WordPress, where the site does not hide it."""
    try:
        version = _VERSION.search(rest.generator())
    except CallFailed:
        return " on WordPress"
    return f" on WordPress {version[1].decode()}" if version else " on WordPress"
