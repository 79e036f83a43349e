"""How PostgreSQL would answer a statement on a large site, asked on a small one."""

from sqlalchemy import Connection, text


def plan_of(connection: Connection, statement: object, **parameters: object) -> str:
    """How PostgreSQL would answer on a large site: never by reading a whole table if it can."""
    connection.execute(text("SET LOCAL enable_seqscan = off"))
    connection.execute(text("SET LOCAL enable_bitmapscan = off"))
    rows = connection.execute(text(f"EXPLAIN {statement}"), parameters)
    return "\n".join(rows.scalars())
