"""Tables of what a site's schedule has planned: one row per tick, and its runs as batches."""

from sqlalchemy import (
    BigInteger,
    Boolean,
    CheckConstraint,
    Column,
    ForeignKey,
    Identity,
    Index,
    Integer,
    PrimaryKeyConstraint,
    Table,
    Text,
)
from sqlalchemy.dialects.postgresql import ARRAY

from content_pipeline.ledger.schema.vocabulary import Usd, created, metadata

nightly_plans = Table(
    "nightly_plans",
    metadata,
    Column("plan_id", BigInteger, Identity(always=True), primary_key=True),
    Column("site", Text, nullable=False),
    Column("tick", Text, nullable=False),
    Column("run_id", Text, nullable=False),
    Column("told", Text, nullable=False),
    Column("batches", Integer, nullable=False),
    created(),
    CheckConstraint("batches >= 0", name="batches_not_negative"),
    Index("nightly_plans_tick_key", "site", "tick", unique=True),
    Index("nightly_plans_newest_idx", "site", "plan_id"),
    comment="One row per tick of a site's schedule: only the newest one's runs are asked for",
)

nightly_batches = Table(
    "nightly_batches",
    metadata,
    Column(
        "plan_id",
        BigInteger,
        ForeignKey("nightly_plans.plan_id", ondelete="CASCADE"),
        nullable=False,
    ),
    Column("number", Integer, nullable=False),
    Column("partitions", ARRAY(Text), nullable=False),
    Column("is_range", Boolean, nullable=False),
    Column("pages", Integer, nullable=False),
    Column("expected_usd", Usd, nullable=False),
    Column("worst_usd", Usd, nullable=False),
    PrimaryKeyConstraint("plan_id", "number"),
    CheckConstraint("number >= 1 AND pages >= 1", name="numbered_and_not_empty"),
    CheckConstraint(
        "CASE WHEN is_range THEN cardinality(partitions) = 2 ELSE cardinality(partitions) >= 1 END",
        name="a_range_has_two_ends",
    ),
)
