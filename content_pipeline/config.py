"""Where a project lies and what its environment says; the only reader of the environment.

What belongs here: finding the project's folders and its site files, and the variables by name.
Reading one site file is ``site_files``; starting anything is ``bootstrap``.
"""

import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from content_pipeline.core.errors import ConfigurationError

INSTANCE_FILE = "dagster.yaml"
"""Marks the root of a project, as it does for Dagster."""

HOME_VARIABLE = "CONTENT_PIPELINE_HOME"
"""Names the project's root for processes that start elsewhere (a scheduler, a container)."""

SITE_FILE = "defs.yaml"


@dataclass(frozen=True, slots=True, kw_only=True)
class Project:
    """The folders of one project."""

    root: Path

    @property
    def data_home(self) -> Path:
        """Where everything that runs keeps its files; never in version control."""
        return self.root / ".content_pipeline"

    def site_files(self) -> list[Path]:
        """All site files, where ``dg`` looks for them; by name. Raises ConfigurationError."""
        # Like dg: a project with a folder src keeps its packages there.
        source = self.root / "src"
        packages = source if source.is_dir() else self.root
        folder = packages.joinpath(*_root_module(self.root).split("."), "defs")
        found = sorted(folder.glob(f"**/{SITE_FILE}"))
        return [path for path in found if _declares_a_site(path)]


def environment() -> Mapping[str, str]:
    """The environment of this process."""
    return os.environ  # noqa: TID251 - this is the one place


def find_project(start: Path | None = None) -> Project:
    """The project around ``start`` (default: the working directory). Raises ConfigurationError."""
    named = environment().get(HOME_VARIABLE)
    if named:
        root = Path(named).expanduser().resolve()
        if not (root / INSTANCE_FILE).is_file():
            raise ConfigurationError(
                f"{HOME_VARIABLE} is {root}, which holds no {INSTANCE_FILE}; correct or unset it"
            )
        return Project(root=root)
    here = (start or Path.cwd()).resolve()
    for folder in (here, *here.parents):
        if (folder / INSTANCE_FILE).is_file():
            return Project(root=folder)
    raise ConfigurationError(
        f"no project here: neither {here} nor a folder above it holds {INSTANCE_FILE}. Change to "
        f"the project's folder or set {HOME_VARIABLE}"
    )


def _root_module(root: Path) -> str:
    """The package that holds ``defs``, as pyproject.toml tells ``dg``."""
    file = root / "pyproject.toml"
    if not file.is_file():
        return "content_pipeline"
    try:
        document = tomllib.loads(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeError, tomllib.TOMLDecodeError) as error:
        raise ConfigurationError(f"{file} cannot be read: {error}") from None
    for key in ("tool", "dg", "project"):
        document = document.get(key, {})
    return str(document.get("root_module", "content_pipeline"))


def _declares_a_site(path: Path) -> bool:
    """Whether ``path`` is ours and not another component's; a broken file counts as ours."""
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except OSError:
        return True  # whoever loads it says why it cannot be read
    kinds = [line for line in text.splitlines() if line.startswith("type:")]
    return not kinds or any("ContentSite" in line for line in kinds)
