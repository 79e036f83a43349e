"""Which topic table all topics of a site were taken in from, so that a run can go without reading it.

None is known of the intakes before: the next whole one is the first that is remembered.
"""

import sqlalchemy as sa
from alembic import op

revision = "0020"
down_revision = "0019"
branch_labels = None
depends_on = None

SCHEMA = "content_pipeline"


def upgrade() -> None:
    op.create_table(
        "taken_tables",
        sa.Column("site", sa.Text(), nullable=False),
        sa.Column("identity", sa.Text(), nullable=False),
        sa.Column(
            "taken_in_at", sa.DateTime(timezone=True), nullable=False, server_default=sa.func.now()
        ),
        sa.ForeignKeyConstraint(["site"], [f"{SCHEMA}.sites.site"], name="taken_tables_site_fkey"),
        sa.PrimaryKeyConstraint("site", name="taken_tables_pkey"),
        schema=SCHEMA,
        comment="The topic table that all topics of a site are of, as its rows and their rules",
    )


def downgrade() -> None:
    op.drop_table("taken_tables", schema=SCHEMA)
