"""What ``dg scaffold defs content_pipeline.ContentSite my_site`` writes: a small site that runs.

What belongs here: the files of ``starter/`` put into a team's project. They hold a site that needs
no key and no account, so that the first thing a team sees is a page.
"""

import re
from pathlib import Path

import click
import dagster as dg
import jinja2

from content_pipeline.components.project import this_project
from content_pipeline.config import INSTANCE_FILE, SITE_FILE
from content_pipeline.core.errors import ConfigurationError

STARTER = Path(__file__).with_name("starter")

SITE_FILE_TEMPLATE = f"{SITE_FILE}.j2"

FILES = ("outline.json", "outline.md", "prompt.md", "topics.csv")
"""Beside the site file, as they are."""

LONGEST_NAME = 40
"""Characters of a site's name."""


class SiteScaffolder(dg.Scaffolder):
    """Writes the starter site, and the project's ``dagster.yaml`` where there is none."""

    def scaffold(self, request: dg.ScaffoldRequest) -> None:
        """Fill ``request.target_path``, which exists. Raises ClickException for other formats."""
        if request.scaffold_format != "yaml" or request.append:
            raise click.ClickException(
                "a site is declared by a YAML file in a folder of its own; leave out --format"
            )
        template = (STARTER / SITE_FILE_TEMPLATE).read_text(encoding="utf-8")
        # A file of YAML for people and for us, never a page for browsers: nothing is escaped.
        environment = jinja2.Environment(keep_trailing_newline=True, autoescape=False)  # noqa: S701
        declared = environment.from_string(template).render(site=site_name(request.target_path))
        (request.target_path / SITE_FILE).write_text(declared, encoding="utf-8")
        for name in FILES:
            (request.target_path / name).write_bytes((STARTER / name).read_bytes())
        if request.project_root is not None:
            _make_a_project_of(request.project_root)


def site_name(folder: Path) -> str:
    """A name that a site may have, after its folder's."""
    words = re.sub(r"[^a-z0-9]+", "_", folder.name.lower()).lstrip("_0123456789")
    return words[:LONGEST_NAME].rstrip("_") or "site"


def _make_a_project_of(root: Path) -> None:
    """Give ``root`` an instance file unless this process already works for a project."""
    try:
        this_project()
    except ConfigurationError:
        file = root / INSTANCE_FILE
        file.write_bytes((STARTER / INSTANCE_FILE).read_bytes())
        click.echo(f"Creating {file}; let DAGSTER_HOME name its folder.")
