"""Effects: one row for every outward intent (the outbox), keyed by the business operation.

What belongs here: the publish effect of a page's revision, and the effects of a site (sitemap,
index page) that follow from published pages. A site effect is wanted once however many pages ask
for it: 10,000 publishes leave one pending row.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from sqlalchemy import (
    ColumnElement,
    Connection,
    Float,
    Text,
    and_,
    bindparam,
    column,
    exists,
    func,
    literal,
    literal_column,
    select,
    text,
    true,
    update,
)
from sqlalchemy.dialects.postgresql import ARRAY
from sqlalchemy.dialects.postgresql import insert as upsert
from sqlalchemy.exc import IntegrityError

from content_pipeline.core.failures import Failure
from content_pipeline.core.identity import publish_key
from content_pipeline.ledger.jobs import PageJob
from content_pipeline.ledger.schema import EffectState, effect_numbers, effects, seconds_from_now

PUBLISH = "publish"

# These stand in the text of a statement: behind a parameter the planner may not use the partial
# index of what is still to be told, and would read all that was ever told.
_PENDING = literal_column(f"'{EffectState.PENDING}'", Text)
_IN_PROGRESS = literal_column(f"'{EffectState.IN_PROGRESS}'", Text)


def begin_publish(connection: Connection, job: PageJob, *, request_hash: str) -> str:
    """Record the intent to publish the job's revision; the effect's key is returned."""
    assert job.revision is not None
    key = publish_key(job.page_id, job.revision)
    connection.execute(
        _BEGIN,
        {
            "effect_key": key,
            "site": job.site,
            "kind": PUBLISH,
            "page_id": job.page_id,
            "page_job_id": job.page_job_id,
            "revision": job.revision,
            "owner": job.owner,
            "request_hash": request_hash,
            "state": EffectState.IN_PROGRESS,
            "attempts": 1,
        },
    )
    return key


_BEGIN = upsert(effects).on_conflict_do_update(
    index_elements=[effects.c.effect_key],
    set_={
        "state": EffectState.IN_PROGRESS,
        "attempts": effects.c.attempts + 1,
        "absent_looks": 0,
        "unknown_looks": 0,
        "outcome": None,
        "finished_at": None,
        "updated_at": func.clock_timestamp(),
    },
)


def note_reference(connection: Connection, key: str, reference: str) -> None:
    """The CMS's id of what the publish has made so far."""
    connection.execute(
        update(effects).where(effects.c.effect_key == key).values(result_reference=reference)
    )


def last_reference(connection: Connection, page_id: str) -> str | None:
    """The CMS's id that the page's publishes met last; None before any."""
    found: str | None = connection.execute(_LAST_REFERENCE, {"of_page": page_id}).scalar()
    return found


_LAST_REFERENCE = (
    select(effects.c.result_reference)
    .where(effects.c.page_id == bindparam("of_page"), effects.c.kind == PUBLISH)
    .where(effects.c.result_reference.is_not(None))
    .order_by(effects.c.updated_at.desc())
    .limit(1)
)


def finish(connection: Connection, key: str, *, outcome: str, result_reference: str) -> None:
    """The effect is in place; ``outcome`` says how (created, replaced, confirmed …)."""
    connection.execute(
        _FINISH, {"finishing": key, "outcome": outcome, "result_reference": result_reference}
    )


_FINISH = (
    update(effects)
    .where(effects.c.effect_key == bindparam("finishing"))
    .values(
        state=EffectState.DONE,
        failure_class=None,
        failure_message=None,
        finished_at=func.clock_timestamp(),
        updated_at=func.clock_timestamp(),
    )
)


def mark(
    connection: Connection,
    key: str,
    state: EffectState,
    failure: Failure,
    *,
    wait_s: float = 0,
    absent_looks: int | None = None,
    unknown_looks: int | None = None,
) -> None:
    """The effect is not in place: pending again, uncertain, or failed for good."""
    values: dict[str, object] = {
        "state": state,
        "outcome": None,
        "failure_class": failure.failure_class,
        "failure_message": failure.message,
        "next_attempt_at": seconds_from_now(wait_s),
        "updated_at": func.clock_timestamp(),
    }
    if absent_looks is not None:
        values["absent_looks"] = absent_looks
    if unknown_looks is not None:
        values["unknown_looks"] = unknown_looks
    connection.execute(update(effects).where(effects.c.effect_key == key).values(values))


