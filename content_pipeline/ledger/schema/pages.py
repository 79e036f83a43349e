"""Tables of what is wanted and how far it is: sites, topics, pages, page jobs, transitions."""

from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    Column,
    Computed,
    Float,
    ForeignKey,
    ForeignKeyConstraint,
    Index,
    Integer,
    LargeBinary,
    PrimaryKeyConstraint,
    Table,
    Text,
    UniqueConstraint,
    func,
    text,
)
from sqlalchemy.dialects.postgresql import JSONB

from content_pipeline.core.failures import FailureClass
from content_pipeline.core.publishing import SiteChange
from content_pipeline.core.states import FINAL, NEEDS_PERSON, WORKABLE, PageJobState
from content_pipeline.ledger.schema.vocabulary import (
    Time,
    TopicStatus,
    Usd,
    created,
    metadata,
    one_of,
    topic_notes,
)

OUTCOMES = NEEDS_PERSON | {PageJobState.PUBLISHED}
"""What is counted by the day: pages that got out, and pages that failed."""

sites = Table(
    "sites",
    metadata,
    Column("site", Text, primary_key=True),
    Column("title", Text, nullable=False),
    Column("base_url", Text, nullable=False),
    Column("owner", Text, nullable=False),
    created(),
    Column("model_route", Text, nullable=False, server_default=text("''")),
    Column("page_deadline_s", Float, nullable=False, server_default=text("1209600")),
)

pages = Table(
    "pages",
    metadata,
    Column("page_id", Text, primary_key=True),
    Column("site", Text, ForeignKey("sites.site"), nullable=False),
    Column("path", Text, nullable=False),
    Column("topic_key", Text, nullable=False),
    Column("last_revision", Integer, nullable=False, server_default=text("0")),
    Column("published_revision", Integer),
    Column("published_content_hash", Text),
    Column("published_title", Text),
    Column("published_meta_description", Text),
    Column("remote_id", Text),
    Column("remote_url", Text),
    Column("remote_fingerprint", Text),
    Column("content_changed_at", Time),
    Column("verified_at", Time),
    created(),
    Column("remote_version", Text),
    Column("site_change", Text),
    Column("site_change_reason", Text),
    Column("site_change_standing", Text),
    Column("site_change_version", Text),
    Column("kept_standing", Text),
    Column("may_overwrite", Text),
    Column("site_change_found_at", Time),
    Column("listed_at", Time),
    Column("withdrawn_at", Time),
    Column("first_public_at", Time),
    UniqueConstraint("site", "path"),
    CheckConstraint("published_revision <= last_revision", name="published_exists"),
    CheckConstraint(
        "(published_revision IS NULL) = (remote_fingerprint IS NULL)", name="published_is_proved"
    ),
    CheckConstraint(
        f"site_change IS NULL OR {one_of('site_change', SiteChange)}", name="site_change"
    ),
    CheckConstraint(
        "(site_change IS NULL) = (site_change_standing IS NULL) AND "
        "(site_change IS NULL) = (site_change_reason IS NULL) AND "
        "(site_change IS NULL) = (site_change_found_at IS NULL)",
        name="site_change_says_what",
    ),
    Index(
        "pages_site_change_idx", "site", "path", postgresql_where=text("site_change IS NOT NULL")
    ),
    Index("pages_remote_id_idx", "site", "remote_id"),
    Index("pages_first_public_at_idx", "site", "first_public_at"),
)

topics = Table(
    "topics",
    metadata,
    Column("site", Text, ForeignKey("sites.site"), nullable=False),
    Column("topic_key", Text, nullable=False),
    Column("name", Text, nullable=False),
    Column("row_number", Integer, nullable=False),
    Column("status", Text, nullable=False),
    Column("message", Text),
    Column("page_id", Text, ForeignKey("pages.page_id")),
    Column("input_hash", Text, nullable=False),
    Column("current_job_id", Text),
    created(),
    Column("updated_at", Time, nullable=False, server_default=func.now()),
    Column("noted", BigInteger, nullable=False, server_default=topic_notes.next_value()),
    # The hash of ``core.buckets.slot_of``: a bucket of pages is a stretch of it.
    Column(
        "slot",
        BigInteger,
        Computed(
            "('x' || left(encode(sha256(topic_key::bytea), 'hex'), 8))::bit(32)::bigint",
            persisted=True,
        ),
        nullable=False,
    ),
    PrimaryKeyConstraint("site", "topic_key"),
    CheckConstraint(one_of("status", TopicStatus), name="status"),
    CheckConstraint("(status = 'rejected') = (message IS NOT NULL)", name="rejected_says_why"),
    Index("topics_slot_idx", "site", "slot", "topic_key"),
    Index("topics_noted_idx", "site", "noted"),
)

