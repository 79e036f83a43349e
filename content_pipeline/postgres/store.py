"""Where the embedded server keeps its files, and how that place is found again.

Normally ``<data_home>/postgres``. When root starts it and the account of the server cannot enter
the project (below /root, say), the files live in ``/var/lib/content-pipeline/<hash>``; the file
``<data_home>/postgres/location`` names that folder and its file ``project`` names the project, so
a moved project keeps its database and a copied one gets its own. Not here: what is in the files.
"""

import hashlib
import itertools
import os
from dataclasses import dataclass
from pathlib import Path

from content_pipeline.core.errors import DatabaseUnavailable
from content_pipeline.postgres.account import Account, can_use
from content_pipeline.postgres.files import Owner, make_folder, owner_of, write_file

# Not /tmp, which a reboot empties, and not /var/tmp, where systemd deletes files that were not
# touched for 30 days, which is most files of a quiet database.
SYSTEM_HOME = Path("/var/lib/content-pipeline")


@dataclass(frozen=True, slots=True, kw_only=True)
class Store:
    """The folder of one server: ``data`` and ``log`` in it belong to the server's account."""

    home: Path
    outside_project: bool

    @property
    def data(self) -> Path:
        """The cluster."""
        return self.home / "data"

    @property
    def log(self) -> Path:
        """The folder of the server's log, a file for each day of the week."""
        return self.home / "log"

    @property
    def start_log(self) -> Path:
        """What the latest start said before the server opened its log."""
        return self.log / "start.log"

    @property
    def server_lock(self) -> Path:
        """The file the server's processes keep locked while they live."""
        # Inside the data: whoever deletes or copies them deletes or copies the lock's file too,
        # and a new file is a new lock.
        return self.data / "content_pipeline.lock"


def project_folder(data_home: Path) -> Path:
    """Return the folder inside the project: the files themselves, or the note where they are."""
    return data_home / "postgres"


def make_project_folder(data_home: Path) -> Owner | None:
    """Make the folder inside the project; returns who its files belong to (None: us).

    Raises DatabaseUnavailable when the place cannot be written.
    """
    folder = project_folder(data_home)
    try:
        if not data_home.exists():
            data_home.mkdir(parents=True, exist_ok=True)
            if owner := owner_of(data_home.parent):  # root under sudo, in a user's project
                os.chown(data_home, owner.uid, owner.gid)
        owner = owner_of(data_home)
        # Root lets the server's account pass through, nobody lists it.
        make_folder(folder, mode=0o711 if os.geteuid() == 0 else 0o700, owner=owner)
    except OSError as error:
        raise DatabaseUnavailable(
            f"Cannot make {folder} for the embedded PostgreSQL: {error.strerror}. Make the project "
            "folder writable, or set CONTENT_PIPELINE_DATABASE_URL."
        ) from error
    return owner


def find_store(data_home: Path) -> Store | None:
    """Return the store this project already has, or None."""
    inside = Store(home=project_folder(data_home), outside_project=False)
    if inside.data.exists():
        return inside
    try:
        home = Path(os.fsdecode((inside.home / "location").read_bytes()))
        project = Path(os.fsdecode((home / "project").read_bytes()))
    except (FileNotFoundError, NotADirectoryError):
        return None
    if project != data_home:
        if project.exists():
            return None  # this project is a copy: two projects must not write one ledger
        _claim(home, data_home)  # it was moved
    return Store(home=home, outside_project=True)


def choose_store(data_home: Path, account: Account, system_home: Path) -> Store:
    """Choose and prepare the folder of a new server; the project folder must exist."""
    inside = project_folder(data_home)
    if not account.switched or can_use(account, folder=inside):
        return Store(home=inside, outside_project=False)
    try:
        home = _free_home(data_home, system_home)
        system_home.mkdir(mode=0o755, parents=True, exist_ok=True)
        make_folder(home, mode=0o711, owner=None)
        _claim(home, data_home)
        location = inside / "location"
        write_file(location, os.fsencode(home), mode=0o644, owner=owner_of(data_home))
    except OSError as error:
        raise DatabaseUnavailable(
            f"The account {account.name} cannot enter {inside}, and {system_home} cannot be used "
            f"instead: {error.strerror}. Move the project to a folder other accounts can pass "
            "through, run as an ordinary user, or set CONTENT_PIPELINE_DATABASE_URL."
        ) from error
    return Store(home=home, outside_project=True)


def _free_home(data_home: Path, system_home: Path) -> Path:
    for number in itertools.count():
        key = os.fsencode(data_home) + b"\0%d" % number
        home = system_home / hashlib.sha256(key).hexdigest()[:16]
        claim = home / "project"
        # Ours again when only the note inside the project was deleted: its ledger is not lost.
        if not claim.exists() or claim.read_bytes() == os.fsencode(data_home):
            return home
    raise AssertionError("unreachable: the numbers do not end")


def _claim(home: Path, data_home: Path) -> None:
    write_file(home / "project", os.fsencode(data_home), mode=0o644, owner=None)
