"""What every machine must heed before it calls a service: pauses, circuits, calls at once."""

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"
branch_labels = None
depends_on = None

WORKABLE = sa.text(
    "state IN ('failed_retryable', 'generated', 'generating', 'generation_uncertain', 'publish_uncertain', 'publishing', 'queued', 'ready_to_publish', 'reserved', 'validating')"
)


MOVE = {
    "from_state": "reserved",
    "to_state": "queued",
    "why": "the provider may not be called now; the reservation is given back",
}


def _moves() -> sa.TableClause:
    return sa.table(
        "allowed_moves",
        sa.column("from_state"),
        sa.column("to_state"),
        sa.column("why"),
        schema="content_pipeline",
    )


def upgrade() -> None:
    op.bulk_insert(_moves(), [MOVE])
    op.create_table(
        "routes",
        sa.Column("route", sa.Text(), nullable=False),
        sa.Column("call_limit", sa.Float(), nullable=False),
        sa.Column("most_calls", sa.Float(), nullable=False),
        sa.Column("cut_from", sa.Float(), nullable=True),
        sa.Column("cut_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column("paused_until", sa.DateTime(timezone=True), nullable=True),
        sa.Column("pause_reason", sa.Text(), nullable=True),
        sa.Column("circuit_class", sa.Text(), nullable=True),
        sa.Column("circuit_message", sa.Text(), nullable=True),
        sa.Column("circuit_opened_at", sa.DateTime(timezone=True), nullable=True),
        sa.Column(
            "created_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("now()"),
            nullable=False,
        ),
        sa.Column(
            "updated_at",
            sa.DateTime(timezone=True),
            server_default=sa.text("now()"),
            nullable=False,
        ),
        sa.CheckConstraint(
            "call_limit >= 1 AND call_limit <= most_calls", name=op.f("routes_call_limit")
        ),
        sa.CheckConstraint(
            "(circuit_class IS NULL) = (circuit_message IS NULL) AND "
            "(circuit_class IS NULL) = (circuit_opened_at IS NULL)",
            name=op.f("routes_circuit_says_why"),
        ),
        sa.PrimaryKeyConstraint("route", name=op.f("routes_pkey")),
        schema="content_pipeline",
        comment="One row per account at a service: what every machine must heed before it calls",
    )
    op.add_column(
        "sites",
        sa.Column("model_route", sa.Text(), server_default=sa.text("''"), nullable=False),
        schema="content_pipeline",
    )
    op.create_index(
        "page_jobs_unfinished_idx",
        "page_jobs",
        ["page_id"],
        schema="content_pipeline",
        postgresql_where=WORKABLE,
    )


def downgrade() -> None:
    moves = _moves()
    op.execute(
        moves.delete().where(
            moves.c.from_state == MOVE["from_state"], moves.c.to_state == MOVE["to_state"]
        )
    )
    op.drop_index("page_jobs_unfinished_idx", table_name="page_jobs", schema="content_pipeline")
    op.drop_column("sites", "model_route", schema="content_pipeline")
    op.drop_table("routes", schema="content_pipeline")
