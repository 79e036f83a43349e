"""What sensors ask at every tick is found by a few looks into an index, however large the ledger.

Topics are numbered in the order in which they were taken in. The index by state serves what those
of the uncertain and of the outgoing served. The states are those of ``core.states`` on the day of
this migration.
"""

import sqlalchemy as sa
from alembic import op

revision = "0015"
down_revision = "0014"
branch_labels = None
depends_on = None

SCHEMA = "content_pipeline"
_WORKABLE = (
    "state IN ('failed_retryable', 'generated', 'generating', 'generation_uncertain', "
    "'publish_uncertain', 'publishing', 'queued', 'ready_to_publish', 'reserved', 'validating', "
    "'withdrawing')"
)
_CLAIM_ORDER: list[str | sa.TextClause] = [
    "site",
    sa.text("priority DESC"),
    "next_attempt_at",
    "page_job_id",
]

ADDED: tuple[tuple[str, str, list[str | sa.TextClause], str], ...] = (
    (
        "page_jobs_by_state_idx",
        "page_jobs",
        ["site", "state", sa.text("(revision IS NULL)"), "next_attempt_at"],
        _WORKABLE,
    ),
    (
        "page_jobs_budget_line_idx",
        "page_jobs",
        _CLAIM_ORDER,
        "state = 'failed_retryable' AND failure_class = 'budget'",
    ),
    (
        "page_jobs_turn_line_idx",
        "page_jobs",
        _CLAIM_ORDER,
        "state = 'ready_to_publish' AND failure_class IS NULL AND failure_message IS NOT NULL",
    ),
    (
        "effects_to_tell_idx",
        "effects",
        ["site", "kind"],
        "page_id IS NULL AND state IN ('in_progress', 'pending')",
    ),
)
REPLACED = (
    ("page_jobs_outgoing_idx", "state IN ('publish_uncertain', 'publishing', 'ready_to_publish')"),
    ("page_jobs_uncertain_idx", "state IN ('generation_uncertain', 'publish_uncertain')"),
)


def upgrade() -> None:
    op.execute(sa.schema.CreateSequence(sa.Sequence("topic_notes", schema=SCHEMA)))
    op.add_column("topics", sa.Column("noted", sa.BigInteger()), schema=SCHEMA)
    op.execute(
        f"""
        UPDATE {SCHEMA}.topics t SET noted = n.noted
        FROM (SELECT site, topic_key,
                     row_number() OVER (ORDER BY site, row_number, topic_key) AS noted
              FROM {SCHEMA}.topics) n
        WHERE t.site = n.site AND t.topic_key = n.topic_key
        """  # noqa: S608
    )
    op.execute(
        f"SELECT setval('{SCHEMA}.topic_notes', count(*) + 1) FROM {SCHEMA}.topics"  # noqa: S608
    )
    op.alter_column(
        "topics",
        "noted",
        nullable=False,
        server_default=sa.text(f"nextval('{SCHEMA}.topic_notes')"),
        schema=SCHEMA,
    )
    op.create_index("topics_noted_idx", "topics", ["site", "noted"], schema=SCHEMA)
    for name, _ in REPLACED:
        op.drop_index(name, table_name="page_jobs", schema=SCHEMA)
    for name, table, columns, where in ADDED:
        op.create_index(name, table, columns, schema=SCHEMA, postgresql_where=sa.text(where))


def downgrade() -> None:
    for name, table, _, _ in reversed(ADDED):
        op.drop_index(name, table_name=table, schema=SCHEMA)
    for name, where in REPLACED:
        op.create_index(
            name, "page_jobs", ["site", "state"], schema=SCHEMA, postgresql_where=sa.text(where)
        )
    op.drop_index("topics_noted_idx", table_name="topics", schema=SCHEMA)
    op.drop_column("topics", "noted", schema=SCHEMA)
    op.execute(sa.schema.DropSequence(sa.Sequence("topic_notes", schema=SCHEMA)))