rejected_rows = Table(
    "rejected_rows",
    metadata,
    Column("site", Text, ForeignKey("sites.site"), nullable=False),
    Column("row_number", Integer, nullable=False),
    Column("message", Text, nullable=False),
    created(),
    PrimaryKeyConstraint("site", "row_number"),
    comment="Rows of the last intake whose id is unusable, so that no page job can carry them",
)

taken_tables = Table(
    "taken_tables",
    metadata,
    Column("site", Text, ForeignKey("sites.site"), nullable=False),
    Column("identity", Text, nullable=False),
    Column("taken_in_at", Time, nullable=False, server_default=func.now()),
    PrimaryKeyConstraint("site"),
    comment="The topic table that all topics of a site are of, as its rows and their rules",
)

page_jobs = Table(
    "page_jobs",
    metadata,
    Column("page_job_id", Text, primary_key=True),
    Column("site", Text, ForeignKey("sites.site"), nullable=False),
    Column("topic_key", Text, nullable=False),
    Column("page_id", Text, ForeignKey("pages.page_id")),
    Column("state", Text, nullable=False),
    Column("sequence", Integer, nullable=False, server_default=text("1")),
    Column("input_hash", Text, nullable=False),
    Column("input_columns", JSONB, nullable=False),
    Column("generation_version", Text, nullable=False),
    Column("nonce", Text, nullable=False, server_default=text("''")),
    Column("owner", Text, nullable=False),
    Column("requested_by", Text, nullable=False),
    Column("priority", Integer, nullable=False, server_default=text("0")),
    Column("epoch", Integer, nullable=False, server_default=text("1")),
    Column("revision", Integer),
    Column("failure_class", Text),
    Column("failure_message", Text),
    Column("next_attempt_at", Time, nullable=False, server_default=func.now()),
    Column("cancel_requested_at", Time),
    created(),
    Column("updated_at", Time, nullable=False, server_default=func.now()),
    Column("finished_at", Time),
    Column("cancel_requested_by", Text),
    Column("cancel_reason", Text),
    Column("deadline_at", Time, nullable=False),
    Column("waits_for_usd", Usd),
    ForeignKeyConstraint(["site", "topic_key"], ["topics.site", "topics.topic_key"]),
    CheckConstraint(one_of("state", PageJobState), name="state"),
    CheckConstraint(
        f"failure_class IS NULL OR {one_of('failure_class', FailureClass)}", name="failure_class"
    ),
    CheckConstraint(
        "state NOT IN ('failed_retryable', 'failed_terminal', 'dead_lettered', "
        "'generation_uncertain', 'publish_uncertain') "
        "OR (failure_class IS NOT NULL AND failure_message IS NOT NULL)",
        name="failed_says_why",
    ),
    CheckConstraint(f"(finished_at IS NOT NULL) = ({one_of('state', FINAL)})", name="finished"),
    CheckConstraint(
        "revision IS NOT NULL OR state NOT IN "
        "('generated', 'validating', 'ready_to_publish', 'publishing', 'publish_uncertain', "
        "'published')",
        name="draft_is_stored",
    ),
    CheckConstraint("page_id IS NOT NULL OR state = 'failed_terminal'", name="has_a_target"),
    CheckConstraint(
        "cancel_reason IS NULL OR cancel_requested_at IS NOT NULL", name="reason_of_request"
    ),
    # The order of claiming: with 20,000 jobs due, sorting them for each claim took 57 ms.
    Index(
        "page_jobs_due_idx",
        "site",
        text("priority DESC"),
        "next_attempt_at",
        "page_job_id",
        postgresql_where=text(one_of("state", WORKABLE)),
    ),
    Index(
        "page_jobs_one_published_key",
        "page_id",
        unique=True,
        postgresql_where=text("state = 'published'"),
    ),
    Index("page_jobs_topic_idx", "site", "topic_key"),
    # What changed since it was last read. Jobs that only wait for their begin are most of a new
    # site, and nothing is shown of them.
    Index(
        "page_jobs_changed_idx",
        "site",
        "updated_at",
        "page_job_id",
        # In words that no other query uses: as `state <> 'queued'` it looked empty, and so cheap,
        # while the planner knew of queued pages only, and a survey read all of it for each page.
        postgresql_where=text("(state = 'queued') IS FALSE"),
    ),
    Index(
        "page_jobs_regenerated_idx",
        "site",
        "generation_version",
        postgresql_where=text("nonce <> ''"),
    ),
    # When the first of a state is due, with or without a draft: one look into the index for each.
    Index(
        "page_jobs_by_state_idx",
        "site",
        "state",
        text("(revision IS NULL)"),
        "next_attempt_at",
        postgresql_where=text(one_of("state", WORKABLE)),
    ),
    # Three lines in which pages wait for something else than their time, in the order of claiming.
    Index(
        "page_jobs_budget_line_idx",
        "site",
        text("priority DESC"),
        "next_attempt_at",
        "page_job_id",
        postgresql_where=text("state = 'failed_retryable' AND failure_class = 'budget'"),
    ),
    Index(
        "page_jobs_turn_line_idx",
        "site",
        text("priority DESC"),
        "next_attempt_at",
        "page_job_id",
        postgresql_where=text(
            "state = 'ready_to_publish' AND failure_class IS NULL AND failure_message IS NOT NULL"
        ),
    ),
    Index(
        "page_jobs_draft_line_idx",
        "site",
        text("priority DESC"),
        "next_attempt_at",
        "page_job_id",
        postgresql_where=text(
            "state = 'queued' AND failure_class IS NULL AND failure_message IS NOT NULL"
        ),
    ),
    Index(
        "page_jobs_unfinished_idx",
        "page_id",
        postgresql_where=text(one_of("state", WORKABLE)),
    ),
    # The health of a site of 1,000,000 pages is read from the few rows that this holds.
    Index(
        "page_jobs_failed_idx",
        "site",
        "finished_at",
        postgresql_where=text(one_of("state", NEEDS_PERSON)),
    ),
)

