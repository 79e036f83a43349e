"""Real content management systems that are tested only when asked for: their set-up takes minutes.

What belongs here: reading ``CMS_REAL``, a comma-separated list, and finding what a script set up.
What is asked for and missing fails the test; what is not asked for is skipped.
"""

from pathlib import Path

import pytest

from content_pipeline.config import environment

ROOT = Path(__file__).parent.parent.parent
SWITCH = "CMS_REAL"


def chosen_folder(name: str, *, build: Path = ROOT / "build", chosen: str | None = None) -> Path:
    """Where ``scripts/<name>.sh`` set the CMS up; skips the test unless it is asked for."""
    wanted = environment().get(SWITCH, "") if chosen is None else chosen
    if name not in wanted.split(","):
        pytest.skip(f"the real {name} is tested with {SWITCH}={name}")
    folder = build / name
    if not (folder / "ready").is_file():
        pytest.fail(f"{name} is missing; run scripts/{name}.sh ({SWITCH} wants it)", pytrace=False)
    return folder
