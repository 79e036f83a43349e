"""Tables of dollars: one spend row per paid attempt, and what each capped scope has committed."""

from sqlalchemy import CheckConstraint, Column, Date, ForeignKey, Index, Table, Text, func, text

from content_pipeline.ledger.schema.vocabulary import (
    SpendState,
    Time,
    Usd,
    created,
    metadata,
    one_of,
)

spend = Table(
    "spend",
    metadata,
    Column("attempt_id", Text, primary_key=True),
    Column("site", Text, ForeignKey("sites.site"), nullable=False),
    Column("page_job_id", Text, ForeignKey("page_jobs.page_job_id"), nullable=False),
    Column("day", Date, nullable=False),
    Column("state", Text, nullable=False),
    Column("reserved_usd", Usd, nullable=False),
    Column("settled_usd", Usd),
    created(),
    Column("updated_at", Time, nullable=False, server_default=func.now()),
    CheckConstraint(one_of("state", SpendState), name="state"),
    CheckConstraint(
        "(state IN ('settled', 'released', 'written_off')) = (settled_usd IS NOT NULL)",
        name="settled",
    ),
    CheckConstraint("reserved_usd >= 0 AND settled_usd >= 0", name="not_negative"),
    Index("spend_page_job_id_idx", "page_job_id"),
    Index("spend_site_day_idx", "site", "day"),
    Index("spend_uncertain_idx", "site", "day", postgresql_where=text("state = 'uncertain'")),
    Index("spend_written_off_idx", "site", postgresql_where=text("state = 'written_off'")),
)

budgets = Table(
    "budgets",
    metadata,
    Column("scope", Text, primary_key=True),
    Column("committed_usd", Usd, nullable=False),
    CheckConstraint("committed_usd >= 0", name="not_negative"),
    comment="Per scope: what is reserved or spent, kept equal to the sum over spend",
)
