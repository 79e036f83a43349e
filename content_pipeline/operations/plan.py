"""Plan: what a site's next run would do and cost, without doing any of it.

What belongs here: rehearsing the intake of the topic table in a transaction that is rolled back, so
that what is planned is what an intake wants by its own rules; and pricing what is due. Nothing is
written, and neither the provider nor the CMS is asked.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal

from sqlalchemy import Connection

from content_pipeline.core.chain import Step
from content_pipeline.core.forecast import ASSUMED_BYTES_PER_TOKEN, StepHistory, expected_call
from content_pipeline.core.planning import (
    Due,
    Plan,
    PlannedCall,
    PlannedPage,
    Purse,
    Skipped,
    SkippedPage,
    Stand,
    allot,
    judge,
)
from content_pipeline.core.prompts import PromptError
from content_pipeline.core.publish_rate import free_today
from content_pipeline.core.states import PageJobState
from content_pipeline.ledger import call_limits, publish_rate, spend, step_outputs
from content_pipeline.ledger import plan as plan_rows
from content_pipeline.ledger.step_outputs import StepOutput
from content_pipeline.operations.requests import (
    ChainPosition,
    findings_of,
    most_usage,
    position_among,
    sent_bytes,
)
from content_pipeline.operations.runtime import SitePlanning
from content_pipeline.operations.submit import Table, read_table, want

PAGES_AT_ONCE = 500
"""Whose stored outputs are held in memory together: articles of some 10 kB."""

PLANNER = "plan"
"""Who asks, in the rehearsal; nobody ever reads it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Seen:
    """How a site would stand, read within the rehearsal."""

    at: datetime
    stands: list[Stand]
    jobs_before: Mapping[str, str]
    unwanted: tuple[SkippedPage, ...]
    """Rows that the intake leaves out."""


def make_plan(planning: SitePlanning, rows: Iterable[Mapping[str, str]]) -> Plan:
    """The plan for the table as it is now. Raises TopicTableError as an intake does."""
    seen = _rehearse(planning, read_table(planning, rows))
    judged = [
        (stand, judge(stand, seen.jobs_before.get(stand.topic_key), planning.generation_version))
        for stand in seen.stands
    ]
    skipped = [
        SkippedPage(topic_key=stand.topic_key, reason=reason)
        for stand, reason in judged
        if isinstance(reason, Skipped)
    ]
    due = [(stand, reason) for stand, reason in judged if isinstance(reason, Due)]
    pages = list(_priced(planning, due))
    with planning.ledger.begin() as connection:
        purse = _purse(connection, planning)
        new_pages = _new_pages(connection, planning)
        calls_at_once = _calls_at_once(connection, planning)
    pages.sort(key=lambda page: bool(page.calls))  # what is paid for already goes out first
    today, later = allot(pages, new_pages=new_pages, purse=purse)
    skipped += [SkippedPage(topic_key=page.topic_key, reason=reason) for page, reason in later]
    return Plan(
        site=planning.site.site,
        at=seen.at,
        today=tuple(today),
        later=tuple(page for page, _ in later),
        skipped=(*skipped, *seen.unwanted),
        purse=purse,
        calls_at_once=calls_at_once,
    )


def _rehearse(planning: SitePlanning, table: Table) -> _Seen:
    site = planning.site.site
    with planning.ledger.rehearsal() as connection:
        jobs_before = plan_rows.wanted_jobs(connection, site)
        taken = want(connection, planning, table, requested_by=PLANNER)
        stands = plan_rows.stands(connection, site)
        at = plan_rows.now(connection)
    known = {stand.topic_key for stand in stands}
    nameless = [row for row in table.rejected if row.key is None]
    refused = [topic.key for _, topic in table.topics if topic.key not in known]
    return _Seen(
        at=at,
        stands=stands,
        jobs_before=jobs_before,
        unwanted=(
            *(
                SkippedPage(topic_key=f"row {row.row_number}", reason=Skipped.REJECTED)
                for row in nameless
            ),
            *(
                SkippedPage(topic_key=key, reason=Skipped.ROLLED_BACK)
                for key in refused
                if taken.rolled_back
            ),
        ),
    )


def _purse(connection: Connection, planning: SitePlanning) -> Purse:
    caps = planning.caps
    whole_days = [caps.site_day_usd, *([caps.global_day_usd] if caps.global_day_usd else [])]
    return Purse(
        page_usd=caps.page_usd,
        day_usd=min(whole_days),
        room_usd=spend.room_usd(connection, planning.site.site, caps),
    )


