"""Tables of what happened on a site beside publishing: events, searches, who was told of what."""

from sqlalchemy import (
    BigInteger,
    CheckConstraint,
    Column,
    ForeignKey,
    ForeignKeyConstraint,
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

site_hooks = Table(
    "site_hooks",
    metadata,
    Column("site", Text, ForeignKey("sites.site"), nullable=False),
    Column("kind", Text, nullable=False),
    Column("since", Time, nullable=False, server_default=func.clock_timestamp()),
    PrimaryKeyConstraint("site", "kind"),
    comment="Hooks that are told of changes, and since when: what was public before is no news",
)

announced_pages = Table(
    "announced_pages",
    metadata,
    Column("site", Text, nullable=False),
    Column("kind", Text, nullable=False),
    Column("page_id", Text, ForeignKey("pages.page_id"), nullable=False),
    Column("content_hash", Text),
    Column("announced_at", Time, nullable=False, server_default=func.clock_timestamp()),
    PrimaryKeyConstraint("site", "kind", "page_id"),
    ForeignKeyConstraint(["site", "kind"], ["site_hooks.site", "site_hooks.kind"]),
    comment="What each hook was last told of each page; no hash: that it is off the site",
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
