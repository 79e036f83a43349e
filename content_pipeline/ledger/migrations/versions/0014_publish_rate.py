"""When a page first became public, and how long the prompt of a paid call was.

Both are what a plan counts with: new pages per day, and tokens per byte of a prompt. Pages that were
public before get the time of their first proof from the log of transitions.
"""

import sqlalchemy as sa
from alembic import op

revision = "0014"
down_revision = "0013"
branch_labels = None
depends_on = None

SCHEMA = "content_pipeline"
_OUTGOING = "state IN ('publish_uncertain', 'publishing', 'ready_to_publish')"


def upgrade() -> None:
    op.add_column("pages", sa.Column("first_public_at", sa.DateTime(timezone=True)), schema=SCHEMA)
    op.execute(
        f"""
        UPDATE {SCHEMA}.pages p SET first_public_at = first.at
        FROM (SELECT j.page_id, min(t.at) AS at FROM {SCHEMA}.transitions t
              JOIN {SCHEMA}.page_jobs j ON j.page_job_id = t.page_job_id
              WHERE t.to_state = 'published' GROUP BY j.page_id) first
        WHERE first.page_id = p.page_id
        """  # noqa: S608
    )
    op.create_index(
        "pages_first_public_at_idx", "pages", ["site", "first_public_at"], schema=SCHEMA
    )
    op.create_index(
        "page_jobs_outgoing_idx",
        "page_jobs",
        ["site", "state"],
        schema=SCHEMA,
        postgresql_where=sa.text(_OUTGOING),
    )
    op.add_column("attempts", sa.Column("prompt_bytes", sa.Integer()), schema=SCHEMA)


def downgrade() -> None:
    op.drop_column("attempts", "prompt_bytes", schema=SCHEMA)
    op.drop_index("page_jobs_outgoing_idx", "page_jobs", schema=SCHEMA)
    op.drop_index("pages_first_public_at_idx", "pages", schema=SCHEMA)
    op.drop_column("pages", "first_public_at", schema=SCHEMA)
