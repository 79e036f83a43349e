"""Words and types shared by all tables: the metadata, column types and closed sets of values.

What belongs here: enums that the database checks and the small builders the table modules use.
"""

from collections.abc import Iterable
from enum import StrEnum
from typing import Any

from sqlalchemy import (
    BigInteger,
    Column,
    ColumnElement,
    DateTime,
    MetaData,
    Numeric,
    Sequence,
    func,
    literal_column,
)

SCHEMA = "content_pipeline"
metadata = MetaData(
    schema=SCHEMA,
    naming_convention={
        "pk": "%(table_name)s_pkey",
        "fk": "%(table_name)s_%(column_0_N_name)s_fkey",
        "uq": "%(table_name)s_%(column_0_N_name)s_key",
        "ck": "%(table_name)s_%(constraint_name)s",
        "ix": "%(table_name)s_%(column_0_N_name)s_idx",
    },
)

Usd = Numeric(18, 8)
"""Dollars; 8 decimals as in ``core.money``."""

Time = DateTime(timezone=True)

lease_tokens = Sequence("lease_tokens", metadata=metadata, data_type=BigInteger)
"""Fencing tokens: each lease ever given gets a greater one."""

effect_numbers = Sequence("effect_numbers", metadata=metadata, data_type=BigInteger)
"""Tells successive announcements of one site apart."""

topic_notes = Sequence("topic_notes", metadata=metadata, data_type=BigInteger)
"""The order in which topics were taken in; drawn under the intake's lock, so that within a site a
smaller number is always committed before a greater one is drawn."""


class TopicStatus(StrEnum):
    """Whether a row of the table can become a page."""

    ACTIVE = "active"
    REJECTED = "rejected"
    RETIRED = "retired"
    """It is no longer in the table: nothing is made of it any more."""


class AttemptKind(StrEnum):
    """What was tried."""

    GENERATE = "generate"
    PUBLISH = "publish"
    WITHDRAW = "withdraw"


class AttemptState(StrEnum):
    """What is known of one attempt."""

    OPEN = "open"
    """The intent is on record; the call may be out."""
    SUCCEEDED = "succeeded"
    FAILED = "failed"
    UNCERTAIN = "uncertain"
    """It may have taken effect and nobody could be asked, or not yet."""


class AnswerSource(StrEnum):
    """Where a saved answer came from."""

    CALL = "call"
    LOOK_UP = "look_up"
    """The provider had kept it: asked for after the call's own answer was lost or unreadable."""


class EffectState(StrEnum):
    """How far one outward effect has come."""

    PENDING = "pending"
    IN_PROGRESS = "in_progress"
    DONE = "done"
    UNCERTAIN = "uncertain"
    FAILED = "failed"


class SiteEventKind(StrEnum):
    """What was found and done on a site beside publishing."""

    CHANGE_FOUND = "change_found"
    CHANGE_GONE = "change_gone"
    """What had been changed is as we left it again."""
    THEIRS_KEPT = "theirs_kept"
    """A person, or the site's policy, lets the change stand."""
    OURS_WANTED = "ours_wanted"
    """A person, or the site's policy, wants ours put back."""
    TWIN_REMOVED = "twin_removed"
    """A second page with our mark, left by a write that took effect late, was taken away."""
    WITHDRAWN = "withdrawn"


class SpendState(StrEnum):
    """What became of a reservation."""

    RESERVED = "reserved"
    SETTLED = "settled"
    RELEASED = "released"
    """Nothing was sent, so nothing was spent."""
    UNCERTAIN = "uncertain"
    """Kept at the worst case: the call may have been billed."""
    WRITTEN_OFF = "written_off"
    """Counted as spent, at the worst case: nobody ever said whether it was billed."""


def one_of(column: str, values: Iterable[StrEnum]) -> str:
    """SQL that is true when ``column`` holds one of ``values``."""
    listed = ", ".join(f"'{value}'" for value in sorted(values))
    return f"{column} IN ({listed})"


def created() -> Column[Any]:
    """The time a row came to be, on the database's clock."""
    return Column("created_at", Time, nullable=False, server_default=func.now())


def seconds_from_now(seconds: float | ColumnElement[float]) -> ColumnElement[Any]:
    """A time on the database's clock, ``seconds`` from now (or before now when negative)."""
    return func.clock_timestamp() + func.make_interval(*_NOTHING_ABOVE_SECONDS, seconds)


_NOTHING_ABOVE_SECONDS: list[ColumnElement[int]] = [literal_column("0")] * 6
"""Years, months, weeks, days, hours and minutes."""