allowed_moves = Table(
    "allowed_moves",
    metadata,
    Column("from_state", Text, nullable=False),
    Column("to_state", Text, nullable=False),
    Column("why", Text, nullable=False),
    PrimaryKeyConstraint("from_state", "to_state"),
)

transitions = Table(
    "transitions",
    metadata,
    Column("page_job_id", Text, ForeignKey("page_jobs.page_job_id"), nullable=False),
    Column("sequence", Integer, nullable=False),
    Column("from_state", Text),
    Column("to_state", Text, nullable=False),
    Column("why", Text, nullable=False),
    Column("worker", Text, nullable=False),
    Column("lease_token", BigInteger),
    Column("at", Time, nullable=False, server_default=func.clock_timestamp()),
    PrimaryKeyConstraint("page_job_id", "sequence"),
    ForeignKeyConstraint(
        ["from_state", "to_state"], ["allowed_moves.from_state", "allowed_moves.to_state"]
    ),
    CheckConstraint("(from_state IS NULL) = (sequence = 1)", name="first_has_no_source"),
    Index(
        "transitions_outcomes_idx",
        "to_state",
        "at",
        postgresql_where=text(one_of("to_state", OUTCOMES)),
    ),
    comment="Append-only: triggers refuse UPDATE, DELETE and TRUNCATE",
)

draft_revisions = Table(
    "draft_revisions",
    metadata,
    Column("page_id", Text, ForeignKey("pages.page_id"), nullable=False),
    Column("revision", Integer, nullable=False),
    Column("page_job_id", Text, ForeignKey("page_jobs.page_job_id"), nullable=False),
    Column("attempt_id", Text, nullable=False),
    Column("article", JSONB, nullable=False),
    Column("output_hash", Text, nullable=False),
    Column("copied_from_revision", Integer),
    created(),
    PrimaryKeyConstraint("page_id", "revision"),
    Index("draft_revisions_page_job_id_idx", "page_job_id"),
)

step_outputs = Table(
    "step_outputs",
    metadata,
    Column("page_job_id", Text, ForeignKey("page_jobs.page_job_id"), nullable=False),
    Column("step", Text, nullable=False),
    Column("page_id", Text, ForeignKey("pages.page_id"), nullable=False),
    Column("step_key", Text, nullable=False),
    Column("attempt_id", Text, nullable=False),
    Column("output", JSONB, nullable=False),
    Column("output_hash", Text, nullable=False),
    created(),
    Column("vector", LargeBinary),
    PrimaryKeyConstraint("page_job_id", "step", "step_key"),
    Index("step_outputs_page_id_idx", "page_id"),
)
