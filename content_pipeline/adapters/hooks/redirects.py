"""Redirects: leads visitors of retired topics' pages elsewhere, by the file ``_redirects``.

What belongs here: the format that Netlify, Cloudflare Pages and others read at a site's root. The
file goes when there is nobody to lead any more.
"""

import re
from pathlib import Path

from content_pipeline.adapters.atomic_files import SiteFolder
from content_pipeline.adapters.hooks.derived_files import DerivedFiles
from content_pipeline.core.ports import Announcement, SiteListing

REDIRECTS_FILE = "_redirects"

_SIGN = b"# Written by content-pipeline; changes made here are overwritten.\n"

_FILES = DerivedFiles(family=re.compile(r"_redirects"), is_ours=lambda data: data.startswith(_SIGN))


class RedirectsFile:
    """Keeps ``_redirects`` in ``root``; ``target`` is a path or URL."""

    kind = "redirects"

    def __init__(self, root: Path, *, target: str) -> None:
        self._folder = SiteFolder(root=root)
        self._target = target

    def announce(self, listing: SiteListing) -> Announcement:
        """Write what changed; an untouched file keeps its time. Raises CallFailed."""
        lines = [f"{path} {self._target} 301\n" for path in listing.withdrawn]
        files = {REDIRECTS_FILE: _SIGN + "".join(lines).encode()} if lines else {}
        changed = _FILES.bring_up_to_date(self._folder, files)
        return Announcement(location=str(self._folder.root / REDIRECTS_FILE), changed=changed)
