"""Whether a Redis can be started here, and what a test does when not.

What belongs here: finding what ``scripts/redis.sh`` sets up. On a laptop without it the tests are
skipped; where services are required, as in continuous integration, they fail.
"""

import shutil
from pathlib import Path

import pytest

from content_pipeline_tests.partners.presence import services_are_required

SCRIPT = "scripts/redis.sh"
FOLDER = Path(__file__).parent.parent.parent / "build" / "redis"


def redis_program(
    *, folder: Path = FOLDER, path: str | None = None, required: bool | None = None
) -> str:
    """The server's program; skips or fails the test without one. ``path``: where to look else."""
    found = shutil.which("redis-server", path=f"{folder}") or shutil.which(
        "redis-server", path=path
    )
    if found is not None:
        return found
    reason = f"redis-server missing; run {SCRIPT}"
    if services_are_required() if required is None else required:
        pytest.fail(f"{reason} (REQUIRE_SERVICES=1 wants it)", pytrace=False)
    pytest.skip(reason)
