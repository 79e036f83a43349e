"""Due page jobs are found in the order they are claimed in, without sorting all of them.

The states are those of ``core.states.WORKABLE`` on the day of this migration.
"""

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"
branch_labels = None
depends_on = None

WORKABLE = sa.text(
    "state IN ('failed_retryable', 'generated', 'generating', 'generation_uncertain', 'publish_uncertain', 'publishing', 'queued', 'ready_to_publish', 'reserved', 'validating')"
)


def upgrade() -> None:
    _replace_index(["site", sa.text("priority DESC"), "next_attempt_at", "page_job_id"])


def downgrade() -> None:
    _replace_index(["site", "next_attempt_at"])


def _replace_index(columns: list[str | sa.TextClause]) -> None:
    op.drop_index("page_jobs_due_idx", table_name="page_jobs", schema="content_pipeline")
    op.create_index(
        "page_jobs_due_idx",
        "page_jobs",
        columns,
        unique=False,
        schema="content_pipeline",
        postgresql_where=WORKABLE,
    )
