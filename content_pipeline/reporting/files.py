"""Where a site's report lies, and writing it so that nobody ever reads half of one.

What belongs here: the file. ``reports/`` stands beside ``public/`` at the project's root, where
people find it, and out of version control.
"""

import os
from pathlib import Path

from content_pipeline.config import Project
from content_pipeline.core.errors import CallFailed
from content_pipeline.core.failures import Failure, FailureClass

FOLDER = "reports"


def report_file(project: Project, site: str) -> Path:
    """The file of a site's reports."""
    return project.root / FOLDER / f"{site}.html"


def write(file: Path, data: bytes) -> None:
    """Put ``data`` in the place of ``file``, whole or not at all. Raises CallFailed (storage).

    Not flushed to disk by hand: the report lost in a power cut is made anew within the hour.
    """
    incoming = file.with_name(f".{file.name}.{os.getpid()}")
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        try:
            incoming.write_bytes(data)
            incoming.replace(file)
        finally:
            incoming.unlink(missing_ok=True)
    except OSError as error:
        message = (
            f"the report cannot be written to {file}: {error.strerror}; give the pipeline's user "
            "the right to it, free space, or choose another file with `report --out`"
        )
        raise CallFailed(Failure(failure_class=FailureClass.STORAGE, message=message)) from None
