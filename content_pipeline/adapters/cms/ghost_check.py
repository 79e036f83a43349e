"""The preflight of a Ghost: what keeps us from publishing, and what people should know.

What belongs here: two questions that change nothing, and what their answers mean in words.
"""

from collections.abc import Callable
from datetime import datetime
from email.utils import parsedate_to_datetime

from content_pipeline.adapters.cms.ghost_api import GhostAPI
from content_pipeline.adapters.cms.ghost_pages import GLANCE_FIELDS, GhostForm
from content_pipeline.adapters.cms.ghost_token import LIFETIME_S
from content_pipeline.core.cms import CMSCheck
from content_pipeline.core.errors import CallFailed


def check_ghost(api: GhostAPI, form: GhostForm, *, clock: Callable[[], datetime]) -> CMSCheck:
    """What was found; never raises."""
    identity, problems, notes = "", [], []
    try:
        site, date = api.site()
        notes += _notes_on(site.get("url"), form, api.json.name)
        problems += _skew(date, clock())
        api.slice(1, fields=GLANCE_FIELDS, doing="asking whether the key is accepted")
        identity = (
            f"an integration of Ghost {_word(site.get('version'))}, {_word(site.get('title'))}"
        )
    except CallFailed as failed:
        problems.append(failed.failure.message)
    return CMSCheck(identity=identity, problems=tuple(problems), notes=tuple(notes))


def _notes_on(url: object, form: GhostForm, name: str) -> list[str]:
    if not isinstance(url, str) or url.rstrip("/") == form.base_url:
        return []
    return [
        f"{name} serves its pages below {url} while base_url is {form.base_url}: that is right "
        "only when something publishes the one as the other"
    ]


def _skew(date: str | None, now: datetime) -> list[str]:
    try:
        skew_s = (parsedate_to_datetime(date or "") - now).total_seconds()
    except (ValueError, TypeError):
        return []
    if abs(skew_s) < LIFETIME_S:
        return []
    way = "ahead of" if skew_s > 0 else "behind"
    return [
        f"the server's clock is {abs(skew_s):.0f} s {way} ours, so it refuses our tokens; let both "
        "keep time by NTP"
    ]


def _word(value: object) -> str:
    return value if isinstance(value, str) else "?"
