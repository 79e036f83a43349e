"""What people change on the site, pages taken off it, and versions that were rolled back.

A page job may now leave ``published`` again: to be put back on the site, or taken off it.
"""

import sqlalchemy as sa
from alembic import op

revision = "0007"
down_revision = "0006"
branch_labels = None
depends_on = None

SCHEMA = "content_pipeline"

MOVES = [
    ("published", "ready_to_publish", "ours is wanted back on the site; nothing is paid"),
    ("published", "withdrawing", "its topic is retired, and the site takes such pages off"),
    ("withdrawing", "withdrawn", "the CMS was read back and shows the page no more"),
    ("withdrawing", "ready_to_publish", "its topic came back before the page was taken off"),
    ("withdrawing", "failed_terminal", "the page was changed on the site, or refuses to go"),
    ("withdrawing", "dead_lettered", "the tries are used up"),
    ("withdrawn", "generated", "its topic is back; its draft is reused"),
    ("failed_terminal", "withdrawing", "repaired; the page is still to be taken off"),
    ("dead_lettered", "withdrawing", "repaired; the page is still to be taken off"),
    ("failed_terminal", "superseded", "a person keeps the page as it is on the site"),
]

WORKABLE_BEFORE = (
    "'failed_retryable', 'generated', 'generating', 'generation_uncertain', 'publish_uncertain', "
    "'publishing', 'queued', 'ready_to_publish', 'reserved', 'validating'"
)
FINAL_BEFORE = "'cancelled', 'dead_lettered', 'failed_terminal', 'published', 'superseded'"

TEXTS = (
    "remote_version",
    "site_change",
    "site_change_reason",
    "site_change_standing",
    "site_change_version",
    "kept_standing",
    "may_overwrite",
)
TIMES = ("site_change_found_at", "listed_at", "withdrawn_at")

CHANGES = "'edited', 'foreign', 'missing', 'moved', 'renamed', 'reverted', 'trashed', 'unpublished'"
EVENTS = "'change_found', 'change_gone', 'ours_wanted', 'theirs_kept', 'twin_removed', 'withdrawn'"


def _moves() -> sa.TableClause:
    return sa.table(
        "allowed_moves",
        sa.column("from_state"),
        sa.column("to_state"),
        sa.column("why"),
        schema=SCHEMA,
    )


def _check(table: str, name: str, rule: str) -> None:
    """Put ``rule`` in the place of the check of that name."""
    op.drop_constraint(op.f(f"{table}_{name}"), table, schema=SCHEMA)
    op.create_check_constraint(op.f(f"{table}_{name}"), table, rule, schema=SCHEMA)


def _states(workable: str, final: str, statuses: str, kinds: str) -> None:
    both = ", ".join(sorted(f"{workable}, {final}".split(", ")))
    _check("page_jobs", "state", f"state IN ({both})")
    _check("page_jobs", "finished", f"(finished_at IS NOT NULL) = (state IN ({final}))")
    _check("topics", "status", f"status IN ({statuses})")
    _check("attempts", "kind", f"kind IN ({kinds})")
    indexes: dict[str, list[str | sa.TextClause]] = {
        "page_jobs_due_idx": ["site", sa.text("priority DESC"), "next_attempt_at", "page_job_id"],
        "page_jobs_unfinished_idx": ["page_id"],
    }
    for name, columns in indexes.items():
        op.drop_index(name, table_name="page_jobs", schema=SCHEMA)
        op.create_index(
            name,
            "page_jobs",
            columns,
            schema=SCHEMA,
            postgresql_where=sa.text(f"state IN ({workable})"),
        )


def upgrade() -> None:
    op.bulk_insert(
        _moves(), [{"from_state": source, "to_state": to, "why": why} for source, to, why in MOVES]
    )
    _states(
        f"{WORKABLE_BEFORE}, 'withdrawing'",
        f"{FINAL_BEFORE}, 'withdrawn'",
        "'active', 'rejected', 'retired'",
        "'generate', 'publish', 'withdraw'",
    )
    for name in TEXTS:
        op.add_column("pages", sa.Column(name, sa.Text()), schema=SCHEMA)
    for name in TIMES:
        op.add_column("pages", sa.Column(name, sa.DateTime(timezone=True)), schema=SCHEMA)
    op.create_check_constraint(
        op.f("pages_site_change"),
        "pages",
        f"site_change IS NULL OR site_change IN ({CHANGES})",
        schema=SCHEMA,
    )
    op.create_check_constraint(
        op.f("pages_site_change_says_what"),
        "pages",
        "(site_change IS NULL) = (site_change_standing IS NULL) AND "
        "(site_change IS NULL) = (site_change_reason IS NULL) AND "
        "(site_change IS NULL) = (site_change_found_at IS NULL)",
        schema=SCHEMA,
    )
    op.create_index(
        "pages_site_change_idx",
        "pages",
        ["site", "path"],
        schema=SCHEMA,
        postgresql_where=sa.text("site_change IS NOT NULL"),
    )
    op.create_index("pages_remote_id_idx", "pages", ["site", "remote_id"], schema=SCHEMA)
    _create_tables()


