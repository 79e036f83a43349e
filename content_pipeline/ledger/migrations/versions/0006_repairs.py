"""What people decide and rules reject: cancellations with a reason, corrections, rejected drafts.

A page job may now answer the same step twice (the second time with the findings about the first),
so an output is known by its question as well. The budget of all sites together begins with what
was spent before it was kept.
"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0006"
down_revision = "0005"
branch_labels = None
depends_on = None

SCHEMA = "content_pipeline"

MOVES = [
    ("validating", "queued", "the draft breaks a rule; one more is asked for, with the findings"),
    ("validating", "dead_lettered", "the draft made with the findings breaks a rule as well"),
    ("failed_terminal", "generation_uncertain", "repaired; a lost call is asked about first"),
    ("dead_lettered", "generation_uncertain", "repaired; a lost call is asked about first"),
    ("cancelled", "generation_uncertain", "wanted again; a lost call is asked about first"),
    ("superseded", "generation_uncertain", "wanted again; a lost call is asked about first"),
]

OLDER_ANSWERS = """
DELETE FROM content_pipeline.step_outputs older USING content_pipeline.step_outputs newer
WHERE newer.page_job_id = older.page_job_id AND newer.step = older.step
  AND (newer.created_at, newer.step_key) > (older.created_at, older.step_key)
"""

SPENT_SO_FAR = """
INSERT INTO content_pipeline.budgets (scope, committed_usd)
SELECT 'global:day:' || day, sum(coalesce(settled_usd, reserved_usd))
FROM content_pipeline.spend GROUP BY day
"""


def _moves() -> sa.TableClause:
    return sa.table(
        "allowed_moves",
        sa.column("from_state"),
        sa.column("to_state"),
        sa.column("why"),
        schema=SCHEMA,
    )


def upgrade() -> None:
    op.bulk_insert(
        _moves(), [{"from_state": source, "to_state": to, "why": why} for source, to, why in MOVES]
    )
    op.execute(SPENT_SO_FAR)
    for name in ("cancel_requested_by", "cancel_reason"):
        op.add_column("page_jobs", sa.Column(name, sa.Text(), nullable=True), schema=SCHEMA)
    op.create_check_constraint(
        op.f("page_jobs_reason_of_request"),
        "page_jobs",
        "cancel_reason IS NULL OR cancel_requested_at IS NOT NULL",
        schema=SCHEMA,
    )
    op.create_index(
        "page_jobs_regenerated_idx",
        "page_jobs",
        ["site", "generation_version"],
        schema=SCHEMA,
        postgresql_where=sa.text("nonce <> ''"),
    )
    op.drop_constraint("step_outputs_pkey", "step_outputs", schema=SCHEMA)
    op.create_primary_key(
        "step_outputs_pkey", "step_outputs", ["page_job_id", "step", "step_key"], schema=SCHEMA
    )
    op.create_table(
        "rejected_drafts",
        sa.Column("page_job_id", sa.Text(), nullable=False),
        sa.Column("revision", sa.Integer(), nullable=False),
        sa.Column("findings", postgresql.JSONB(astext_type=sa.Text()), nullable=False),
        sa.Column("is_asked_again", sa.Boolean(), nullable=False),
        _created_at(),
        sa.ForeignKeyConstraint(
            ["page_job_id"],
            ["content_pipeline.page_jobs.page_job_id"],
            name=op.f("rejected_drafts_page_job_id_fkey"),
        ),
        sa.PrimaryKeyConstraint("page_job_id", "revision", name=op.f("rejected_drafts_pkey")),
        schema=SCHEMA,
    )
    op.create_table(
        "input_fixes",
        sa.Column("site", sa.Text(), nullable=False),
        sa.Column("topic_key", sa.Text(), nullable=False),
        sa.Column("column_name", sa.Text(), nullable=False),
        sa.Column("fixed_at", _TIME, server_default=sa.text("clock_timestamp()"), nullable=False),
        sa.Column("value", sa.Text(), nullable=False),
        sa.Column("table_value", sa.Text(), nullable=False),
        sa.Column("cause", sa.Text(), nullable=False),
        sa.Column("fixed_by", sa.Text(), nullable=False),
        sa.Column("retired_at", _TIME, nullable=True),
        sa.Column("retired_because", sa.Text(), nullable=True),
        sa.ForeignKeyConstraint(
            ["site", "topic_key"],
            ["content_pipeline.topics.site", "content_pipeline.topics.topic_key"],
            name=op.f("input_fixes_site_topic_key_fkey"),
        ),
        sa.CheckConstraint(
            "(retired_at IS NULL) = (retired_because IS NULL)",
            name=op.f("input_fixes_retired_says_why"),
        ),
        sa.PrimaryKeyConstraint(
            "site", "topic_key", "column_name", "fixed_at", name=op.f("input_fixes_pkey")
        ),
        schema=SCHEMA,
        comment="Corrections beside the topic table; each holds until the table's value changes",
    )
    op.create_index(
        "input_fixes_in_force_key",
        "input_fixes",
        ["site", "topic_key", "column_name"],
        unique=True,
        schema=SCHEMA,
        postgresql_where=sa.text("retired_at IS NULL"),
    )


_TIME = sa.DateTime(timezone=True)


def _created_at() -> sa.Column[object]:
    return sa.Column("created_at", _TIME, server_default=sa.text("now()"), nullable=False)


def downgrade() -> None:
    op.drop_table("input_fixes", schema=SCHEMA)
    op.drop_table("rejected_drafts", schema=SCHEMA)
    op.execute(OLDER_ANSWERS)
    op.drop_constraint("step_outputs_pkey", "step_outputs", schema=SCHEMA)
    op.create_primary_key(
        "step_outputs_pkey", "step_outputs", ["page_job_id", "step"], schema=SCHEMA
    )
    op.drop_index("page_jobs_regenerated_idx", table_name="page_jobs", schema=SCHEMA)
    op.drop_constraint("page_jobs_reason_of_request", "page_jobs", schema=SCHEMA)
    for name in ("cancel_reason", "cancel_requested_by"):
        op.drop_column("page_jobs", name, schema=SCHEMA)
    op.execute("DELETE FROM content_pipeline.budgets WHERE scope LIKE 'global:%'")
    moves = _moves()
    for source, to, _ in MOVES:
        op.execute(moves.delete().where(moves.c.from_state == source, moves.c.to_state == to))
