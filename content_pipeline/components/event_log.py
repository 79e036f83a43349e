"""Where the events of pages and buckets go: to a run, or into the instance without one.

What belongs here: the way to Dagster, in which many events are written at once. What they say is in
``stories`` and in the modules of pages and buckets.
"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Self

import dagster as dg
from sqlalchemy.exc import IntegrityError

from content_pipeline.components.dagster_private import (
    CheckedMaterialization,
    checked_materializations,
    log_check,
    make_room,
)
from content_pipeline.components.event_store import Collected, stored_together

RunContext = dg.OpExecutionContext | dg.AssetExecutionContext
PageEvent = dg.AssetMaterialization | dg.AssetObservation | dg.AssetCheckEvaluation


@dataclass(frozen=True, slots=True, kw_only=True)
class EventLog:
    """Where events go; they are written some at a time, and all of them at the end."""

    instance: dg.DagsterInstance
    log: Callable[[PageEvent], None]
    collected: Collected

    @classmethod
    @contextmanager
    def of_run(cls, context: RunContext) -> Iterator[Self]:
        """The events of the run that ``context`` is about."""

        def log(event: PageEvent) -> None:
            if isinstance(event, dg.AssetCheckEvaluation):
                log_check(context, event)
            else:
                context.log_event(event)

        with stored_together(context.instance) as collected:
            yield cls(instance=context.instance, log=log, collected=collected)

    @classmethod
    @contextmanager
    def without_run(cls, instance: dg.DagsterInstance) -> Iterator[Self]:
        """Events that belong to no run."""

        def log(event: PageEvent) -> None:
            try:
                instance.report_runless_asset_event(event)
            except IntegrityError:  # of a storage of Dagster's own; ours makes room itself
                if not isinstance(event, dg.AssetCheckEvaluation):
                    raise
                make_room(instance, event)
                instance.report_runless_asset_event(event)

        with stored_together(instance) as collected:
            yield cls(instance=instance, log=log, collected=collected)

    def newest(
        self, asset: dg.AssetKey, partitions: Sequence[str]
    ) -> dict[str, CheckedMaterialization]:
        """Partition → its newest materialization; those that were logged here are not asked for."""
        self.collected.write()
        own = {key: self.collected.materialized(asset, key) for key in partitions}
        others = [key for key, found in own.items() if found is None]
        known = {key: found for key, found in own.items() if found is not None}
        return known | checked_materializations(self.instance, asset, others)