def _new_pages(connection: Connection, planning: SitePlanning) -> int | None:
    """How many more drafts of new pages have a turn today, beside those that are made already."""
    rate = planning.site.schedule.rate
    if rate is None:
        return None
    found = publish_rate.outgoing(connection, planning.site.site)
    return max(0, free_today(rate, found.issued, found.now) - found.waiting)


def _calls_at_once(connection: Connection, planning: SitePlanning) -> int:
    settings = planning.site.generation
    at_once = min(settings.in_flight, settings.in_flight_everywhere)
    learned = call_limits.read(connection, planning.model_route)
    return at_once if learned is None else min(at_once, learned.limit)


def _priced(planning: SitePlanning, due: Sequence[tuple[Stand, Due]]) -> Iterator[PlannedPage]:
    with planning.ledger.begin() as connection:
        history = plan_rows.history(connection, planning.site.site)
    for start in range(0, len(due), PAGES_AT_ONCE):
        batch = due[start : start + PAGES_AT_ONCE]
        paid = [stand for stand, _ in batch if stand.is_paid_next]
        with planning.ledger.begin() as connection:
            stored = step_outputs.of_pages(
                connection, [stand.page_id for stand in paid if stand.page_id]
            )
            findings = {
                stand.page_job_id: findings_of(connection, stand.page_job_id)
                for stand in paid
                if stand.is_asked_again
            }
        for stand, reason in batch:
            calls: tuple[PlannedCall, ...] = ()
            if stand.is_paid_next:
                own = stored.get(stand.page_id or "", [])
                asked = findings.get(stand.page_job_id, [])
                calls = _calls(planning, stand, own, asked, history)
            yield PlannedPage(
                topic_key=stand.topic_key,
                reason=reason,
                is_new=not stand.was_public,
                spent_usd=stand.spent_usd,
                calls=calls,
            )


def _calls(
    planning: SitePlanning,
    stand: Stand,
    stored: Sequence[StepOutput],
    findings: Sequence[str],
    history: Sequence[StepHistory],
) -> tuple[PlannedCall, ...]:
    """The paid calls that are left for a page; none for one that its prompt fails on."""
    try:
        found = position_among(planning.site, planning.chain, stand, stored, findings)
    except PromptError:
        return ()
    if found.step is None:
        return ()
    left = planning.chain.steps[planning.chain.steps.index(found.step) :]
    planned = [_call(planning, left[0], found.prompt, history)]
    planned += [
        _call(planning, step, _supposed_prompt(found, left[:at]), history, is_supposed=True)
        for at, step in enumerate(left[1:], start=1)
    ]
    if stand.state is PageJobState.GENERATION_UNCERTAIN:
        # The lost answer is probably recovered; if not, the call is made again.
        planned[0] = _unless_recovered(planned[0])
    return tuple(planned)


def _supposed_prompt(found: ChainPosition, earlier: Sequence[Step]) -> str:
    """As long as the prompt of a step after ``earlier`` can be that quotes their whole outputs."""
    written = sum(step.max_output_tokens for step in earlier)
    return found.prompt + "x" * (written * ASSUMED_BYTES_PER_TOKEN)


def _call(
    planning: SitePlanning,
    step: Step,
    prompt: str,
    history: Sequence[StepHistory],
    *,
    is_supposed: bool = False,
) -> PlannedCall:
    known = any(past.step == step.name for past in history)
    expected = expected_call(
        step, None if is_supposed and known else sent_bytes(step, prompt), history
    )
    one = planning.prices.cost(step.model, expected.usage)
    return PlannedCall(
        step=step.name,
        model=step.model,
        usage=expected.usage,
        calls=expected.calls,
        expected_usd=one * Decimal(expected.calls),
        worst_usd=planning.prices.cost(step.model, most_usage(step, prompt)),
        latency_s=expected.latency_s,
        basis=expected.basis,
    )


def _unless_recovered(call: PlannedCall) -> PlannedCall:
    return PlannedCall(
        step=call.step,
        model=call.model,
        usage=call.usage,
        calls=0,
        expected_usd=Decimal(0),
        worst_usd=call.worst_usd,
        latency_s=0,
        basis=call.basis,
    )
