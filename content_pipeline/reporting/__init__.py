"""Reports of a site for people: gathered from the ledger, drawn, and written as one file.

What belongs here: choosing what is shown and how it looks. Numbers come from the ledger, verdicts
from ``core.health``. Dagster and the command line show the same report.
"""
