"""Run by alembic: applies migrations on the connection it is handed."""

from alembic import context
from sqlalchemy import Connection

from content_pipeline.ledger.schema import SCHEMA, metadata

connection: Connection = context.config.attributes["connection"]
context.configure(
    connection=connection,
    target_metadata=metadata,
    version_table_schema=SCHEMA,
    include_schemas=True,
    include_name=lambda name, kind, _parents: kind != "schema" or name == SCHEMA,
    compare_server_default=False,
)
with context.begin_transaction():
    context.run_migrations()
