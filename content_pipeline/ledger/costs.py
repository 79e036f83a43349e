"""Costs: every dollar and token of the ledger, summed along any of its dimensions.

What belongs here: sums over spend and the attempts it was spent on. Every spend row falls into
exactly one group whatever the grouping, so that all groupings add up to the same dollars.
"""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from datetime import date
from decimal import Decimal
from enum import StrEnum
from typing import Any

from sqlalchemy import (
    Column,
    ColumnElement,
    Connection,
    Row,
    Subquery,
    Text,
    case,
    cast,
    func,
    literal,
    select,
)

from content_pipeline.ledger.schema import AttemptState, SpendState, attempts, page_jobs, spend

OK = "ok"
"""The class of a call that brought what was asked for."""

NOT_CALLED = "not called"
"""Of money that is or was set aside for a call that has not begun."""

SHOWN_VERSION = 8
"""Hex digits of a generation version that people are shown: enough to tell a site's few apart."""


class Dimension(StrEnum):
    """What costs can be grouped by."""

    SITE = "site"
    TEMPLATE = "template"
    """Generation version and step: one prompt of one way of making pages."""
    STEP = "step"
    MODEL = "model"
    CLASS = "class"
    """The failure class of the attempt, or ``ok``."""
    DAY = "day"
    """UTC, of the reservation: the day whose budget the call counts against."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cost:
    """What one group came to."""

    keys: tuple[str, ...]
    """One for each dimension asked for, in that order."""
    settled_usd: Decimal
    uncertain_usd: Decimal
    """Worst case of calls that may have been billed."""
    reserved_usd: Decimal
    """Worst case of calls that are out or about to be."""
    attempts: int
    failed_attempts: int
    """Failed and uncertain ones."""
    failed_usd: Decimal
    """What these cost or may have cost: a part of the dollars above, not on top of them."""
    input_tokens: int
    cached_tokens: int
    output_tokens: int
    reasoning_tokens: int

    @property
    def usd(self) -> Decimal:
        """All of it, at its worst."""
        return self.settled_usd + self.uncertain_usd + self.reserved_usd


_STEP = func.coalesce(attempts.c.step, NOT_CALLED)

_KEYS: dict[Dimension, ColumnElement[str] | Column[str]] = {
    Dimension.SITE: spend.c.site,
    Dimension.TEMPLATE: func.concat(
        func.left(
            func.coalesce(attempts.c.generation_version, page_jobs.c.generation_version),
            SHOWN_VERSION,
        ),
        ":",
        _STEP,
    ),
    Dimension.STEP: _STEP,
    Dimension.MODEL: func.coalesce(attempts.c.model, NOT_CALLED),
    Dimension.CLASS: case(
        (attempts.c.attempt_id.is_(None), literal(NOT_CALLED)),
        (attempts.c.state == AttemptState.OPEN, literal(AttemptState.OPEN.value)),
        else_=func.coalesce(attempts.c.failure_class, OK),
    ),
    Dimension.DAY: cast(spend.c.day, Text),
}


def costs(
    connection: Connection,
    dimensions: Sequence[Dimension],
    *,
    site: str | None = None,
    since: date | None = None,
) -> list[Cost]:
    """The costs of each group, ordered by its keys; without dimensions one group of everything.

    ``site``: only this one; None means all. ``since``: only this UTC day and later ones.
    """
    calls = _calls(site, since)
    keys = [calls.c[f"key_{dimension}"] for dimension in dimensions]
    rows = connection.execute(select(*keys, *_sums(calls)).group_by(*keys).order_by(*keys))
    return [_cost(row, len(dimensions)) for row in rows]


def total(groups: Sequence[Cost]) -> Cost:
    """All ``groups`` together, under no key."""
    measures: dict[str, Any] = {
        name: sum((getattr(group, name) for group in groups), Decimal(0) if usd else 0)
        for name, usd in ((name, name.endswith("usd")) for name in _MEASURES)
    }
    return Cost(keys=(), **measures)


def _calls(site: str | None, since: date | None) -> Subquery:
    """One row for each row of spend, with the keys of every dimension."""
    query = (
        select(
            *(key.label(f"key_{dimension}") for dimension, key in _KEYS.items()),
            spend.c.state,
            spend.c.reserved_usd,
            spend.c.settled_usd,
            attempts.c.attempt_id,
            attempts.c.state.in_((AttemptState.FAILED, AttemptState.UNCERTAIN)).label("is_failed"),
            *(attempts.c[name] for name in _TOKENS),
        )
        .select_from(spend)
        .join(page_jobs, page_jobs.c.page_job_id == spend.c.page_job_id)
        .outerjoin(attempts, attempts.c.attempt_id == spend.c.attempt_id)
    )
    if site is not None:
        query = query.where(spend.c.site == site)
    if since is not None:
        query = query.where(spend.c.day >= since)
    return query.subquery()


_TOKENS = ("input_tokens", "cached_tokens", "output_tokens", "reasoning_tokens")
_MEASURES = tuple(field.name for field in fields(Cost) if field.name != "keys")


def _sums(calls: Subquery) -> list[ColumnElement[Any]]:
    row = calls.c
    usd = func.coalesce(row.settled_usd, row.reserved_usd)
    called = func.count(row.attempt_id)
    dollars = {
        "settled_usd": func.sum(row.settled_usd),
        "uncertain_usd": func.sum(row.reserved_usd).filter(row.state == SpendState.UNCERTAIN),
        "reserved_usd": func.sum(row.reserved_usd).filter(row.state == SpendState.RESERVED),
        "failed_usd": func.sum(usd).filter(row.is_failed),
    }
    tokens = {name: func.sum(row[name]) for name in _TOKENS}
    return [
        *(func.coalesce(value, 0).label(name) for name, value in (dollars | tokens).items()),
        called.label("attempts"),
        called.filter(row.is_failed).label("failed_attempts"),
    ]


def _cost(row: Row[Any], dimensions: int) -> Cost:
    values = dict(row._mapping)
    measures = {name: values[name] for name in _MEASURES}
    return Cost(keys=tuple(row[:dimensions]), **measures)
