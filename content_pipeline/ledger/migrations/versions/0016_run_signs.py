"""Signs of life of Dagster's runs, and page jobs in the order of their last change.

Both let Dagster's picture be made to agree with the ledger after something died: runs whose worker is
silent are given up, and pages that changed outside a run are shown.
"""

import sqlalchemy as sa
from alembic import op

revision = "0016"
down_revision = "0015"
branch_labels = None
depends_on = None

SCHEMA = "content_pipeline"


def upgrade() -> None:
    op.create_table(
        "run_signs",
        sa.Column("run_id", sa.Text(), primary_key=True),
        sa.Column("site", sa.Text(), nullable=False),
        sa.Column("worker", sa.Text(), nullable=False),
        sa.Column(
            "began_at",
            sa.DateTime(timezone=True),
            server_default=sa.func.clock_timestamp(),
            nullable=False,
        ),
        sa.Column(
            "seen_at",
            sa.DateTime(timezone=True),
            server_default=sa.func.clock_timestamp(),
            nullable=False,
        ),
        sa.Column("suspected_at", sa.DateTime(timezone=True)),
        sa.Column("given_up_at", sa.DateTime(timezone=True)),
        sa.Column("told_at", sa.DateTime(timezone=True)),
        sa.CheckConstraint("told_at IS NULL OR given_up_at IS NOT NULL", name="told_is_over"),
        schema=SCHEMA,
        comment="One row per Dagster run at work; it is gone once the run ended in order",
    )
    op.create_index(
        "page_jobs_changed_idx",
        "page_jobs",
        ["site", "updated_at", "page_job_id"],
        schema=SCHEMA,
        postgresql_where=sa.text("(state = 'queued') IS FALSE"),
    )


def downgrade() -> None:
    op.drop_index("page_jobs_changed_idx", "page_jobs", schema=SCHEMA)
    op.drop_table("run_signs", schema=SCHEMA)
