"""Which bucket a topic belongs to, on sites whose partitions are buckets of pages.

The database computes the hash itself, for the topics that it holds and for those to come. No number
of buckets enters it: a bucket is a stretch of hash values. An id holds letters, digits, '.', '_'
and '-' alone, so its text is its bytes. The table is rewritten once.
"""

import sqlalchemy as sa
from alembic import op

revision = "0017"
down_revision = "0016"
branch_labels = None
depends_on = None

SCHEMA = "content_pipeline"
_SLOT = "('x' || left(encode(sha256(topic_key::bytea), 'hex'), 8))::bit(32)::bigint"


def upgrade() -> None:
    op.add_column(
        "topics",
        sa.Column("slot", sa.BigInteger(), sa.Computed(_SLOT, persisted=True), nullable=False),
        schema=SCHEMA,
    )
    op.create_index("topics_slot_idx", "topics", ["site", "slot", "topic_key"], schema=SCHEMA)


def downgrade() -> None:
    op.drop_index("topics_slot_idx", "topics", schema=SCHEMA)
    op.drop_column("topics", "slot", schema=SCHEMA)
