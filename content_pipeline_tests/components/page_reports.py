"""Reports of pages as the ledger would give them, for the pure parts of the shell."""

from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

from content_pipeline.core.failures import FailureClass
from content_pipeline.core.states import PageJobState
from content_pipeline.ledger.reports import AttemptReport, PageReport
from content_pipeline.ledger.schema import AttemptKind

NOON = datetime(2026, 6, 1, 12, tzinfo=UTC)


def attempt(kind: AttemptKind = AttemptKind.GENERATE, **changes: Any) -> AttemptReport:
    values: dict[str, Any] = {
        "kind": kind,
        "step": "article" if kind is AttemptKind.GENERATE else "publish",
        "number": 1,
        "state": "succeeded",
        "failure_class": None,
        "failure_message": None,
        "model": "gpt-5-mini",
        "input_tokens": 100,
        "cached_tokens": 0,
        "output_tokens": 200,
        "usd": Decimal("0.0025") if kind is AttemptKind.GENERATE else Decimal(0),
        "is_certain": True,
        "latency_s": 1.5,
        "started_at": NOON,
        "request_id": "req_1",
        "worker": "this run",
        "revision": 1,
        "recovered": False,
    }
    return AttemptReport(**(values | changes))


def page(state: PageJobState, **changes: Any) -> PageReport:
    values: dict[str, Any] = {
        "topic_key": "t01",
        "name": "Brigg",
        "page_job_id": "job1",
        "page_id": "page1",
        "path": "/brigg/",
        "state": state,
        "cancel_requested": False,
        "failure_class": None,
        "failure_message": None,
        "next_attempt_at": NOON,
        "deadline_at": NOON,
        "generation_version": "v1",
        "input_hash": "i1",
        "owner": "town team",
        "revision": None,
        "published_revision": None,
        "published_title": None,
        "remote_id": None,
        "remote_url": None,
        "verified_at": None,
        "topic_is_retired": False,
        "site_change": None,
        "site_change_reason": None,
        "site_change_found_at": None,
        "withdrawn_at": None,
        "attempts": (),
    }
    return PageReport(**(values | changes))


def failed(failure_class: FailureClass, **changes: Any) -> PageReport:
    """A page that needs a person."""
    return page(
        PageJobState.FAILED_TERMINAL,
        failure_class=failure_class,
        failure_message="it is so",
        **changes,
    )
