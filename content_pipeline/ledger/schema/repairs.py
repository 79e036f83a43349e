"""Tables of what rules rejected and people corrected: rejected drafts, fixes of the input."""

from sqlalchemy import (
    Boolean,
    CheckConstraint,
    Column,
    ForeignKey,
    ForeignKeyConstraint,
    Index,
    Integer,
    PrimaryKeyConstraint,
    Table,
    Text,
    func,
    text,
)
from sqlalchemy.dialects.postgresql import JSONB

from content_pipeline.ledger.schema.vocabulary import Time, created, metadata

rejected_drafts = Table(
    "rejected_drafts",
    metadata,
    Column("page_job_id", Text, ForeignKey("page_jobs.page_job_id"), nullable=False),
    Column("revision", Integer, nullable=False),
    Column("findings", JSONB, nullable=False),
    Column("is_asked_again", Boolean, nullable=False),
    created(),
    PrimaryKeyConstraint("page_job_id", "revision"),
)

input_fixes = Table(
    "input_fixes",
    metadata,
    Column("site", Text, nullable=False),
    Column("topic_key", Text, nullable=False),
    Column("column_name", Text, nullable=False),
    Column("fixed_at", Time, nullable=False, server_default=func.clock_timestamp()),
    Column("value", Text, nullable=False),
    Column("table_value", Text, nullable=False),
    Column("cause", Text, nullable=False),
    Column("fixed_by", Text, nullable=False),
    Column("retired_at", Time),
    Column("retired_because", Text),
    ForeignKeyConstraint(["site", "topic_key"], ["topics.site", "topics.topic_key"]),
    CheckConstraint("(retired_at IS NULL) = (retired_because IS NULL)", name="retired_says_why"),
    PrimaryKeyConstraint("site", "topic_key", "column_name", "fixed_at"),
    Index(
        "input_fixes_in_force_key",
        "site",
        "topic_key",
        "column_name",
        unique=True,
        postgresql_where=text("retired_at IS NULL"),
    ),
    comment="Corrections beside the topic table; each holds until the table's value changes",
)
