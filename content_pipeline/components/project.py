"""Which project a Dagster process works for.

What belongs here: the one rule. ``dagster dev``, the daemon and run workers may have any working
directory, but all know the folder of their instance. Imported by every process of Dagster, so it
imports little.
"""

from pathlib import Path

from content_pipeline.config import INSTANCE_FILE, Project, environment, find_project

DAGSTER_HOME = "DAGSTER_HOME"


def this_project() -> Project:
    """The project whose ``dagster.yaml`` made this process's instance.

    Without DAGSTER_HOME it is found from the working directory, as the command line does. Raises
    ConfigurationError when there is none.
    """
    home = environment().get(DAGSTER_HOME, "").strip()
    start = Path(home).expanduser() if home else None
    if start is not None and not (start / INSTANCE_FILE).is_file():
        start = None
    return find_project(start)
