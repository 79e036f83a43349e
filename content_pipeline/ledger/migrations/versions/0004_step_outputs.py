"""Outputs of the steps of a chain, and the two moves that chains add."""

import sqlalchemy as sa
from alembic import op
from sqlalchemy.dialects import postgresql

revision = "0004"
down_revision = "0003"
branch_labels = None
depends_on = None

MOVES = [
    ("generating", "queued", "a step's output is stored and the next step is wanted"),
    ("queued", "generated", "every step's output is stored already: nothing is paid"),
]
RENAMED = ("generation_uncertain", "queued", "the outcome is settled; the next call is wanted")


def _moves() -> sa.TableClause:
    return sa.table(
        "allowed_moves",
        sa.column("from_state"),
        sa.column("to_state"),
        sa.column("why"),
        schema="content_pipeline",
    )


def upgrade() -> None:
    moves = _moves()
    op.bulk_insert(
        moves, [{"from_state": source, "to_state": to, "why": why} for source, to, why in MOVES]
    )
    source, to, why = RENAMED
    op.execute(
        moves.update().where(moves.c.from_state == source, moves.c.to_state == to).values(why=why)
    )
    op.create_table(
        "step_outputs",
        sa.Column("page_job_id", sa.Text(), nullable=False),
        sa.Column("step", sa.Text(), nullable=False),
        sa.Column("page_id", sa.Text(), nullable=False),
        sa.Column("step_key", sa.Text(), nullable=False),
        sa.Column("attempt_id", sa.Text(), nullable=False),
        sa.Column("output", postgresql.JSONB(astext_type=sa.Text()), nullable=False),
        sa.Column("output_hash", sa.Text(), nullable=False),
        sa.Column(
            "created_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("now()"),
            nullable=False,
        ),
        sa.ForeignKeyConstraint(
            ["page_job_id"],
            ["content_pipeline.page_jobs.page_job_id"],
            name=op.f("step_outputs_page_job_id_fkey"),
        ),
        sa.ForeignKeyConstraint(
            ["page_id"], ["content_pipeline.pages.page_id"], name=op.f("step_outputs_page_id_fkey")
        ),
        sa.PrimaryKeyConstraint("page_job_id", "step", name=op.f("step_outputs_pkey")),
        schema="content_pipeline",
    )
    op.create_index(
        "step_outputs_page_id_idx", "step_outputs", ["page_id"], schema="content_pipeline"
    )


def downgrade() -> None:
    op.drop_table("step_outputs", schema="content_pipeline")
    moves = _moves()
    for source, to, _ in MOVES:
        op.execute(moves.delete().where(moves.c.from_state == source, moves.c.to_state == to))
    op.execute(
        moves.update()
        .where(moves.c.from_state == RENAMED[0], moves.c.to_state == RENAMED[1])
        .values(why="no answer exists or can be had; one more may be paid")
    )
