"""One page's whole story as tables: state, attempts, rejections, corrections, moves, effects."""

from collections.abc import Sequence
from decimal import Decimal

from rich.console import Console
from rich.markup import escape
from rich.table import Table
from sqlalchemy import Connection, RowMapping

from content_pipeline.cli.tables import plain_table, when
from content_pipeline.core.failures import EXPLANATIONS
from content_pipeline.core.states import NEXT, WORKABLE, PageJobState, public_status
from content_pipeline.ledger import (
    cancellations,
    input_fixes,
    rejections,
    reports,
    site_changes,
)
from content_pipeline.ledger.cancellations import CancelWish
from content_pipeline.ledger.input_fixes import InputFix
from content_pipeline.ledger.rejections import Rejection
from content_pipeline.ledger.reports import PageReport
from content_pipeline.ledger.site_changes import SiteEvent


def print_story(connection: Connection, site: str, page: PageReport, console: Console) -> None:
    """Print all that is known of ``page``."""
    wish = cancellations.on_record(connection, page.page_job_id)
    console.print(_facts(site, page, wish))
    console.print(_attempts(page))
    if rejected := rejections.of_job(connection, page.page_job_id):
        console.print(_rejections(rejected))
    if fixes := input_fixes.of_topic(connection, site, page.topic_key):
        console.print(_fixes(fixes))
    console.print(_transitions(connection, page))
    if page.page_id:
        console.print(_effects(connection, page.page_id))
        if events := site_changes.history(connection, page.page_id):
            console.print(site_history(events))
    jobs = reports.earlier_jobs(connection, site, page.topic_key)
    if others := [job for job in jobs if job["page_job_id"] != page.page_job_id]:
        console.print(_earlier(others))


def _facts(site: str, page: PageReport, wish: CancelWish | None) -> Table:
    table = plain_table(f"{page.name} ({site}/{page.topic_key})", None, None)
    status = public_status(page.state, cancel_requested=page.cancel_requested)
    table.add_row("state", f"{page.state} ({status})")
    in_line = page.failure_class is None and page.failure_message  # nothing failed
    table.add_row("next", "its turn comes" if in_line else NEXT[page.state])
    if page.failure_class:
        table.add_row("failure", escape(f"{page.failure_class}: {page.failure_message}"))
        table.add_row("", EXPLANATIONS[page.failure_class])
    elif in_line:
        table.add_row("", escape(f"{page.failure_message}: {when(page.next_attempt_at)}"))
    if wish is not None:
        table.add_row("cancel asked for", escape(f"{when(wish.at)} by {wish.by}: {wish.reason}"))
    if page.topic_is_retired:
        table.add_row("topic", "no longer in the table")
    if page.site_change:
        assert page.site_change_found_at is not None
        since = f"{page.site_change}, found {when(page.site_change_found_at)}"
        table.add_row("on the site", escape(f"{since}: {page.site_change_reason}"))
    if page.withdrawn_at:
        table.add_row("taken off the site", when(page.withdrawn_at))
    if page.state is PageJobState.FAILED_RETRYABLE or "uncertain" in page.state:
        table.add_row("not before", when(page.next_attempt_at))
    if page.state in WORKABLE:
        table.add_row("not tried again after", when(page.deadline_at))
    table.add_row("path", page.path or "none: the row cannot become a page")
    table.add_row("url", page.remote_url or "not published")
    table.add_row("live revision", str(page.published_revision or "none"))
    table.add_row("draft revision", str(page.revision or "none"))
    table.add_row("last proved", when(page.verified_at) if page.verified_at else "never")
    table.add_row("cost", f"${page.usd:.6f}" + _uncertain_part(page.uncertain_usd))
    table.add_row("owner", escape(page.owner) or "nobody named")
    table.add_row("page job", page.page_job_id)
    table.add_row("page", page.page_id or "none")
    table.add_row("generation version", page.generation_version)
    table.add_row("input", page.input_hash)
    return table


def _uncertain_part(usd: Decimal) -> str:
    return f", of which ${usd:.6f} may not have been billed" if usd else ""


def _attempts(page: PageReport) -> Table:
    table = plain_table(
        "Attempts", "kind", "step", "no", "state", "class", "tokens", "dollars", "s", "at", "note"
    )
    for item in page.attempts:
        note = item.failure_message or ("recovered by asking" if item.recovered else "")
        table.add_row(
            item.kind,
            item.step,
            str(item.number),
            item.state,
            item.failure_class or "",
            f"{item.input_tokens}/{item.output_tokens}" if item.output_tokens else "",
            f"{item.usd:.6f}" if item.usd else "",
            "" if item.latency_s is None else f"{item.latency_s:.2f}",
            when(item.started_at),
            escape(note),
        )
    return table


def _transitions(connection: Connection, page: PageReport) -> Table:
    table = plain_table("Transitions", "no", "from", "to", "why", "worker", "at")
    for row in reports.history(connection, page.page_job_id):
        table.add_row(
            str(row["sequence"]),
            row["from_state"] or "",
            row["to_state"],
            escape(row["why"]),
            row["worker"],
            when(row["at"]),
        )
    return table


def _effects(connection: Connection, page_id: str) -> Table:
    table = plain_table("Effects", "key", "state", "tries", "outcome", "result", "note")
    for row in reports.page_effects(connection, page_id):
        table.add_row(
            row["effect_key"],
            row["state"],
            str(row["attempts"]),
            row["outcome"] or "",
            escape(row["result_reference"] or ""),
            escape(row["failure_message"] or ""),
        )
    return table


def site_history(events: Sequence[SiteEvent]) -> Table:
    """What was found and done about a page on the site, oldest first."""
    table = plain_table("On the site", "at", "what", "by", "detail")
    for at, kind, detail, by in events:
        table.add_row(when(at), kind.value.replace("_", " "), escape(by), escape(detail))
    return table


def _earlier(rows: Sequence[RowMapping]) -> Table:
    table = plain_table("Other page jobs of the topic", "page job", "state", "revision", "since")
    for row in rows:
        table.add_row(
            row["page_job_id"], row["state"], str(row["revision"] or ""), when(row["created_at"])
        )
    return table


def _rejections(rows: Sequence[Rejection]) -> Table:
    table = plain_table("Rejected drafts", "revision", "at", "findings", "then")
    for row in rows:
        then = "asked again with these" if row.is_asked_again else "left to a person"
        findings = "\n".join(map(str, row.findings))
        table.add_row(str(row.revision), when(row.at), escape(findings), then)
    return table


def _fixes(rows: Sequence[InputFix]) -> Table:
    table = plain_table("Corrections", "column", "table", "instead", "cause", "by", "at", "ended")
    for row in rows:
        table.add_row(
            *map(escape, (row.column, row.table_value, row.value, row.cause, row.fixed_by)),
            when(row.fixed_at),
            row.retired_because or "in force",
        )
    return table
