"""What a tick of a site's schedule has planned: its runs, to be asked for one after the other.

A plan is kept as a whole before the first of its runs is asked for, so a tick that is carried out
twice, or dies half way, asks for the same runs.
"""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0019"
down_revision = "0018"
branch_labels = None
depends_on = None

SCHEMA = "content_pipeline"


def upgrade() -> None:
    op.create_table(
        "nightly_plans",
        sa.Column("plan_id", sa.BigInteger(), sa.Identity(always=True), primary_key=True),
        sa.Column("site", sa.Text(), nullable=False),
        sa.Column("tick", sa.Text(), nullable=False),
        sa.Column("run_id", sa.Text(), nullable=False),
        sa.Column("told", sa.Text(), nullable=False),
        sa.Column("batches", sa.Integer(), nullable=False),
        sa.Column(
            "created_at",
            sa.DateTime(timezone=True),
            server_default=sa.func.now(),
            nullable=False,
        ),
        sa.CheckConstraint("batches >= 0", name="batches_not_negative"),
        schema=SCHEMA,
        comment="One row per tick of a site's schedule: only the newest one's runs are asked for",
    )
    op.create_index(
        "nightly_plans_tick_key", "nightly_plans", ["site", "tick"], unique=True, schema=SCHEMA
    )
    op.create_index("nightly_plans_newest_idx", "nightly_plans", ["site", "plan_id"], schema=SCHEMA)
    op.create_table(
        "nightly_batches",
        sa.Column(
            "plan_id",
            sa.BigInteger(),
            sa.ForeignKey(f"{SCHEMA}.nightly_plans.plan_id", ondelete="CASCADE"),
            nullable=False,
        ),
        sa.Column("number", sa.Integer(), nullable=False),
        sa.Column("partitions", postgresql.ARRAY(sa.Text()), nullable=False),
        sa.Column("is_range", sa.Boolean(), nullable=False),
        sa.Column("pages", sa.Integer(), nullable=False),
        sa.Column("expected_usd", sa.Numeric(18, 8), nullable=False),
        sa.Column("worst_usd", sa.Numeric(18, 8), nullable=False),
        sa.PrimaryKeyConstraint("plan_id", "number"),
        sa.CheckConstraint("number >= 1 AND pages >= 1", name="numbered_and_not_empty"),
        sa.CheckConstraint(
            "CASE WHEN is_range THEN cardinality(partitions) = 2 ELSE cardinality(partitions) >= 1 END",
            name="a_range_has_two_ends",
        ),
        schema=SCHEMA,
    )


def downgrade() -> None:
    op.drop_table("nightly_batches", schema=SCHEMA)
    op.drop_table("nightly_plans", schema=SCHEMA)
