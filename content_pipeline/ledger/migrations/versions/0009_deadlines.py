"""Page jobs have a deadline, and one that waits for a budget says how much it needs.

Jobs from before have two weeks from now on, the default of a site. Two moves that nothing ever made
are refused from now on.
"""

import sqlalchemy as sa
from alembic import op

revision = "0009"
down_revision = "0008"
branch_labels = None
depends_on = None

SCHEMA = "content_pipeline"

DEAD_MOVES = [
    ("reserved", "failed_retryable", "the call could not be prepared"),
    ("ready_to_publish", "failed_retryable", "the publish could not be prepared"),
]

REWORDED = [
    (
        "queued",
        "dead_lettered",
        "the tries or the money for this page job are used up",
        "the money or the time for this page job is used up",
    ),
    (
        "generating",
        "dead_lettered",
        "the tries are used up",
        "the tries or the time for them are used up",
    ),
    (
        "generation_uncertain",
        "dead_lettered",
        "the paid tries are used up",
        "the paid tries or the time for them are used up",
    ),
    (
        "publishing",
        "dead_lettered",
        "the tries are used up",
        "the tries or the time for them are used up",
    ),
]

# A default that is the same for all rows is stored once: no row is rewritten, however many.
TWO_WEEKS = "now() + interval '14 days'"

_MOVES = sa.table(
    "allowed_moves",
    sa.column("from_state"),
    sa.column("to_state"),
    sa.column("why"),
    schema=SCHEMA,
)

_LOG = sa.table("transitions", sa.column("from_state"), sa.column("to_state"), schema=SCHEMA)
_WAS_MADE = sa.exists().where(
    _LOG.c.from_state == _MOVES.c.from_state, _LOG.c.to_state == _MOVES.c.to_state
)
"""No history is rewritten, should a ledger hold such a move after all."""


def upgrade() -> None:
    op.add_column(
        "sites",
        sa.Column("page_deadline_s", sa.Float(), server_default=sa.text("1209600"), nullable=False),
        schema=SCHEMA,
    )
    op.add_column(
        "page_jobs",
        sa.Column(
            "deadline_at",
            sa.DateTime(timezone=True),
            server_default=sa.text(TWO_WEEKS),
            nullable=False,
        ),
        schema=SCHEMA,
    )
    op.alter_column("page_jobs", "deadline_at", server_default=None, schema=SCHEMA)
    op.add_column(
        "page_jobs", sa.Column("waits_for_usd", sa.Numeric(18, 8), nullable=True), schema=SCHEMA
    )
    for source, to, _ in DEAD_MOVES:
        op.execute(_MOVES.delete().where(_is(source, to), ~_WAS_MADE))
    for source, to, _, why in REWORDED:
        op.execute(_MOVES.update().where(_is(source, to)).values(why=why))


def _is(source: str, to: str) -> sa.ColumnElement[bool]:
    return sa.and_(_MOVES.c.from_state == source, _MOVES.c.to_state == to)


def downgrade() -> None:
    for source, to, why, _ in REWORDED:
        op.execute(_MOVES.update().where(_is(source, to)).values(why=why))
    op.bulk_insert(
        _MOVES,
        [{"from_state": source, "to_state": to, "why": why} for source, to, why in DEAD_MOVES],
    )
    op.drop_column("page_jobs", "waits_for_usd", schema=SCHEMA)
    op.drop_column("page_jobs", "deadline_at", schema=SCHEMA)
    op.drop_column("sites", "page_deadline_s", schema=SCHEMA)