@dataclass(frozen=True, slots=True, kw_only=True)
class Looks:
    """How often the CMS was asked about an uncertain publish, by answer."""

    absent: int
    unknown: int


def looks(connection: Connection, key: str) -> Looks:
    """The looks so far at an uncertain publish."""
    row = connection.execute(
        select(effects.c.absent_looks, effects.c.unknown_looks).where(effects.c.effect_key == key)
    ).one()
    return Looks(absent=row.absent_looks, unknown=row.unknown_looks)


def want_for_site(
    connection: Connection, site: str, delays_s: Mapping[str, float], owner: str
) -> None:
    """Ask that a site's hooks be told of what this transaction publishes.

    ``delays_s``: kind of hook → seconds from now that its announcement waits for more to tell. An
    effect already pending keeps its time, so a stream of changes never puts it off. It is touched,
    which locks it until this transaction ends: a dispatcher that takes it therefore always sees
    the pages of everyone who relied on it. Locked in the order of kinds, as dispatchers do.
    """
    kinds = sorted(delays_s)
    values = {"kinds": kinds, "delays_s": [delays_s[kind] for kind in kinds]}
    connection.execute(_WANT, {"of_site": site, "of_owner": owner, **values})


_SITE = bindparam("of_site", type_=Text)
_WANTED = (
    func.unnest(bindparam("kinds", type_=ARRAY(Text)), bindparam("delays_s", type_=ARRAY(Float)))
    .table_valued(column("kind", Text), column("delay_s", Float), name="wanted")
    .render_derived()
)
_KIND = _WANTED.c.kind
_WANT = (
    upsert(effects)
    .from_select(
        ["effect_key", "site", "kind", "owner", "state", "next_attempt_at"],
        select(
            func.concat("site:", _SITE, ":", _KIND, ":", effect_numbers.next_value()),
            _SITE,
            _KIND,
            bindparam("of_owner", type_=Text),
            literal(EffectState.PENDING, Text),
            seconds_from_now(_WANTED.c.delay_s),
        ),
    )
    .on_conflict_do_update(
        index_elements=[effects.c.site, effects.c.kind],
        index_where=text("page_id IS NULL AND state = 'pending'"),
        set_={"requested_at": func.clock_timestamp()},
    )
)


@dataclass(frozen=True, slots=True, kw_only=True)
class SiteEffect:
    """One pending or interrupted announcement."""

    effect_key: str
    kind: str
    attempts: int


def take_site_effects(
    connection: Connection, site: str, stale_s: float, kinds: Collection[str] | None = None
) -> list[SiteEffect]:
    """Take over what a site's hooks are to be told now; ``kinds``: only these.

    Also what another dispatcher took more than ``stale_s`` seconds ago and never finished: telling
    a hook twice is harmless, not telling it is not. What another is telling just now waits for it:
    it read the pages earlier, and must not be the last to write.
    """
    long_ago = seconds_from_now(-stale_s)
    stale = and_(effects.c.state == _IN_PROGRESS, effects.c.updated_at <= long_ago)
    other = effects.alias("other")
    being_told = exists().where(
        other.c.site == effects.c.site,
        other.c.kind == effects.c.kind,
        other.c.page_id.is_(None),
        other.c.state == _IN_PROGRESS,
        other.c.updated_at > long_ago,
    )
    due = and_(
        effects.c.state == _PENDING,
        effects.c.next_attempt_at <= func.clock_timestamp(),
        ~being_told,
    )
    # Locked one by one in the order of kinds, as by the pages that want them: an UPDATE alone takes
    # rows as they lie, and met a page half-way (12 deadlocks in 15 s under load).
    locked = (
        select(effects.c.effect_key)
        .where(effects.c.site == site, effects.c.page_id.is_(None), due | stale, _among(kinds))
        .order_by(effects.c.kind, effects.c.effect_key)
        .with_for_update(key_share=True)
        .cte("locked")
    )
    rows = connection.execute(
        update(effects)
        .where(effects.c.effect_key.in_(select(locked.c.effect_key)))
        .values(
            state=EffectState.IN_PROGRESS,
            attempts=effects.c.attempts + 1,
            updated_at=func.clock_timestamp(),
        )
        .returning(effects.c.effect_key, effects.c.kind, effects.c.attempts)
    ).all()
    return [
        SiteEffect(effect_key=row.effect_key, kind=row.kind, attempts=row.attempts) for row in rows
    ]


