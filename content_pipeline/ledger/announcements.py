"""Announcements: what each hook of a site was told of each page, and so what is news to it.

What belongs here: the difference between what the ledger proves and what a hook was last told, and
how each hook stands. When a hook is told is decided by its effect, in ``effects``.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from sqlalchemy import (
    Connection,
    Row,
    Text,
    and_,
    bindparam,
    case,
    cast,
    column,
    func,
    literal,
    null,
    select,
    update,
)
from sqlalchemy.dialects.postgresql import ARRAY, distinct_on
from sqlalchemy.dialects.postgresql import insert as upsert

from content_pipeline.core.identity import digest
from content_pipeline.core.ports import ListedPage, SiteNews, WithdrawnPage
from content_pipeline.core.site import SiteSettings
from content_pipeline.ledger.effects import SiteEffect
from content_pipeline.ledger.publications import ON_THE_SITE
from content_pipeline.ledger.schema import (
    EffectState,
    announced_pages,
    effects,
    pages,
    site_hooks,
    sites,
)


def meet_hooks(connection: Connection, site: str, tells_existing: Mapping[str, bool]) -> None:
    """Put on record which hooks are told of changes, before anything more is published.

    ``tells_existing``: kind of hook → whether pages that are public already are news to it. A hook
    that is known keeps what it was told; of a site without topics nothing is recorded.
    """
    for kind in sorted(tells_existing):
        met = connection.execute(
            upsert(site_hooks)
            .from_select(
                ["site", "kind"],
                select(sites.c.site, literal(kind, Text)).where(sites.c.site == site),
            )
            .on_conflict_do_nothing()
            .returning(site_hooks.c.kind)
        ).one_or_none()
        if met is not None and not tells_existing[kind]:
            connection.execute(
                upsert(announced_pages).from_select(
                    ["site", "kind", "page_id", "content_hash"],
                    select(
                        pages.c.site,
                        literal(kind, Text),
                        pages.c.page_id,
                        pages.c.published_content_hash,
                    ).where(pages.c.site == site, ON_THE_SITE),
                )
            )


@dataclass(frozen=True, slots=True, kw_only=True)
class Batch:
    """The news of one call."""

    news: SiteNews
    shown: Mapping[str, str | None] = field(repr=False)
    """Page id → hash of what visitors see of it; None: nothing any more."""


_SHOWN = case((ON_THE_SITE, pages.c.published_content_hash), else_=null())
_SINCE = case(
    (ON_THE_SITE, pages.c.content_changed_at),
    else_=func.coalesce(pages.c.withdrawn_at, pages.c.site_change_found_at),
)
_NEWS = (
    select(pages, _SHOWN.label("shown"), _SINCE.label("since"))
    .outerjoin(
        announced_pages,
        and_(
            announced_pages.c.site == pages.c.site,
            announced_pages.c.kind == bindparam("told_kind", type_=Text),
            announced_pages.c.page_id == pages.c.page_id,
        ),
    )
    .where(pages.c.site == bindparam("of_site", type_=Text))
    .where(_SHOWN.is_distinct_from(announced_pages.c.content_hash))
    .order_by(pages.c.path)
    .limit(bindparam("most"))
)


def next_batch(
    connection: Connection, site: SiteSettings, effect: SiteEffect, most: int
) -> Batch | None:
    """The first ``most`` pages, by path, that are news to the effect's hook; None: nothing is."""
    values = {"of_site": site.site, "told_kind": effect.kind, "most": most}
    rows = connection.execute(_NEWS, values).all()
    if not rows:
        return None
    news = SiteNews(
        site=site.site,
        site_title=site.title,
        base_url=site.base_url,
        delivery_id=_delivery_id(effect, rows),
        changed=tuple(_listed(site, row) for row in rows if row.shown is not None),
        withdrawn=tuple(
            WithdrawnPage(path=row.path, url=site.url_of(row.path))
            for row in rows
            if row.shown is None
        ),
    )
    return Batch(news=news, shown={row.page_id: row.shown for row in rows})


def _listed(site: SiteSettings, row: Row[Any]) -> ListedPage:
    return ListedPage(
        path=row.path,
        url=site.url_of(row.path),
        title=row.published_title,
        meta_description=row.published_meta_description,
        modified_at=row.content_changed_at,
    )


def _delivery_id(effect: SiteEffect, rows: Collection[Row[Any]]) -> str:
    """Names the effect and the very contents: who drops what it knows must not drop news.

    A call whose answer was lost may be repeated after one of its pages changed once more.
    """
    contents = [f"{row.page_id} {row.shown or ''} {row.since.isoformat()}" for row in rows]
    return digest(effect.effect_key, *contents)[:32]


def mark_told(connection: Connection, site: str, effect: SiteEffect, batch: Batch) -> None:
    """The hook was told of ``batch``: of its pages nothing is news any more."""
    page_ids = list(batch.shown)
    connection.execute(
        _MARK,
        {
            "of_site": site,
            "told_kind": effect.kind,
            "page_ids": page_ids,
            "hashes": [batch.shown[page_id] for page_id in page_ids],
        },
    )
    count_told(connection, effect, len(page_ids))


