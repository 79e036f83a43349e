"""New pages wait in line for their draft, and calls that nobody can settle come to an end.

A draft is not paid for before the publish rate has a turn for it; the line is found in the order of
claiming by an index of its own. A call that was uncertain for weeks is written off as spent.
"""

import sqlalchemy as sa
from alembic import op

revision = "0018"
down_revision = "0017"
branch_labels = None
depends_on = None

SCHEMA = "content_pipeline"

_BEFORE = {
    "spend_state": "state IN ('released', 'reserved', 'settled', 'uncertain')",
    "spend_settled": "(state IN ('settled', 'released')) = (settled_usd IS NOT NULL)",
}
_AFTER = {
    "spend_state": "state IN ('released', 'reserved', 'settled', 'uncertain', 'written_off')",
    "spend_settled": (
        "(state IN ('settled', 'released', 'written_off')) = (settled_usd IS NOT NULL)"
    ),
}


def upgrade() -> None:
    op.create_index(
        "page_jobs_draft_line_idx",
        "page_jobs",
        ["site", sa.text("priority DESC"), "next_attempt_at", "page_job_id"],
        schema=SCHEMA,
        postgresql_where=sa.text(
            "state = 'queued' AND failure_class IS NULL AND failure_message IS NOT NULL"
        ),
    )
    _check(_AFTER)
    op.create_index(
        "spend_written_off_idx",
        "spend",
        ["site"],
        schema=SCHEMA,
        postgresql_where=sa.text("state = 'written_off'"),
    )


def downgrade() -> None:
    op.drop_index("spend_written_off_idx", "spend", schema=SCHEMA)
    # What is uncertain has no settled amount; both count at the worst case.
    op.execute(
        f"UPDATE {SCHEMA}.spend SET state = 'settled' WHERE state = 'written_off'"  # noqa: S608
    )
    _check(_BEFORE)
    op.drop_index("page_jobs_draft_line_idx", "page_jobs", schema=SCHEMA)


def _check(conditions: dict[str, str]) -> None:
    for name, condition in conditions.items():
        op.drop_constraint(op.f(name), "spend", schema=SCHEMA)
        op.create_check_constraint(op.f(name), "spend", condition, schema=SCHEMA)
