"""Through which API an attempt was sent: it decides how a lost answer can be asked for.

Older attempts, and those to publish, have none; the older ones were all chat completions.
"""

import sqlalchemy as sa
from alembic import op

revision = "0011"
down_revision = "0010"
branch_labels = None
depends_on = None

SCHEMA = "content_pipeline"


def upgrade() -> None:
    op.add_column("attempts", sa.Column("api", sa.Text(), nullable=True), schema=SCHEMA)
    op.create_check_constraint(
        op.f("attempts_api"),
        "attempts",
        "api IS NULL OR api IN ('chat', 'responses')",
        schema=SCHEMA,
    )


def downgrade() -> None:
    op.drop_constraint("attempts_api", "attempts", schema=SCHEMA)
    op.drop_column("attempts", "api", schema=SCHEMA)
