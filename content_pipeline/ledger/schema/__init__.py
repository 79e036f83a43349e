"""All tables of the ledger, with the rules that the database itself enforces.

What belongs here: tables, CHECKs, keys and indexes, as the newest migration leaves them (a test
compares the two). Triggers stand in the migrations, which is where PostgreSQL gets them from.
"""

from content_pipeline.ledger.schema.calls import (
    attempt_responses,
    attempts,
    call_limits,
    effects,
    leases,
    routes,
    run_signs,
)
from content_pipeline.ledger.schema.money import budgets, spend
from content_pipeline.ledger.schema.nightly import nightly_batches, nightly_plans
from content_pipeline.ledger.schema.pages import (
    allowed_moves,
    draft_revisions,
    page_jobs,
    pages,
    rejected_rows,
    sites,
    step_outputs,
    taken_tables,
    topics,
    transitions,
)
from content_pipeline.ledger.schema.repairs import input_fixes, rejected_drafts
from content_pipeline.ledger.schema.site_changes import (
    announced_pages,
    rollbacks,
    site_events,
    site_hooks,
    surveys,
)
from content_pipeline.ledger.schema.vocabulary import (
    SCHEMA,
    AnswerSource,
    AttemptKind,
    AttemptState,
    EffectState,
    SiteEventKind,
    SpendState,
    TopicStatus,
    effect_numbers,
    lease_tokens,
    metadata,
    seconds_from_now,
    topic_notes,
)

__all__ = [
    "SCHEMA",
    "AnswerSource",
    "AttemptKind",
    "AttemptState",
    "EffectState",
    "SiteEventKind",
    "SpendState",
    "TopicStatus",
    "allowed_moves",
    "announced_pages",
    "attempt_responses",
    "attempts",
    "budgets",
    "call_limits",
    "draft_revisions",
    "effect_numbers",
    "effects",
    "input_fixes",
    "lease_tokens",
    "leases",
    "metadata",
    "nightly_batches",
    "nightly_plans",
    "page_jobs",
    "pages",
    "rejected_drafts",
    "rejected_rows",
    "rollbacks",
    "routes",
    "run_signs",
    "seconds_from_now",
    "site_events",
    "site_hooks",
    "sites",
    "spend",
    "step_outputs",
    "surveys",
    "taken_tables",
    "topic_notes",
    "topics",
    "transitions",
]
