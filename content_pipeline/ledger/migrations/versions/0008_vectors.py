"""Vectors of embeddings, beside the description that stands in the place of a step's output."""

import sqlalchemy as sa
from alembic import op

revision = "0008"
down_revision = "0007"
branch_labels = None
depends_on = None

SCHEMA = "content_pipeline"


def upgrade() -> None:
    op.add_column(
        "step_outputs", sa.Column("vector", sa.LargeBinary(), nullable=True), schema=SCHEMA
    )
    # The bits of a vector do not get shorter by compressing them, so it is not tried.
    op.execute(f"ALTER TABLE {SCHEMA}.step_outputs ALTER COLUMN vector SET STORAGE EXTERNAL")


def downgrade() -> None:
    op.drop_column("step_outputs", "vector", schema=SCHEMA)
