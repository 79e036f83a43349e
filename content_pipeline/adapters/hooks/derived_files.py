"""Files at a site's root that are derived from its listing and written anew when it changes.

What belongs here: bringing a set of such files up to date as one step under the folder's lock.
A file that we did not write is never overwritten or removed, whatever its name.
"""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from content_pipeline.adapters.atomic_files import SiteFolder
from content_pipeline.core.errors import CallFailed
from content_pipeline.core.failures import Failure, FailureClass


@dataclass(frozen=True, slots=True, kw_only=True)
class DerivedFiles:
    """One family of derived files."""

    family: re.Pattern[str]
    """Matches the names of all files the family may ever have, so that old ones are found."""
    is_ours: Callable[[bytes], bool]
    """Whether a file of the family was written by us."""

    def bring_up_to_date(self, folder: SiteFolder, files: Mapping[str, bytes]) -> bool:
        """Make ``files`` (name → bytes) the whole family; whether anything had to change.

        Files are written in the given order, so one that links to others comes last, and files no
        longer wanted go after that. Raises CallFailed: conflict when a wanted name is taken by
        somebody else's file (nothing is written then), storage, transient or uncertain.
        """
        with folder.writing() as writer:
            held = {name: folder.read(name) for name in files}
            for name, data in held.items():
                if data is not None and data != files[name]:
                    self._refuse_foreign(folder, name, data)
            outdated = [name for name, data in files.items() if held[name] != data]
            for name in outdated:
                writer.replace(name, files[name])
            unwanted = [name for name in folder.names() if self._is_leftover(folder, name, files)]
            for name in unwanted:
                writer.remove(name)
        return bool(outdated or unwanted)

    def _is_leftover(self, folder: SiteFolder, name: str, files: Mapping[str, bytes]) -> bool:
        if name in files or not self.family.fullmatch(name):
            return False
        data = folder.read(name)
        return data is not None and self.is_ours(data)

    def _refuse_foreign(self, folder: SiteFolder, name: str, data: bytes) -> None:
        if not self.is_ours(data):
            raise CallFailed(
                Failure(
                    failure_class=FailureClass.CONFLICT,
                    message=f"{name} in {folder.root} was written by somebody else and is left "
                    "alone; move it away to let the pipeline write its own",
                )
            )
