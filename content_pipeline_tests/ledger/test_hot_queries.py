"""What is asked again and again reads some rows by an index, on a ledger that is large.

Each question is asked for real; what it says to the database is listened to and explained.
"""

from collections.abc import Callable, Iterator
from decimal import Decimal
from pathlib import Path

import dagster as dg
import pytest
from sqlalchemy import Connection, text

from content_pipeline.components import due_work, partitions_sensor, reconciling, site_watch
from content_pipeline.components.partitions_sensor import Cursor
from content_pipeline.components.site_assets import SiteAssets
from content_pipeline.core.publish_rate import PublishRate
from content_pipeline.ledger import (
    budget_waits,
    call_limits,
    cost_history,
    effects,
    failure_history,
    health,
    leases,
    noted_topics,
    publish_rate,
)
from content_pipeline.ledger.database import Ledger
from content_pipeline.ledger.leases import Selection, Service
from content_pipeline.ledger.spend import Caps
from content_pipeline.site_files import load_site
from content_pipeline_tests.ledger.conftest import LARGE_SITE
from content_pipeline_tests.ledger.plans import (
    Said,
    indexes,
    listening,
    plan_of,
    read_whole,
    said_by,
    shown,
)

SITE_FILE = Path(__file__).parents[2] / "content_pipeline/defs/countries/defs.yaml"

SMALL = {"sites", "leases", "routes", "call_limits", "budgets", "allowed_moves"}
"""Tables with a row per site, account, scope or page at work: these may be read whole."""

STALE_S = 60.0
EVERYTHING = Selection(site=LARGE_SITE)
ENOUGH = Caps(
    page_usd=Decimal(9),
    site_day_usd=Decimal(9_999),
)


@pytest.fixture(scope="module")
def instance() -> Iterator[dg.DagsterInstance]:
    with dg.DagsterInstance.ephemeral() as made:
        yield made


def refuse_whole_tables(connection: Connection, said: list[Said]) -> None:
    explained = [one for one in said if one.has_plan]
    assert explained, "nothing was asked"
    for one in explained:
        plan = plan_of(connection, one)
        assert read_whole(plan) <= SMALL, f"{one.statement}\n{shown(plan)}"


Tick = Callable[[dg.DagsterInstance, Ledger, SiteAssets], object]

SENSORS: dict[str, Tick] = {
    "due work": due_work.run_once,
    "reconcile": reconciling.run_once,
    "site changes": site_watch.run_once,
    "partitions": lambda i, ledger, assets: partitions_sensor.run_once(
        i, ledger, assets, Cursor(), budget_s=0
    ),
}


@pytest.mark.parametrize("sensor", SENSORS)
def test_no_tick_of_a_sensor_reads_a_large_table_whole(
    sensor: str, large_ledger: Ledger, instance: dg.DagsterInstance
) -> None:
    assets = SiteAssets(site=load_site(SITE_FILE))
    assert assets.name == LARGE_SITE
    with listening(large_ledger.engine) as said:
        SENSORS[sensor](instance, large_ledger, assets)
    with large_ledger.rehearsal() as connection:
        refuse_whole_tables(connection, said)


def claim(connection: Connection, services: tuple[Service, ...]) -> None:
    leases.claim_due(connection, EVERYTHING, services=services, most=8, worker="w", lease_s=60)


