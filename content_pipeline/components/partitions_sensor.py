"""Topics that were wanted elsewhere (on the command line) are shown as partitions. Pays nothing.

What belongs here: reading on in the topics from where the last tick stopped. ``topics_asset``
registers what it has taken in itself.
"""

import time
from dataclasses import dataclass

import dagster as dg

from content_pipeline.components.sensor_ticks import asking, kept_cursor, stored_cursor
from content_pipeline.components.site_assets import SiteAssets
from content_pipeline.components.site_at_work import opened_ledger
from content_pipeline.ledger import noted_topics
from content_pipeline.ledger.database import Ledger
from content_pipeline.ledger.noted_topics import Noted

INTERVAL_S = 60

BUDGET_S = 0.2
"""After so long a tick leaves the rest to the next one; a slice takes 20 to 100 ms."""

SLICE = 1_000
"""Topics that are read, and made partitions where they are none, at once."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cursor:
    """How far two walks over the site's topics have come, each a number of ``noted_topics``.

    The first is always at the end and sees what is new. The second goes round and round, one slice
    a tick, and brings back what the first cannot miss by itself: partitions that somebody deleted,
    a ledger or an instance restored from an older backup. 10,000 topics are gone round in 10
    minutes, 1,000,000 in 17 hours.
    """

    newest: int = 0
    compared: int = 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Registered:
    """What one tick came to."""

    noted: int
    """New and changed topics that are partitions now."""
    cursor: Cursor
    more: bool
    """Whether further ones are left for the next tick."""

    @property
    def said(self) -> str:
        """The tick in one line, for people."""
        if not self.noted:
            return "No topic is new."
        rest = "; the next tick goes on" if self.more else ""
        return f"{self.noted} new or changed topics are partitions{rest}."


def run_once(
    instance: dg.DagsterInstance,
    ledger: Ledger,
    assets: SiteAssets,
    cursor: Cursor,
    *,
    budget_s: float = BUDGET_S,
) -> Registered:
    """Make partitions of the topics after ``cursor``, at least one slice of them.

    A tick that is lost after it has registered, and before Dagster kept its cursor, is repeated
    without harm.
    """
    until = time.monotonic() + budget_s
    newest, noted = cursor.newest, 0
    with asking(ledger) as connection:
        if newest > noted_topics.last_noted(connection, assets.name):
            newest = 0  # another ledger, or an older state of it: its numbers say nothing here
    while True:
        found = _register(instance, ledger, assets, newest)
        noted += len(found.topic_keys)
        is_last, newest = found.last == newest, found.last
        if is_last or time.monotonic() >= until:
            break
    compared = _register(instance, ledger, assets, cursor.compared).last
    return Registered(
        noted=noted,
        cursor=Cursor(newest=newest, compared=0 if compared == cursor.compared else compared),
        more=not is_last,
    )


def _register(
    instance: dg.DagsterInstance, ledger: Ledger, assets: SiteAssets, after: int
) -> Noted:
    with asking(ledger) as connection:
        found = noted_topics.noted_after(connection, assets.name, after, SLICE)
    if found.topic_keys:
        instance.add_dynamic_partitions(assets.partitions_name, found.topic_keys)
    return found


def build_partitions_sensor(assets: SiteAssets) -> dg.SensorDefinition:
    """Shows pages that were wanted elsewhere (on the command line) as partitions. Pays nothing."""

    @dg.sensor(
        name=f"{assets.name}_partitions_sensor",
        minimum_interval_seconds=INTERVAL_S,
        default_status=dg.DefaultSensorStatus.RUNNING,
        description="Registers topics that the ledger knows as partitions. Starts no run.",
        owners=assets.owners,
        tags=assets.tags,
    )
    def partitions_sensor(context: dg.SensorEvaluationContext) -> dg.SensorResult:
        with opened_ledger() as ledger:
            tick = run_once(context.instance, ledger, assets, kept_cursor(Cursor, context.cursor))
        return dg.SensorResult(skip_reason=tick.said, cursor=stored_cursor(tick.cursor))

    return partitions_sensor
