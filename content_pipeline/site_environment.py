"""What a site finds in the environment: the variables that its file names.

What belongs here: reading one, with the sentence that says what is missing where.
"""

import re

from content_pipeline.config import environment
from content_pipeline.core.cms_settings import checked_url
from content_pipeline.core.errors import ConfigurationError
from content_pipeline.site_files import Site


def variable(site: Site, name: str, what: str) -> str:
    """What the environment variable ``name`` holds. Raises ConfigurationError without it."""
    value = environment().get(name, "").strip()
    if not value:
        raise ConfigurationError(
            f"{site.file}: {what} is missing; set it in the environment variable {name}"
        )
    return value


def address(site: Site, name: str, what: str) -> str:
    """The http(s) URL that ``name`` holds, for calls below it. Raises ConfigurationError."""
    try:
        return checked_url(variable(site, name, what))
    except ValueError as error:
        raise ConfigurationError(f"{site.file}: environment variable {name}: {error}") from None


def secret_address(site: Site, name: str, what: str) -> str:
    """The http(s) URL that ``name`` holds, whole and never quoted. Raises ConfigurationError."""
    value = variable(site, name, what)
    if not _URL.fullmatch(value):
        raise ConfigurationError(
            f"{site.file}: {what} in the environment variable {name} is no http(s) URL; copy it "
            "once more from where it was made"
        )
    return value


_URL = re.compile(r"https?://[A-Za-z0-9.\[\]:-]+(/[!-~]*)?(\?[!-~]*)?")
"""Of printable ASCII, without credentials."""
