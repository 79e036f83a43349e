"""A site whose file is wrong, beside sites whose files are not: it is set aside and shown.

What belongs here: what stands in Dagster for such a site. Dagster loads all of a code location or
nothing, so one typing error would stop every other site's schedules; here it stops its own.
Whoever checks definitions is told the error itself, never that all is well.
"""

import logging
import re
from dataclasses import dataclass
from pathlib import Path

import dagster as dg

from content_pipeline.config import SITE_FILE, environment
from content_pipeline.core.errors import SiteFileError

VALIDATION_VARIABLE = "DAGSTER_IS_DEFS_VALIDATION_CLI"
"""Set by ``dg check defs`` and ``dagster definitions validate``, and documented by them."""

BROKEN = "site_file"
"""The name of the one asset of such a site."""

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokenSite:
    """A site that could not be read, and why."""

    file: Path
    error: SiteFileError

    @property
    def name(self) -> str:
        """Its folder's name as Dagster takes it; the site's own may be what is wrong."""
        return re.sub(r"[^A-Za-z0-9_]", "_", self.file.parent.name) or "site"


def is_being_checked() -> bool:
    """Whether this process loads definitions to say whether they are right."""
    return bool(environment().get(VALIDATION_VARIABLE))


def set_aside(folder: Path, error: SiteFileError) -> BrokenSite:
    """The broken site of ``folder``, told in the log of the code server as well."""
    broken = BrokenSite(file=folder / SITE_FILE, error=error)
    _log.error("a site is set aside, the others are loaded: %s", error)
    return broken


def broken_definitions(broken: BrokenSite) -> dg.Definitions:
    """One asset that tells what is wrong, and fails with it when it is materialized."""

    @dg.asset(
        key=dg.AssetKey([broken.name, BROKEN]),
        description=(
            f"**This site is not loaded:** {broken.error}\n\nNothing of it is scheduled or made. "
            "Correct the file, then reload the code location."
        ),
        group_name=broken.name,
        kinds={"yaml"},
        tags={"content_pipeline/broken": "true"},
        metadata={
            "error": dg.MetadataValue.text(str(broken.error)),
            "file": dg.MetadataValue.path(broken.file),
        },
    )
    def site_file() -> None:
        raise dg.Failure(description=str(broken.error), allow_retries=False)

    return dg.Definitions(assets=[site_file])