def _among(kinds: Collection[str] | None) -> ColumnElement[bool]:
    """Whether an effect is of one of ``kinds``; None: of any."""
    return true() if kinds is None else effects.c.kind.in_(kinds)


def seconds_until_stale(
    connection: Connection, site: str, stale_s: float, kinds: Collection[str] | None = None
) -> float | None:
    """Until an announcement that is under way counts as interrupted; None when none is."""
    left = effects.c.updated_at + func.make_interval(0, 0, 0, 0, 0, 0, stale_s)
    seconds: float | None = connection.execute(
        select(func.extract("epoch", func.min(left) - func.clock_timestamp())).where(
            effects.c.site == site,
            effects.c.page_id.is_(None),
            effects.c.state == _IN_PROGRESS,
            _among(kinds),
        )
    ).scalar_one()
    return None if seconds is None else max(0.0, float(seconds))


def seconds_until_due(connection: Connection, site: str, stale_s: float) -> float | None:
    """Until the site's next announcement can be taken, an interrupted one too; None: none waits."""
    seconds: float | None = connection.execute(
        select(
            func.extract("epoch", func.min(effects.c.next_attempt_at) - func.clock_timestamp())
        ).where(
            effects.c.site == site,
            effects.c.page_id.is_(None),
            effects.c.state == _PENDING,
        )
    ).scalar_one()
    waits = [seconds, seconds_until_stale(connection, site, stale_s)]
    return min((max(0.0, float(wait)) for wait in waits if wait is not None), default=None)


def given_up(connection: Connection, site: str) -> tuple[str, ...]:
    """The kinds of hook whose latest announcement failed for good, in order."""
    return tuple(connection.execute(_GIVEN_UP, {"of_site": site}).scalars())


_LATER = effects.alias("later")
_GIVEN_UP = (
    select(effects.c.kind)
    .where(effects.c.site == _SITE, effects.c.page_id.is_(None))
    .where(effects.c.state == EffectState.FAILED)
    .where(
        ~exists().where(
            _LATER.c.site == effects.c.site,
            _LATER.c.kind == effects.c.kind,
            _LATER.c.page_id.is_(None),
            _LATER.c.requested_at > effects.c.requested_at,
        )
    )
    .order_by(effects.c.kind)
)


def put_back(connection: Connection, key: str, failure: Failure, wait_s: float) -> None:
    """A site effect that failed waits again, or gives way to one that was asked for meanwhile.

    That one takes over the wait: the service must not be called earlier because more is to tell.
    """
    try:
        with connection.begin_nested():
            mark(connection, key, EffectState.PENDING, failure, wait_s=wait_s)
    except IntegrityError:  # one is pending already, perhaps since this very moment
        finish(connection, key, outcome="merged", result_reference="asked for again meanwhile")
        _take_over(connection, key, failure, wait_s)


def _take_over(connection: Connection, key: str, failure: Failure, wait_s: float) -> None:
    merged = effects.alias("merged")
    connection.execute(
        update(effects)
        .where(merged.c.effect_key == key, effects.c.site == merged.c.site)
        .where(effects.c.kind == merged.c.kind, effects.c.page_id.is_(None))
        .where(effects.c.state == EffectState.PENDING)
        .values(
            attempts=merged.c.attempts,
            failure_class=failure.failure_class,
            failure_message=failure.message,
            next_attempt_at=func.greatest(effects.c.next_attempt_at, seconds_from_now(wait_s)),
        )
    )
