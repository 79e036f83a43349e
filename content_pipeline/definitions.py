"""What Dagster loads: every site declared below ``defs``.

What belongs here: the assembly, nothing else. Nothing is read or connected when this module is
imported.
"""

from pathlib import Path

import dagster as dg

from content_pipeline.garbage import not_sought


@dg.definitions
def defs() -> dg.Definitions:
    """All sites of the project. Runs work in one process: a step of its own would outlive its run.

    With Dagster's default executor a killed run leaves its step alive and paying.
    """
    with not_sought():
        sites = dg.load_from_defs_folder(path_within_project=Path(__file__).parent)
    return dg.Definitions.merge(sites, dg.Definitions(executor=dg.in_process_executor))
