"""The PostgreSQL behind the project: the team's own, or one this package runs by itself.

``urls`` decides which of the two it is, ``server`` runs the embedded one (Linux and macOS),
``healing`` brings it back from inside a connect, ``schemas`` makes the two schemas. What does not
belong here: tables, migrations and queries (the ledger), and anything of Dagster.
"""
