"""The first tables of the ledger."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0001"
down_revision = None
branch_labels = None
depends_on = None


def upgrade() -> None:
    op.execute(sa.schema.CreateSequence(sa.Sequence("lease_tokens", schema="content_pipeline")))
    op.execute(sa.schema.CreateSequence(sa.Sequence("effect_numbers", schema="content_pipeline")))
    op.create_table(
        "allowed_moves",
        sa.Column("from_state", sa.Text(), nullable=False),
        sa.Column("to_state", sa.Text(), nullable=False),
        sa.Column("why", sa.Text(), nullable=False),
        sa.PrimaryKeyConstraint("from_state", "to_state", name=op.f("allowed_moves_pkey")),
        schema="content_pipeline",
    )
    op.create_table(
        "budgets",
        sa.Column("scope", sa.Text(), nullable=False),
        sa.Column("committed_usd", sa.Numeric(precision=18, scale=8), nullable=False),
        sa.CheckConstraint("committed_usd >= 0", name=op.f("budgets_not_negative")),
        sa.PrimaryKeyConstraint("scope", name=op.f("budgets_pkey")),
        schema="content_pipeline",
        comment="Per scope: what is reserved or spent, kept equal to the sum over spend",
    )
    op.create_table(
        "leases",
        sa.Column("resource", sa.Text(), nullable=False),
        sa.Column("token", sa.BigInteger(), nullable=False),
        sa.Column("worker", sa.Text(), nullable=False),
        sa.Column(
            "acquired_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("clock_timestamp()"),
            nullable=False,
        ),
        sa.Column("expires_at", sa.DateTime(timezone=True), nullable=False),
        sa.PrimaryKeyConstraint("resource", name=op.f("leases_pkey")),
        sa.UniqueConstraint("token", name=op.f("leases_token_key")),
        schema="content_pipeline",
    )
    op.create_table(
        "sites",
        sa.Column("site", sa.Text(), nullable=False),
        sa.Column("title", sa.Text(), nullable=False),
        sa.Column("base_url", sa.Text(), nullable=False),
        sa.Column("owner", sa.Text(), nullable=False),
        sa.Column(
            "created_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("now()"),
            nullable=False,
        ),
        sa.PrimaryKeyConstraint("site", name=op.f("sites_pkey")),
        schema="content_pipeline",
    )
    op.create_table(
        "pages",
        sa.Column("page_id", sa.Text(), nullable=False),
        sa.Column("site", sa.Text(), nullable=False),
        sa.Column("path", sa.Text(), nullable=False),
        sa.Column("topic_key", sa.Text(), nullable=False),
        sa.Column("last_revision", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("published_revision", sa.Integer(), nullable=True),
        sa.Column("published_content_hash", sa.Text(), nullable=True),
        sa.Column("published_title", sa.Text(), nullable=True),
        sa.Column("published_meta_description", sa.Text(), nullable=True),
        sa.Column("remote_id", sa.Text(), nullable=True),
        sa.Column("remote_url", sa.Text(), nullable=True),
        sa.Column("remote_fingerprint", sa.Text(), nullable=True),
        sa.Column("content_changed_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("verified_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column(
            "created_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("now()"),
            nullable=False,
        ),
        sa.CheckConstraint(
            "(published_revision IS NULL) = (remote_fingerprint IS NULL)",
            name=op.f("pages_published_is_proved"),
        ),
        sa.CheckConstraint(
            "published_revision <= last_revision", name=op.f("pages_published_exists")
        ),
        sa.ForeignKeyConstraint(
            ["site"], ["content_pipeline.sites.site"], name=op.f("pages_site_fkey")
        ),
        sa.PrimaryKeyConstraint("page_id", name=op.f("pages_pkey")),
        sa.UniqueConstraint("site", "path", name=op.f("pages_site_path_key")),
        schema="content_pipeline",
    )
    op.create_table(
        "rejected_rows",
        sa.Column("site", sa.Text(), nullable=False),
        sa.Column("row_number", sa.Integer(), nullable=False),
        sa.Column("message", sa.Text(), nullable=False),
        sa.Column(
            "created_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("now()"),
            nullable=False,
        ),
        sa.ForeignKeyConstraint(
            ["site"], ["content_pipeline.sites.site"], name=op.f("rejected_rows_site_fkey")
        ),
        sa.PrimaryKeyConstraint("site", "row_number", name=op.f("rejected_rows_pkey")),
        schema="content_pipeline",
        comment="Rows of the last intake whose id is unusable, so that no page job can carry them",
    )
    op.create_table(
        "topics",
        sa.Column("site", sa.Text(), nullable=False),
        sa.Column("topic_key", sa.Text(), nullable=False),
        sa.Column("name", sa.Text(), nullable=False),
        sa.Column("row_number", sa.Integer(), nullable=False),
        sa.Column("status", sa.Text(), nullable=False),
        sa.Column("message", sa.Text(), nullable=True),
        sa.Column("page_id", sa.Text(), nullable=True),
        sa.Column("input_hash", sa.Text(), nullable=False),
        sa.Column("current_job_id", sa.Text(), nullable=True),
        sa.Column(
            "created_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("now()"),
            nullable=False,
        ),
        sa.Column(
            "updated_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("now()"),
            nullable=False,
        ),
        sa.CheckConstraint(
            "(status = 'rejected') = (message IS NOT NULL)", name=op.f("topics_rejected_says_why")
        ),
        sa.CheckConstraint("status IN ('active', 'rejected')", name=op.f("topics_status")),
        sa.ForeignKeyConstraint(
            ["page_id"], ["content_pipeline.pages.page_id"], name=op.f("topics_page_id_fkey")
        ),
        sa.ForeignKeyConstraint(
            ["site"], ["content_pipeline.sites.site"], name=op.f("topics_site_fkey")
        ),
        sa.PrimaryKeyConstraint("site", "topic_key", name=op.f("topics_pkey")),
        schema="content_pipeline",
    )
    op.create_table(
        "page_jobs",
        sa.Column("page_job_id", sa.Text(), nullable=False),
        sa.Column("site", sa.Text(), nullable=False),
        sa.Column("topic_key", sa.Text(), nullable=False),
        sa.Column("page_id", sa.Text(), nullable=True),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("sequence", sa.Integer(), server_default=sa.text("1"), nullable=False),
        sa.Column("input_hash", sa.Text(), nullable=False),
        sa.Column("input_columns", postgresql.JSONB(astext_type=sa.Text()), nullable=False),
        sa.Column("generation_version", sa.Text(), nullable=False),
        sa.Column("nonce", sa.Text(), server_default=sa.text("''"), nullable=False),
        sa.Column("owner", sa.Text(), nullable=False),
        sa.Column("requested_by", sa.Text(), nullable=False),
        sa.Column("priority", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("epoch", sa.Integer(), server_default=sa.text("1"), nullable=False),
        sa.Column("revision", sa.Integer(), nullable=True),
        sa.Column("failure_class", sa.Text(), nullable=True),
        sa.Column("failure_message", sa.Text(), nullable=True),
        sa.Column(
            "next_attempt_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("now()"),
            nullable=False,
        ),
        sa.Column("cancel_requested_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column(
            "created_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("now()"),
            nullable=False,
        ),
        sa.Column(
            "updated_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("now()"),
            nullable=False,
        ),
        sa.Column("finished_at", sa.DateTime(timezone=True), nullable=True),
        sa.CheckConstraint(
            "(finished_at IS NOT NULL) = (state IN ('cancelled', 'dead_lettered', 'failed_terminal', 'published', 'superseded'))",
            name=op.f("page_jobs_finished"),
        ),
        sa.CheckConstraint(
            "failure_class IS NULL OR failure_class IN ('auth', 'bad_output', 'budget', 'conflict', 'internal', 'invalid_input', 'invalid_page', 'not_sent', 'policy', 'quota', 'request', 'storage', 'terminal', 'throttled', 'transient', 'uncertain')",
            name=op.f("page_jobs_failure_class"),
        ),
        sa.CheckConstraint(
            "page_id IS NOT NULL OR state = 'failed_terminal'", name=op.f("page_jobs_has_a_target")
        ),
        sa.CheckConstraint(
            "revision IS NOT NULL OR state NOT IN ('generated', 'validating', 'ready_to_publish', 'publishing', 'publish_uncertain', 'published')",
            name=op.f("page_jobs_draft_is_stored"),
        ),
        sa.CheckConstraint(
            "state IN ('cancelled', 'dead_lettered', 'failed_retryable', 'failed_terminal', 'generated', 'generating', 'generation_uncertain', 'publish_uncertain', 'published', 'publishing', 'queued', 'ready_to_publish', 'reserved', 'superseded', 'validating')",
            name=op.f("page_jobs_state"),
        ),
        sa.CheckConstraint(
            "state NOT IN ('failed_retryable', 'failed_terminal', 'dead_lettered', 'generation_uncertain', 'publish_uncertain') OR (failure_class IS NOT NULL AND failure_message IS NOT NULL)",
            name=op.f("page_jobs_failed_says_why"),
        ),
        sa.ForeignKeyConstraint(
            ["page_id"], ["content_pipeline.pages.page_id"], name=op.f("page_jobs_page_id_fkey")
        ),
        sa.ForeignKeyConstraint(
            ["site", "topic_key"],
            ["content_pipeline.topics.site", "content_pipeline.topics.topic_key"],
            name=op.f("page_jobs_site_topic_key_fkey"),
        ),
        sa.ForeignKeyConstraint(
            ["site"], ["content_pipeline.sites.site"], name=op.f("page_jobs_site_fkey")
        ),
        sa.PrimaryKeyConstraint("page_job_id", name=op.f("page_jobs_pkey")),
        schema="content_pipeline",
    )
    op.create_index(
        "page_jobs_due_idx",
        "page_jobs",
        ["site", "next_attempt_at"],
        unique=False,
        schema="content_pipeline",
        postgresql_where=sa.text(
            "state IN ('failed_retryable', 'generated', 'generating', 'generation_uncertain', 'publish_uncertain', 'publishing', 'queued', 'ready_to_publish', 'reserved', 'validating')"
        ),
    )
    op.create_index(
        "page_jobs_one_published_key",
        "page_jobs",
        ["page_id"],
        unique=True,
        schema="content_pipeline",
        postgresql_where=sa.text("state = 'published'"),
    )
    op.create_index(
        "page_jobs_topic_idx",
        "page_jobs",
        ["site", "topic_key"],
        unique=False,
        schema="content_pipeline",
    )
    op.create_table(
        "draft_revisions",
        sa.Column("page_id", sa.Text(), nullable=False),
        sa.Column("revision", sa.Integer(), nullable=False),
        sa.Column("page_job_id", sa.Text(), nullable=False),
        sa.Column("attempt_id", sa.Text(), nullable=False),
        sa.Column("article", postgresql.JSONB(astext_type=sa.Text()), nullable=False),
        sa.Column("output_hash", sa.Text(), nullable=False),
        sa.Column("copied_from_revision", sa.Integer(), nullable=True),
        sa.Column(
            "created_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("now()"),
            nullable=False,
        ),
        sa.ForeignKeyConstraint(
            ["page_id"],
            ["content_pipeline.pages.page_id"],
            name=op.f("draft_revisions_page_id_fkey"),
        ),
        sa.ForeignKeyConstraint(
            ["page_job_id"],
            ["content_pipeline.page_jobs.page_job_id"],
            name=op.f("draft_revisions_page_job_id_fkey"),
        ),
        sa.PrimaryKeyConstraint("page_id", "revision", name=op.f("draft_revisions_pkey")),
        schema="content_pipeline",
    )
    op.create_index(
        "draft_revisions_page_job_id_idx",
        "draft_revisions",
        ["page_job_id"],
        unique=False,
        schema="content_pipeline",
    )
    op.create_table(
        "effects",
        sa.Column("effect_key", sa.Text(), nullable=False),
        sa.Column("site", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("page_id", sa.Text(), nullable=True),
        sa.Column("page_job_id", sa.Text(), nullable=True),
        sa.Column("revision", sa.Integer(), nullable=True),
        sa.Column("owner", sa.Text(), nullable=False),
        sa.Column("request_hash", sa.Text(), nullable=True),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("attempts", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("absent_looks", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("unknown_looks", sa.Integer(), server_default=sa.text("0"), nullable=False),
        sa.Column("outcome", sa.Text(), nullable=True),
        sa.Column("result_reference", sa.Text(), nullable=True),
        sa.Column("failure_class", sa.Text(), nullable=True),
        sa.Column("failure_message", sa.Text(), nullable=True),
        sa.Column(
            "next_attempt_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("now()"),
            nullable=False,
        ),
        sa.Column(
            "created_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("now()"),
            nullable=False,
        ),
        sa.Column(
            "requested_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("clock_timestamp()"),
            nullable=False,
        ),
        sa.Column(
            "updated_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("now()"),
            nullable=False,
        ),
        sa.Column("finished_at", sa.DateTime(timezone=True), nullable=True),
        sa.CheckConstraint(
            "(state = 'done') = (outcome IS NOT NULL)", name=op.f("effects_done_has_outcome")
        ),
        sa.CheckConstraint(
            "state <> 'failed' OR failure_class IS NOT NULL", name=op.f("effects_failed_says_why")
        ),
        sa.CheckConstraint(
            "state IN ('done', 'failed', 'in_progress', 'pending', 'uncertain')",
            name=op.f("effects_state"),
        ),
        sa.ForeignKeyConstraint(
            ["page_id"], ["content_pipeline.pages.page_id"], name=op.f("effects_page_id_fkey")
        ),
        sa.ForeignKeyConstraint(
            ["page_job_id"],
            ["content_pipeline.page_jobs.page_job_id"],
            name=op.f("effects_page_job_id_fkey"),
        ),
        sa.ForeignKeyConstraint(
            ["site"], ["content_pipeline.sites.site"], name=op.f("effects_site_fkey")
        ),
        sa.PrimaryKeyConstraint("effect_key", name=op.f("effects_pkey")),
        schema="content_pipeline",
    )
    op.create_index(
        "effects_one_pending_site_effect_key",
        "effects",
        ["site", "kind"],
        unique=True,
        schema="content_pipeline",
        postgresql_where=sa.text("page_id IS NULL AND state = 'pending'"),
    )
    op.create_index(
        "effects_page_id_idx",
        "effects",
        ["page_id", "revision"],
        unique=False,
        schema="content_pipeline",
    )
    op.create_table(
        "spend",
        sa.Column("attempt_id", sa.Text(), nullable=False),
        sa.Column("site", sa.Text(), nullable=False),
        sa.Column("page_job_id", sa.Text(), nullable=False),
        sa.Column("day", sa.Date(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("reserved_usd", sa.Numeric(precision=18, scale=8), nullable=False),
        sa.Column("settled_usd", sa.Numeric(precision=18, scale=8), nullable=True),
        sa.Column(
            "created_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("now()"),
            nullable=False,
        ),
        sa.Column(
            "updated_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("now()"),
            nullable=False,
        ),
        sa.CheckConstraint(
            "(state IN ('settled', 'released')) = (settled_usd IS NOT NULL)",
            name=op.f("spend_settled"),
        ),
        sa.CheckConstraint(
            "state IN ('released', 'reserved', 'settled', 'uncertain')", name=op.f("spend_state")
        ),
        sa.CheckConstraint(
            "reserved_usd >= 0 AND settled_usd >= 0", name=op.f("spend_not_negative")
        ),
        sa.ForeignKeyConstraint(
            ["page_job_id"],
            ["content_pipeline.page_jobs.page_job_id"],
            name=op.f("spend_page_job_id_fkey"),
        ),
        sa.ForeignKeyConstraint(
            ["site"], ["content_pipeline.sites.site"], name=op.f("spend_site_fkey")
        ),
        sa.PrimaryKeyConstraint("attempt_id", name=op.f("spend_pkey")),
        schema="content_pipeline",
    )
    op.create_index(
        "spend_page_job_id_idx", "spend", ["page_job_id"], unique=False, schema="content_pipeline"
    )
    op.create_index(
        "spend_site_day_idx", "spend", ["site", "day"], unique=False, schema="content_pipeline"
    )
    op.create_table(
        "transitions",
        sa.Column("page_job_id", sa.Text(), nullable=False),
        sa.Column("sequence", sa.Integer(), nullable=False),
        sa.Column("from_state", sa.Text(), nullable=True),
        sa.Column("to_state", sa.Text(), nullable=False),
        sa.Column("why", sa.Text(), nullable=False),
        sa.Column("worker", sa.Text(), nullable=False),
        sa.Column("lease_token", sa.BigInteger(), nullable=True),
        sa.Column(
            "at",
            sa.DateTime(timezone=True),
            server_default=sa.text("clock_timestamp()"),
            nullable=False,
        ),
        sa.CheckConstraint(
            "(from_state IS NULL) = (sequence = 1)", name=op.f("transitions_first_has_no_source")
        ),
        sa.ForeignKeyConstraint(
            ["from_state", "to_state"],
            [
                "content_pipeline.allowed_moves.from_state",
                "content_pipeline.allowed_moves.to_state",
            ],
            name=op.f("transitions_from_state_to_state_fkey"),
        ),
        sa.ForeignKeyConstraint(
            ["page_job_id"],
            ["content_pipeline.page_jobs.page_job_id"],
            name=op.f("transitions_page_job_id_fkey"),
        ),
        sa.PrimaryKeyConstraint("page_job_id", "sequence", name=op.f("transitions_pkey")),
        schema="content_pipeline",
        comment="Append-only: triggers refuse UPDATE, DELETE and TRUNCATE",
    )
    op.create_table(
        "attempts",
        sa.Column("attempt_id", sa.Text(), nullable=False),
        sa.Column("page_job_id", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("step", sa.Text(), nullable=False),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("epoch", sa.Integer(), nullable=False),
        sa.Column("state", sa.Text(), nullable=False),
        sa.Column("worker", sa.Text(), nullable=False),
        sa.Column("run_id", sa.Text(), nullable=True),
        sa.Column("effect_key", sa.Text(), nullable=True),
        sa.Column("generation_version", sa.Text(), nullable=False),
        sa.Column("input_hash", sa.Text(), nullable=False),
        sa.Column("revision", sa.Integer(), nullable=True),
        sa.Column("output_hash", sa.Text(), nullable=True),
        sa.Column("model", sa.Text(), nullable=True),
        sa.Column("request_id", sa.Text(), nullable=True),
        sa.Column("response_id", sa.Text(), nullable=True),
        sa.Column("failure_class", sa.Text(), nullable=True),
        sa.Column("failure_message", sa.Text(), nullable=True),
        sa.Column("failure_explanation", sa.Text(), nullable=True),
        sa.Column("failure_code", sa.Text(), nullable=True),
        sa.Column("failure_type", sa.Text(), nullable=True),
        sa.Column("http_status", sa.Integer(), nullable=True),
        sa.Column("input_tokens", sa.Integer(), nullable=True),
        sa.Column("cached_tokens", sa.Integer(), nullable=True),
        sa.Column("cache_write_tokens", sa.Integer(), nullable=True),
        sa.Column("output_tokens", sa.Integer(), nullable=True),
        sa.Column("reasoning_tokens", sa.Integer(), nullable=True),
        sa.Column("service_tier", sa.Text(), nullable=True),
        sa.Column("recovered", sa.Boolean(), server_default=sa.text("false"), nullable=False),
        sa.Column(
            "started_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("clock_timestamp()"),
            nullable=False,
        ),
        sa.Column("answer_by", sa.DateTime(timezone=True), nullable=True),
        sa.Column("finished_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("latency_s", sa.Float(), nullable=True),
        sa.CheckConstraint(
            "(state = 'open') = (finished_at IS NULL)", name=op.f("attempts_finished")
        ),
        sa.CheckConstraint(
            "failure_class IS NULL OR failure_class IN ('auth', 'bad_output', 'budget', 'conflict', 'internal', 'invalid_input', 'invalid_page', 'not_sent', 'policy', 'quota', 'request', 'storage', 'terminal', 'throttled', 'transient', 'uncertain')",
            name=op.f("attempts_failure_class"),
        ),
        sa.CheckConstraint("kind IN ('generate', 'publish')", name=op.f("attempts_kind")),
        sa.CheckConstraint(
            "state IN ('failed', 'open', 'succeeded', 'uncertain')", name=op.f("attempts_state")
        ),
        sa.CheckConstraint(
            "state NOT IN ('failed', 'uncertain') OR (failure_class IS NOT NULL AND failure_message IS NOT NULL AND failure_explanation IS NOT NULL)",
            name=op.f("attempts_failed_says_why"),
        ),
        sa.ForeignKeyConstraint(
            ["effect_key"],
            ["content_pipeline.effects.effect_key"],
            name=op.f("attempts_effect_key_fkey"),
        ),
        sa.ForeignKeyConstraint(
            ["page_job_id"],
            ["content_pipeline.page_jobs.page_job_id"],
            name=op.f("attempts_page_job_id_fkey"),
        ),
        sa.PrimaryKeyConstraint("attempt_id", name=op.f("attempts_pkey")),
        sa.UniqueConstraint(
            "page_job_id", "kind", "number", name=op.f("attempts_page_job_id_kind_number_key")
        ),
        schema="content_pipeline",
    )
    op.create_index(
        "attempts_one_open_key",
        "attempts",
        ["page_job_id"],
        unique=True,
        schema="content_pipeline",
        postgresql_where=sa.text("state = 'open'"),
    )
    op.create_table(
        "attempt_responses",
        sa.Column("attempt_id", sa.Text(), nullable=False),
        sa.Column("source", sa.Text(), nullable=False),
        sa.Column("http_status", sa.Integer(), nullable=False),
        sa.Column("headers", postgresql.JSONB(astext_type=sa.Text()), nullable=False),
        sa.Column("body", sa.LargeBinary(), nullable=False),
        sa.Column(
            "created_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("now()"),
            nullable=False,
        ),
        sa.ForeignKeyConstraint(
            ["attempt_id"],
            ["content_pipeline.attempts.attempt_id"],
            name=op.f("attempt_responses_attempt_id_fkey"),
        ),
        sa.PrimaryKeyConstraint("attempt_id", "source", name=op.f("attempt_responses_pkey")),
        sa.CheckConstraint("source IN ('call', 'look_up')", name=op.f("attempt_responses_source")),
        schema="content_pipeline",
        comment="The raw answer of a paid call, committed before anything parses it",
    )


def downgrade() -> None:
    op.drop_table("attempt_responses", schema="content_pipeline")
    op.drop_index(
        "attempts_one_open_key",
        table_name="attempts",
        schema="content_pipeline",
        postgresql_where=sa.text("state = 'open'"),
    )
    op.drop_table("attempts", schema="content_pipeline")
    op.drop_table("transitions", schema="content_pipeline")
    op.drop_index("spend_site_day_idx", table_name="spend", schema="content_pipeline")
    op.drop_index("spend_page_job_id_idx", table_name="spend", schema="content_pipeline")
    op.drop_table("spend", schema="content_pipeline")
    op.drop_index("effects_page_id_idx", table_name="effects", schema="content_pipeline")
    op.drop_index(
        "effects_one_pending_site_effect_key",
        table_name="effects",
        schema="content_pipeline",
        postgresql_where=sa.text("page_id IS NULL AND state = 'pending'"),
    )
    op.drop_table("effects", schema="content_pipeline")
    op.drop_index(
        "draft_revisions_page_job_id_idx", table_name="draft_revisions", schema="content_pipeline"
    )
    op.drop_table("draft_revisions", schema="content_pipeline")
    op.drop_index("page_jobs_topic_idx", table_name="page_jobs", schema="content_pipeline")
    op.drop_index(
        "page_jobs_one_published_key",
        table_name="page_jobs",
        schema="content_pipeline",
        postgresql_where=sa.text("state = 'published'"),
    )
    op.drop_index(
        "page_jobs_due_idx",
        table_name="page_jobs",
        schema="content_pipeline",
        postgresql_where=sa.text(
            "state IN ('failed_retryable', 'generated', 'generating', 'generation_uncertain', 'publish_uncertain', 'publishing', 'queued', 'ready_to_publish', 'reserved', 'validating')"
        ),
    )
    op.drop_table("page_jobs", schema="content_pipeline")
    op.drop_table("topics", schema="content_pipeline")
    op.drop_table("rejected_rows", schema="content_pipeline")
    op.drop_table("pages", schema="content_pipeline")
    op.drop_table("sites", schema="content_pipeline")
    op.drop_table("leases", schema="content_pipeline")
    op.drop_table("budgets", schema="content_pipeline")
    op.drop_table("allowed_moves", schema="content_pipeline")
    op.execute(sa.schema.DropSequence(sa.Sequence("effect_numbers", schema="content_pipeline")))
    op.execute(sa.schema.DropSequence(sa.Sequence("lease_tokens", schema="content_pipeline")))
