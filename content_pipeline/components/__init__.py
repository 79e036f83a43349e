"""The Dagster shell: assets, checks, jobs and sensors over the same operations as the command line.

What belongs here: saying when work is done and showing what came of it. Whether a page may be paid
for or published is decided in the ledger, never here. Only this package and ``definitions`` import
dagster; ``dagster_private`` is the one module that imports what Dagster keeps to itself.
"""
