"""The command line: what a content team types when it is not in the Dagster UI.

What belongs here: arguments, output and exit status. Every command calls one operation or reads one
report. Dagster is not imported: a command starts in well under a second.

Exit status: 0 everything settled, 1 some pages failed or wait, 2 usage or configuration.
"""

from content_pipeline.cli.main import main

__all__ = ["main"]