ASKS: dict[str, tuple[Callable[[Connection], object], set[str]]] = {
    "claim for the CMS": (
        lambda c: claim(c, (Service.NONE, Service.CMS, Service.ASK)),
        set(),  # of the due or by state, as few or many are workable
    ),
    "claim for new calls": (lambda c: claim(c, (Service.CALL,)), set()),
    "outlook of a site": (
        lambda c: leases.outlook(c, EVERYTHING),
        {"page_jobs_by_state_idx"},
    ),
    "outlook of what is unsettled": (
        lambda c: leases.outlook(c, reconciling.unsettled(LARGE_SITE)),
        {"page_jobs_by_state_idx"},
    ),
    "outlook of topics": (
        lambda c: leases.outlook(c, Selection(site=LARGE_SITE, topics=("k1", "k981"))),
        {"page_jobs_topic_idx"},
    ),
    "calls that are out": (
        lambda c: call_limits.in_flight(c, "scripted"),
        {"page_jobs_unfinished_idx"},
    ),
    "wake for a budget": (
        lambda c: budget_waits.wake(c, EVERYTHING, ENOUGH, most=100),
        {"page_jobs_budget_line_idx"},
    ),
    "wake for the rate": (
        lambda c: publish_rate.wake(c, EVERYTHING, PublishRate(per_day=9_000, paced=False)),
        {"page_jobs_turn_line_idx"},
    ),
    "who is on the way out": (
        lambda c: publish_rate.outgoing(c, LARGE_SITE),
        {"pages_first_public_at_idx"},
    ),
    "until an announcement is due": (
        lambda c: effects.seconds_until_due(c, LARGE_SITE, STALE_S),
        {"effects_to_tell_idx"},
    ),
    "take announcements": (
        lambda c: effects.take_site_effects(c, LARGE_SITE, STALE_S),
        {"effects_to_tell_idx"},
    ),
    "topics after one": (
        lambda c: noted_topics.noted_after(c, LARGE_SITE, 9_000, 1_000),
        {"topics_noted_idx"},
    ),
    "the last topic": (
        lambda c: noted_topics.last_noted(c, LARGE_SITE),
        {"topics_noted_idx"},
    ),
    "queue": (lambda c: health.queue(c, LARGE_SITE), {"page_jobs_due_idx"}),
    "uncertain": (lambda c: health.uncertain_pages(c, LARGE_SITE), {"page_jobs_by_state_idx"}),
    "double spend": (
        lambda c: health.possible_double_spend(c, LARGE_SITE),
        {"spend_uncertain_idx"},
    ),
    "failed": (lambda c: health.failed_now(c, LARGE_SITE), {"page_jobs_failed_idx"}),
    "failed by day": (
        lambda c: failure_history.failed_by_day(c, LARGE_SITE, cost_history.window(c, 10)),
        {"transitions_outcomes_idx"},
    ),
    "failed lately": (
        lambda c: failure_history.failed_lately(c, LARGE_SITE, 8),
        {"transitions_outcomes_idx"},
    ),
    "what retries brought": (
        lambda c: failure_history.retries(c, LARGE_SITE, cost_history.window(c, 10)),
        {"attempts_failed_idx"},
    ),
    "calls per page": (
        lambda c: cost_history.calls_per_page(c, LARGE_SITE, cost_history.window(c, 10)),
        {"spend_site_day_idx"},
    ),
    "conflicts": (lambda c: health.conflicts(c, LARGE_SITE), {"pages_site_change_idx"}),
}


@pytest.mark.parametrize("asked", ASKS)
def test_each_question_is_answered_from_its_index(asked: str, large_ledger: Ledger) -> None:
    asks, wanted = ASKS[asked]
    with large_ledger.rehearsal() as connection:
        said = said_by(connection, asks)
        refuse_whole_tables(connection, said)
        used = {name for one in said if one.has_plan for name in indexes(plan_of(connection, one))}
        assert wanted <= used, used


def test_what_was_published_is_found_by_day(large_ledger: Ledger) -> None:
    """For a report, once an hour: of 20,000 pages the planner may rather read them all."""
    with large_ledger.rehearsal() as connection:
        seen = cost_history.window(connection, 10)
        connection.execute(text("SET LOCAL enable_seqscan = off"))
        (said,) = said_by(connection, lambda c: cost_history.published_by_day(c, LARGE_SITE, seen))
        plan = plan_of(connection, said)
    assert "transitions_outcomes_idx" in indexes(plan), shown(plan)
    assert not read_whole(plan)
