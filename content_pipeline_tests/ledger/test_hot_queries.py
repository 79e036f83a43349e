"""What is asked again and again reads some rows by an index, on a ledger that is large.

Each question is asked for real; what it says to the database is listened to and explained.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from pathlib import Path

import dagster as dg
import pytest
from sqlalchemy import Connection, Engine, func, select, text, update

from content_pipeline.components import (
    due_work,
    partitions_sensor,
    planned_runs,
    reconciling,
    repairing,
    site_watch,
)
from content_pipeline.components.partitions_sensor import Cursor
from content_pipeline.components.planned_runs import PlanCursor
from content_pipeline.components.repairing import RepairCursor
from content_pipeline.components.site_assets import SiteAssets
from content_pipeline.core.publish_rate import PublishRate
from content_pipeline.core.states import PageJobState
from content_pipeline.ledger import (
    budget_waits,
    call_limits,
    cost_history,
    draft_line,
    effects,
    failure_history,
    health,
    jobs,
    leases,
    noted_topics,
    publish_rate,
    write_offs,
)
from content_pipeline.ledger.changed_pages import Position
from content_pipeline.ledger.database import Ledger
from content_pipeline.ledger.leases import Selection, Service
from content_pipeline.ledger.schema import page_jobs
from content_pipeline.ledger.spend import Caps
from content_pipeline.site_files import load_site
from content_pipeline_tests.ledger.conftest import LARGE_SITE
from content_pipeline_tests.ledger.large_ledger import without_guards
from content_pipeline_tests.ledger.plans import (
    Plan,
    Said,
    indexes,
    listening,
    nodes,
    plan_of,
    read_whole,
    said_by,
    shown,
)

SITE_FILE = Path(__file__).parents[2] / "content_pipeline/defs/countries/defs.yaml"

SMALL = {
    "sites",
    "leases",
    "routes",
    "call_limits",
    "budgets",
    "allowed_moves",
    "run_signs",
    "pg_database",
    "nightly_plans",
}
"""Tables with a row per site, account, scope, page or run at work, or night of the last month:
these may be read whole."""

LATELY = Position(at=datetime(2999, 1, 1, tzinfo=UTC))
"""Whatever changed is told of already."""

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
    "planned runs": lambda i, ledger, assets: planned_runs.run_once(
        i, ledger, assets, PlanCursor()
    ),
    "repair": lambda i, ledger, assets: repairing.run_once(
        i, ledger, assets, RepairCursor(position=LATELY), settled_s=0
    ),
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
    "wake for a draft": (
        lambda c: draft_line.wake(c, EVERYTHING, PublishRate(per_day=9_000, paced=False)),
        {"page_jobs_draft_line_idx"},
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
    "write off": (
        lambda c: write_offs.write_off(c, LARGE_SITE, after_days=30),
        {"spend_uncertain_idx"},
    ),
    "written off": (
        lambda c: write_offs.of_site(c, LARGE_SITE),
        {"spend_written_off_idx"},
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


CLAIMS = {
    PageJobState.READY_TO_PUBLISH: (Service.NONE, Service.CMS, Service.ASK),
    PageJobState.QUEUED: (Service.CALL,),
}


@contextmanager
def all_in(server: Engine, state: PageJobState, wait: timedelta) -> Iterator[Connection]:
    """A rehearsal in which every page of the site is in ``state`` and goes on after ``wait``."""
    changed = {"state": state, "finished_at": None, "failure_class": None, "failure_message": "m"}
    with server.connect() as connection:
        without_guards(connection)
        connection.execute(
            update(page_jobs)
            .where(page_jobs.c.site == LARGE_SITE)
            .values(changed | {"revision": 1, "next_attempt_at": func.now() + wait})
        )
        connection.execute(text("ANALYZE content_pipeline.page_jobs"))
        yield connection
        connection.rollback()


def reads(plan: Plan, index: str) -> str:
    """The condition by which ``index`` is read."""
    (found,) = [node["Index Cond"] for node in nodes(plan) if node.get("Index Name") == index]
    return str(found)


@pytest.mark.parametrize("state", CLAIMS)
def test_a_claim_of_very_many_due_pages_sorts_none(
    state: PageJobState, large_server: Engine
) -> None:
    with all_in(large_server, state, timedelta(minutes=-1)) as connection:
        (said,) = said_by(connection, lambda c: claim(c, CLAIMS[state]))
        plan = plan_of(connection, said)
    assert "statement_timestamp" in reads(plan, "page_jobs_due_idx"), shown(plan)


def test_a_page_finds_the_end_of_a_long_line_without_counting_it(large_server: Engine) -> None:
    with all_in(large_server, PageJobState.READY_TO_PUBLISH, timedelta(days=1)) as connection:
        now = connection.execute(select(func.now())).scalar_one()
        (said,) = said_by(connection, lambda c: publish_rate.last_in_line(c, LARGE_SITE, now))
        plan = plan_of(connection, said)
    (end,) = (node for node in nodes(plan) if node.get("Index Name") == "page_jobs_by_state_idx")
    assert end["Scan Direction"] == "Backward", shown(plan)


def test_a_new_page_is_sent_to_the_line_of_drafts_by_indexes(large_ledger: Ledger) -> None:
    number = 999  # of 1,000 pages this one is queued
    page = {"page_id": f"{LARGE_SITE}-p{number}", "page_job_id": f"{LARGE_SITE}-j{number}"}
    rate = PublishRate(per_day=1, paced=False)
    with large_ledger.rehearsal() as connection:
        for statement in (
            "UPDATE content_pipeline.pages SET first_public_at = NULL WHERE page_id = :page_id",
            "DELETE FROM content_pipeline.spend WHERE page_job_id = :page_job_id",
            # A page of today takes the place.
            "UPDATE content_pipeline.pages SET first_public_at = now() WHERE page_id IN"
            " (SELECT page_id FROM content_pipeline.pages WHERE first_public_at IS NOT NULL"
            "  LIMIT 1)",
        ):
            connection.execute(text(statement), page)
        job = jobs.load(connection, page["page_job_id"])
        said = said_by(connection, lambda c: draft_line.hold_back(c, job, rate))
        assert len(said) == 4, "asked, locked, counted and sent to the line"
        refuse_whole_tables(connection, said)


def test_what_was_published_is_found_by_day(large_ledger: Ledger) -> None:
    """For a report, once an hour: of 20,000 pages the planner may rather read them all."""
    with large_ledger.rehearsal() as connection:
        seen = cost_history.window(connection, 10)
        connection.execute(text("SET LOCAL enable_seqscan = off"))
        (said,) = said_by(connection, lambda c: cost_history.published_by_day(c, LARGE_SITE, seen))
        plan = plan_of(connection, said)
    assert "transitions_outcomes_idx" in indexes(plan), shown(plan)
    assert not read_whole(plan)
