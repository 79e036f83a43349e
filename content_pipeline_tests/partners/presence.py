"""Whether a partner is there, and what a test does when it is not.

What belongs here: finding the programs that ``scripts/partners.sh`` sets up. On a laptop without
one its tests are skipped; where services are required, as in continuous integration, they fail.
"""

from enum import StrEnum
from pathlib import Path

import pytest

from content_pipeline.config import environment

SCRIPT = "scripts/partners.sh"
HERE = Path(__file__).parent
FOLDER = HERE.parent.parent / "build" / "partners"
PINS = HERE / "pins"


class Partner(StrEnum):
    """A program that nobody of this project wrote; the value names its folder and its pins."""

    LLMOCK = "llmock"
    AIMOCK = "aimock"
    MITMPROXY = "mitmproxy"
    HUGO = "hugo"


PROGRAMS = {
    Partner.LLMOCK: "llmock",
    Partner.AIMOCK: "aimock",
    Partner.MITMPROXY: "mitmdump",
    Partner.HUGO: "hugo",
}


def services_are_required() -> bool:
    """Whether what is missing is a failure."""
    return environment().get("REQUIRE_SERVICES") == "1"


def program_of(partner: Partner, *, folder: Path = FOLDER, required: bool | None = None) -> Path:
    """The partner's program, in exactly the pinned versions; skips or fails the test without."""
    home = folder / partner
    wanted = (PINS / f"{partner}.txt").read_text()
    found = home / "pins.txt"
    if found.is_file() and found.read_text() == wanted:
        return home / "bin" / PROGRAMS[partner]
    reason = f"{partner} is not there in the pinned versions; run {SCRIPT}"
    if services_are_required() if required is None else required:
        pytest.fail(f"{reason} (REQUIRE_SERVICES=1 wants it)", pytrace=False)
    pytest.skip(reason)
