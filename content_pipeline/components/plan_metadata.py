"""A plan as Dagster shows it: one line for logs, and metadata with plots and tables.

What belongs here: wording and layout. What is due, and what it costs, is ``core.planning``'s.
"""

from collections import defaultdict
from collections.abc import Sequence

import dagster as dg

from content_pipeline.components.asset_metadata import PLANNED_PAGES
from content_pipeline.components.page_metadata import Metadata, table
from content_pipeline.core.durations import in_words
from content_pipeline.core.money import round_usd
from content_pipeline.core.planning import Plan, PlannedPage, SkippedPage, counted

SHOWN_TOPICS = 10
"""Named per reason; `content-pipeline plan --json` names all of them."""


def told(plan: Plan) -> str:
    """The plan in one line."""
    due = counted([page.reason for page in plan.today])
    skipped = counted([page.reason for page in plan.skipped])
    parts = [f"{count:,} {reason}" for reason, count in due.items()]
    left_alone = ", ".join(f"{count:,} {reason}" for reason, count in skipped.items())
    return (
        f"{len(plan.today):,} pages are due ({', '.join(parts) or 'none'}); "
        f"expected ${plan.expected_usd:.4f}, at worst ${plan.worst_usd:.4f}; "
        f"budget: {plan.verdict}; left alone: {left_alone or 'none'}"
    )


def plan_metadata(plan: Plan) -> Metadata:
    """The plan's figures, each a plot over the nights, and its pages by reason."""
    calls = plan.calls
    found: Metadata = {
        "plan": dg.MetadataValue.text(told(plan)),
        "pages": dg.MetadataValue.int(len(plan.today)),
        "skipped": dg.MetadataValue.int(len(plan.skipped)),
        "paid_calls": dg.MetadataValue.int(len(calls)),
        "input_tokens": dg.MetadataValue.int(plan.expected_input_tokens),
        "output_tokens": dg.MetadataValue.int(plan.expected_output_tokens),
        "expected_usd": dg.MetadataValue.float(float(round_usd(plan.expected_usd))),
        "worst_usd": dg.MetadataValue.float(float(round_usd(plan.worst_usd))),
        "rests_on": dg.MetadataValue.text(str(plan.basis) if calls else "nothing is to be paid"),
        "duration_s": dg.MetadataValue.float(round(float(plan.duration_s), 1)),
        "takes": dg.MetadataValue.text(in_words(plan.duration_s)),
        "budget": dg.MetadataValue.text(str(plan.verdict)),
        "room_usd": dg.MetadataValue.float(float(plan.purse.room_usd)),
    }
    if plan.today:
        found["due_pages"] = _by_reason(plan.today)
    if plan.skipped:
        found["skipped_pages"] = _by_reason(plan.skipped)
    return found


def _by_reason(pages: Sequence[PlannedPage | SkippedPage]) -> dg.MetadataValue:
    named: defaultdict[str, list[str]] = defaultdict(list)
    for page in pages:
        if len(named[page.reason]) < SHOWN_TOPICS:
            named[page.reason].append(page.topic_key)
    rows: list[dict[str, str | int | float]] = [
        {"reason": reason, "pages": count, "topics": ", ".join(named[reason])}
        for reason, count in counted([page.reason for page in pages]).items()
    ]
    return table(PLANNED_PAGES, rows)
