"""Whether a real content management system can be started here, and what a test does when not.

What belongs here: finding what ``scripts/wordpress.sh`` sets up. On a laptop without it the tests
are skipped; where services are required, as in continuous integration, they fail.
"""

import shutil
import subprocess
from dataclasses import dataclass
from pathlib import Path

import pytest

from content_pipeline.config import environment
from content_pipeline_tests.partners.presence import services_are_required

SCRIPT = "scripts/wordpress.sh"
FOLDER = Path(__file__).parent.parent.parent / "build" / "wordpress"
SYSTEM_FOLDERS = "/usr/sbin:/usr/local/sbin"
"""Debian keeps mariadbd there, off the PATH of ordinary users."""

_NAMES = {
    "php": "php",
    "mariadbd": "mariadbd",
    "mariadb": "mariadb",
    "install_db": "mariadb-install-db",
}

MODULES = ("mysqli", "curl", "dom", "mbstring")


@dataclass(frozen=True, slots=True, kw_only=True)
class Programs:
    """What a WordPress runs on."""

    php: str
    mariadbd: str
    mariadb: str
    install_db: str
    docroot: Path


def find_programs(*, folder: Path = FOLDER, required: bool | None = None) -> Programs:
    """What a WordPress runs on; skips or fails the test when something is missing."""
    found = search(folder)
    if isinstance(found, Programs):
        return found
    if services_are_required() if required is None else required:
        pytest.fail(f"{found} (REQUIRE_SERVICES=1 wants it)", pytrace=False)
    pytest.skip(found)


def search(folder: Path = FOLDER) -> Programs | str:
    """What a WordPress runs on, or what is missing for it."""
    path = f"{environment().get('PATH', '')}:{SYSTEM_FOLDERS}"
    found = {use: shutil.which(name, path=path) for use, name in _NAMES.items()}
    missing = [_NAMES[use] for use, program in found.items() if program is None]
    if found["php"] is not None:
        modules = subprocess.run([found["php"], "-m"], capture_output=True, text=True, check=True)
        missing += [f"php-{name}" for name in MODULES if name not in modules.stdout.split()]
    if not (folder / "ready").is_file():
        missing.append("WordPress itself")
    if missing:
        return f"{', '.join(missing)} missing; run {SCRIPT}"
    here = {use: program for use, program in found.items() if program is not None}
    return Programs(**here, docroot=folder / "usr" / "share" / "wordpress")