def _create_tables() -> None:
    time = sa.DateTime(timezone=True)
    now = sa.text("clock_timestamp()")
    op.create_table(
        "site_events",
        sa.Column("event_id", sa.BigInteger(), sa.Identity(always=True), nullable=False),
        sa.Column("site", sa.Text(), nullable=False),
        sa.Column("page_id", sa.Text(), nullable=False),
        sa.Column("kind", sa.Text(), nullable=False),
        sa.Column("detail", sa.Text(), nullable=False),
        sa.Column("by", sa.Text(), nullable=False),
        sa.Column("at", time, server_default=now, nullable=False),
        sa.CheckConstraint(f"kind IN ({EVENTS})", name=op.f("site_events_kind")),
        sa.ForeignKeyConstraint(
            ["site"], ["content_pipeline.sites.site"], name=op.f("site_events_site_fkey")
        ),
        sa.ForeignKeyConstraint(
            ["page_id"], ["content_pipeline.pages.page_id"], name=op.f("site_events_page_id_fkey")
        ),
        sa.PrimaryKeyConstraint("event_id", name=op.f("site_events_pkey")),
        schema=SCHEMA,
        comment="Append-only: what was found and done on the site beside publishing",
    )
    op.create_index("site_events_page_idx", "site_events", ["page_id", "event_id"], schema=SCHEMA)
    op.execute(
        "CREATE TRIGGER site_events_append_only "
        "BEFORE UPDATE OR DELETE OR TRUNCATE ON content_pipeline.site_events "
        "FOR EACH STATEMENT EXECUTE FUNCTION content_pipeline.refuse_rewriting()"
    )
    op.create_table(
        "surveys",
        sa.Column("site", sa.Text(), nullable=False),
        sa.Column("point", sa.Text()),
        sa.Column("next_slice", sa.Text()),
        sa.Column("sweep_began_at", time),
        sa.Column("swept_at", time),
        sa.ForeignKeyConstraint(
            ["site"], ["content_pipeline.sites.site"], name=op.f("surveys_site_fkey")
        ),
        sa.PrimaryKeyConstraint("site", name=op.f("surveys_pkey")),
        schema=SCHEMA,
        comment="How far the search for changes on a site has come",
    )
    op.create_table(
        "rollbacks",
        sa.Column("site", sa.Text(), nullable=False),
        sa.Column("generation_version", sa.Text(), nullable=False),
        sa.Column("cause", sa.Text(), nullable=False),
        sa.Column("by", sa.Text(), nullable=False),
        sa.Column("at", time, server_default=now, nullable=False),
        sa.ForeignKeyConstraint(
            ["site"], ["content_pipeline.sites.site"], name=op.f("rollbacks_site_fkey")
        ),
        sa.PrimaryKeyConstraint("site", "generation_version", name=op.f("rollbacks_pkey")),
        schema=SCHEMA,
        comment="Ways of making pages that were taken back: nothing is made by them any more",
    )


def downgrade() -> None:
    for table in ("rollbacks", "surveys", "site_events"):
        op.drop_table(table, schema=SCHEMA)
    for name in ("pages_remote_id_idx", "pages_site_change_idx"):
        op.drop_index(name, table_name="pages", schema=SCHEMA)
    for name in ("pages_site_change_says_what", "pages_site_change"):
        op.drop_constraint(op.f(name), "pages", schema=SCHEMA)
    for name in (*TIMES, *TEXTS):
        op.drop_column("pages", name, schema=SCHEMA)
    _states(WORKABLE_BEFORE, FINAL_BEFORE, "'active', 'rejected'", "'generate', 'publish'")
    moves = _moves()
    for source, to, _ in MOVES:
        op.execute(moves.delete().where(moves.c.from_state == source, moves.c.to_state == to))
