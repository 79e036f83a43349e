"""What reports and checks read of a large site, the uncertain and the failed, has indexes.

The states are those of ``core.states`` on the day of this migration.
"""

import sqlalchemy as sa
from alembic import op

revision = "0013"
down_revision = "0012"
branch_labels = None
depends_on = None

SCHEMA = "content_pipeline"

INDEXES = (
    (
        "page_jobs_uncertain_idx",
        "page_jobs",
        ["site", "state"],
        "state IN ('generation_uncertain', 'publish_uncertain')",
    ),
    (
        "page_jobs_failed_idx",
        "page_jobs",
        ["site", "finished_at"],
        "state IN ('dead_lettered', 'failed_terminal')",
    ),
    (
        "transitions_outcomes_idx",
        "transitions",
        ["to_state", "at"],
        "to_state IN ('dead_lettered', 'failed_terminal', 'published')",
    ),
    (
        "attempts_failed_idx",
        "attempts",
        ["finished_at"],
        "state IN ('failed', 'uncertain')",
    ),
    ("spend_uncertain_idx", "spend", ["site", "day"], "state = 'uncertain'"),
)


def upgrade() -> None:
    for name, table, columns, where in INDEXES:
        op.create_index(
            name, table, columns, unique=False, schema=SCHEMA, postgresql_where=sa.text(where)
        )


def downgrade() -> None:
    for name, table, _, _ in reversed(INDEXES):
        op.drop_index(name, table_name=table, schema=SCHEMA)
