"""Tables of what happened on the site beside publishing: events, and how far was searched."""

from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    Column,
    ForeignKey,
    Identity,
    Index,
    PrimaryKeyConstraint,
    Table,
    Text,
    func,
)

from content_pipeline.ledger.schema.vocabulary import SiteEventKind, Time, metadata, one_of

site_events = Table(
    "site_events",
    metadata,
    Column("event_id", BigInteger, Identity(always=True), primary_key=True),
    Column("site", Text, ForeignKey("sites.site"), nullable=False),
    Column("page_id", Text, ForeignKey("pages.page_id"), nullable=False),
    Column("kind", Text, nullable=False),
    Column("detail", Text, nullable=False),
    Column("by", Text, nullable=False),
    Column("at", Time, nullable=False, server_default=func.clock_timestamp()),
    CheckConstraint(one_of("kind", SiteEventKind), name="kind"),
    Index("site_events_page_idx", "page_id", "event_id"),
    comment="Append-only: what was found and done on the site beside publishing",
)

surveys = Table(
    "surveys",
    metadata,
    Column("site", Text, ForeignKey("sites.site"), primary_key=True),
    Column("point", Text),
    Column("next_slice", Text),
    Column("sweep_began_at", Time),
    Column("swept_at", Time),
    comment="How far the search for changes on a site has come",
)

rollbacks = Table(
    "rollbacks",
    metadata,
    Column("site", Text, ForeignKey("sites.site"), nullable=False),
    Column("generation_version", Text, nullable=False),
    Column("cause", Text, nullable=False),
    Column("by", Text, nullable=False),
    Column("at", Time, nullable=False, server_default=func.clock_timestamp()),
    PrimaryKeyConstraint("site", "generation_version"),
    comment="Ways of making pages that were taken back: nothing is made by them any more",
)
