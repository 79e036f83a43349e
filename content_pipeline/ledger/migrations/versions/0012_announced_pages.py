"""What each hook was last told of each page, so that it is told exactly what changed."""

import sqlalchemy as sa
from alembic import op

revision = "0012"
down_revision = "0011"
branch_labels = None
depends_on = None

SCHEMA = "content_pipeline"


def upgrade() -> None:
    op.create_table(
        "site_hooks",
        sa.Column("site", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        _now("since"),
        sa.ForeignKeyConstraint(
            ["site"], [f"{SCHEMA}.sites.site"], name=op.f("site_hooks_site_fkey")
        ),
        sa.PrimaryKeyConstraint("site", "kind", name=op.f("site_hooks_pkey")),
        schema=SCHEMA,
        comment="Hooks that are told of changes, and since when: what was public before is no news",
    )
    op.create_table(
        "announced_pages",
        sa.Column("site", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("page_id", sa.Text(), nullable=False),
        sa.Column("content_hash", sa.Text(), nullable=True),
        _now("announced_at"),
        sa.ForeignKeyConstraint(
            ["page_id"], [f"{SCHEMA}.pages.page_id"], name=op.f("announced_pages_page_id_fkey")
        ),
        sa.ForeignKeyConstraint(
            ["site", "kind"],
            [f"{SCHEMA}.site_hooks.site", f"{SCHEMA}.site_hooks.kind"],
            name=op.f("announced_pages_site_kind_fkey"),
        ),
        sa.PrimaryKeyConstraint("site", "kind", "page_id", name=op.f("announced_pages_pkey")),
        schema=SCHEMA,
        comment="What each hook was last told of each page; no hash: that it is off the site",
    )
    op.add_column("effects", sa.Column("pages_told", sa.Integer(), nullable=True), schema=SCHEMA)
    op.create_index(
        "effects_of_sites_idx",
        "effects",
        ["site", "kind"],
        schema=SCHEMA,
        postgresql_where=sa.text("page_id IS NULL"),
    )


def downgrade() -> None:
    op.drop_index("effects_of_sites_idx", table_name="effects", schema=SCHEMA)
    op.drop_column("effects", "pages_told", schema=SCHEMA)
    op.drop_table("announced_pages", schema=SCHEMA)
    op.drop_table("site_hooks", schema=SCHEMA)


def _now(name: str) -> sa.Column[object]:
    return sa.Column(
        name,
        sa.DateTime(timezone=True),
        server_default=sa.text("clock_timestamp()"),
        nullable=False,
    )
