"""Reading what the provider recorded."""

from datetime import UTC, datetime
from decimal import Decimal

from content_pipeline.adapters.llm.prices import GenaiPrices
from content_pipeline.bootstrap import utc_now
from content_pipeline.chaos.evidence import billed_of
from content_pipeline.chaos.project import MODEL


def test_a_generation_is_billed_at_list_price() -> None:
    generation = {
        "at": "2026-01-01T00:00:00+00:00",
        "attempt_id": "attempt-1",
        "page_job_id": "job-1",
        "fault": "drop_after",
        "model": MODEL,
        "prompt_tokens": 1_000_000,
        "cached_tokens": 0,
        "completion_tokens": 1_000_000,
    }
    billed = billed_of(generation, GenaiPrices(provider="openai", now=utc_now))
    assert billed.at == datetime(2026, 1, 1, tzinfo=UTC)
    assert (billed.attempt_id, billed.page_job_id, billed.fault) == (
        "attempt-1",
        "job-1",
        "drop_after",
    )
    assert billed.usd == Decimal("2.25")  # $0.25 in and $2.00 out
