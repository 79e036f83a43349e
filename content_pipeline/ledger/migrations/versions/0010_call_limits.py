"""Call limits apart from routes, so that an announced wait is committed while calls are counted.

What was learned of the limits before is forgotten: it was a number of another kind, and a few
hundred calls learn it anew. Announced waits and circuits stay.
"""

import sqlalchemy as sa
from alembic import op

revision = "0010"
down_revision = "0009"
branch_labels = None
depends_on = None

SCHEMA = "content_pipeline"
_TIME = sa.DateTime(timezone=True)
_KEPT = (
    "route, paused_until, pause_reason, circuit_class, circuit_message, circuit_opened_at, "
    "created_at, updated_at"
)


def upgrade() -> None:
    _make_routes_anew()
    op.create_table(
        "call_limits",
        sa.Column("route", sa.Text(), nullable=False),
        sa.Column("limit", sa.Integer(), server_default=sa.text("8"), nullable=False),
        _counts("calls"),
        _counts("rejections"),
        _time("created_at"),
        _time("updated_at"),
        sa.CheckConstraint('"limit" >= 1', name=op.f("call_limits_limit")),
        sa.CheckConstraint(
            "cardinality(calls) = cardinality(rejections)", name=op.f("call_limits_counts")
        ),
        sa.PrimaryKeyConstraint("route", name=op.f("call_limits_pkey")),
        schema=SCHEMA,
        comment="One row per account at a provider: how many calls may be out at once",
    )


def downgrade() -> None:
    op.drop_table("call_limits", schema=SCHEMA)
    unlimited = sa.text("1e6")
    _make_routes_anew(
        sa.Column("call_limit", sa.Float(), server_default=unlimited, nullable=False),
        sa.Column("most_calls", sa.Float(), server_default=unlimited, nullable=False),
        sa.Column("cut_from", sa.Float(), nullable=True),
        sa.Column("cut_at", _TIME, nullable=True),
        sa.CheckConstraint(
            "call_limit >= 1 AND call_limit <= most_calls", name=op.f("routes_call_limit")
        ),
    )
    for column in ("call_limit", "most_calls"):
        op.alter_column("routes", column, server_default=None, schema=SCHEMA)


def _make_routes_anew(*limits: sa.schema.SchemaItem) -> None:
    """A dropped column would leave a gap that a new database does not have."""
    op.execute(f"CREATE TEMP TABLE kept AS SELECT {_KEPT} FROM {SCHEMA}.routes")  # noqa: S608
    op.drop_table("routes", schema=SCHEMA)
    op.create_table(
        "routes",
        sa.Column("route", sa.Text(), nullable=False),
        *limits,
        sa.Column("paused_until", _TIME, nullable=True),
        sa.Column("pause_reason", sa.Text(), nullable=True),
        sa.Column("circuit_class", sa.Text(), nullable=True),
        sa.Column("circuit_message", sa.Text(), nullable=True),
        sa.Column("circuit_opened_at", _TIME, nullable=True),
        _time("created_at"),
        _time("updated_at"),
        sa.CheckConstraint(
            "(circuit_class IS NULL) = (circuit_message IS NULL) AND "
            "(circuit_class IS NULL) = (circuit_opened_at IS NULL)",
            name=op.f("routes_circuit_says_why"),
        ),
        sa.PrimaryKeyConstraint("route", name=op.f("routes_pkey")),
        schema=SCHEMA,
        comment="One row per account at a service: what every machine must heed before it calls",
    )
    op.execute(f"INSERT INTO {SCHEMA}.routes ({_KEPT}) SELECT {_KEPT} FROM kept")  # noqa: S608
    op.execute("DROP TABLE kept")


def _counts(name: str) -> sa.Column[object]:
    return sa.Column(name, sa.ARRAY(sa.Float()), server_default=sa.text("'{}'"), nullable=False)


def _time(name: str) -> sa.Column[object]:
    return sa.Column(name, _TIME, server_default=sa.text("now()"), nullable=False)