_TOLD = (
    func.unnest(
        cast(bindparam("page_ids"), ARRAY(Text)),
        cast(bindparam("hashes"), ARRAY(Text)),
    )
    .table_valued(column("page_id", Text), column("content_hash", Text), name="told")
    .render_derived()
)
_MARKED = upsert(announced_pages).from_select(
    ["site", "kind", "page_id", "content_hash"],
    select(
        bindparam("of_site", type_=Text),
        bindparam("told_kind", type_=Text),
        _TOLD.c.page_id,
        _TOLD.c.content_hash,
    ),
)
_MARK = _MARKED.on_conflict_do_update(
    index_elements=[announced_pages.c.site, announced_pages.c.kind, announced_pages.c.page_id],
    set_={
        "content_hash": _MARKED.excluded.content_hash,
        "announced_at": func.clock_timestamp(),
    },
)


def count_told(connection: Connection, effect: SiteEffect, told: int) -> None:
    """Put on record that so many more pages were told of."""
    connection.execute(
        update(effects)
        .where(effects.c.effect_key == effect.effect_key)
        .values(pages_told=func.coalesce(effects.c.pages_told, 0) + told)
    )


def keep(connection: Connection, effect: SiteEffect) -> bool:
    """Go on with an announcement that was taken; False when another dispatcher took it over."""
    kept = connection.execute(
        update(effects)
        .where(effects.c.effect_key == effect.effect_key)
        .where(effects.c.state == EffectState.IN_PROGRESS, effects.c.attempts == effect.attempts)
        .values(updated_at=func.clock_timestamp())
    )
    return kept.rowcount == 1


def hurry(connection: Connection, site: str, kinds: Collection[str]) -> None:
    """Let announcements of ``kinds`` wait no longer for more to tell; a retry keeps its wait."""
    connection.execute(
        update(effects)
        .where(effects.c.site == site, effects.c.page_id.is_(None))
        .where(effects.c.kind.in_(kinds), effects.c.state == EffectState.PENDING)
        .where(effects.c.failure_class.is_(None))
        .values(next_attempt_at=func.clock_timestamp())
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class HookStanding:
    """How one hook of a site stands."""

    kind: str
    state: EffectState
    """``pending`` while anything is to be told, else how its latest announcement ended."""
    called_at: datetime | None
    """When it was last told, or tried to be; None: never yet."""
    outcome: str | None
    """Of its latest announcement that ended well."""
    result_reference: str | None
    pages_told: int | None
    """By that announcement."""
    failure_class: str | None
    """Of its latest call, if that failed."""
    failure_message: str | None
    next_attempt_at: datetime | None
    """None: nothing is to be told."""
    wait_s: float | None
    """Seconds until then; 0 when it is due."""

    @property
    def gathers(self) -> bool:
        """Whether it merely waits for more to tell."""
        return bool(self.wait_s) and self.failure_class is None


def standings(connection: Connection, site: str) -> tuple[HookStanding, ...]:
    """Every hook that was ever to be told anything, by kind."""
    rows = connection.execute(_LATEST, {"of_site": site}).all()
    by_kind: dict[str, dict[str, Row[Any]]] = {}
    for row in rows:
        by_kind.setdefault(row.kind, {})[row.role] = row
    return tuple(_standing(kind, found) for kind, found in sorted(by_kind.items()))


_ROLE = case(
    (effects.c.state == EffectState.PENDING, "pending"),
    (effects.c.state == EffectState.DONE, "done"),
    else_="open",
).label("role")
_LATEST = (
    select(
        effects,
        _ROLE,
        func.extract("epoch", effects.c.next_attempt_at - func.clock_timestamp()).label("left_s"),
    )
    .where(effects.c.site == bindparam("of_site", type_=Text), effects.c.page_id.is_(None))
    .where(effects.c.outcome.is_distinct_from("merged"))
    .ext(distinct_on(effects.c.kind, _ROLE))
    .order_by(effects.c.kind, _ROLE, effects.c.requested_at.desc(), effects.c.updated_at.desc())
)


def _standing(kind: str, found: Mapping[str, Row[Any]]) -> HookStanding:
    pending, done, other = (found.get(role) for role in ("pending", "done", "open"))
    if other is not None and done is not None and done.requested_at > other.requested_at:
        other = None  # it failed before its latest success
    latest = pending or other or done
    assert latest is not None
    called = [row for row in (pending, done, other) if row is not None and row.attempts]
    return HookStanding(
        kind=kind,
        state=EffectState(latest.state),
        called_at=max((row.updated_at for row in called), default=None),
        outcome=done.outcome if done else None,
        result_reference=done.result_reference if done else None,
        pages_told=done.pages_told if done else None,
        failure_class=latest.failure_class or (other.failure_class if other else None),
        failure_message=latest.failure_message or (other.failure_message if other else None),
        next_attempt_at=pending.next_attempt_at if pending else None,
        wait_s=max(0.0, float(pending.left_s)) if pending else None,
    )


def seconds_until_told(
    connection: Connection, site: str, kinds: Collection[str] | None = None
) -> float | None:
    """Until the next announcement that merely waits for more to tell is due; None: none does.

    0 for one that is due: whoever found nothing to tell a moment ago would else miss it.
    """
    waits = [
        found.wait_s
        for found in standings(connection, site)
        if found.failure_class is None and (kinds is None or found.kind in kinds)
    ]
    return min((wait_s for wait_s in waits if wait_s is not None), default=None)
