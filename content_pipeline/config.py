"""Where a project lies and what its environment says; the only reader of the environment.

What belongs here: finding the project's folders and its site files, and the variables by name.
Reading one site file is ``site_files``; starting anything is ``bootstrap``.
"""

import os
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import ROUND_DOWN, Decimal, InvalidOperation
from pathlib import Path

from content_pipeline.core.errors import ConfigurationError
from content_pipeline.core.money import USD_QUANTUM

INSTANCE_FILE = "dagster.yaml"
"""Marks the root of a project, as it does for Dagster."""

HOME_VARIABLE = "CONTENT_PIPELINE_HOME"
"""Names the project's root for processes that start elsewhere (a scheduler, a container)."""

DAY_BUDGET_VARIABLE = "CONTENT_PIPELINE_DAY_USD"
"""Caps what all sites of the ledger together spend per UTC day."""

BROKER_VARIABLE = "CONTENT_PIPELINE_BROKER_URL"
"""Where runs wait for the workers of several machines; secret, for it holds a password."""

MOST_USD = Decimal("1e9")
"""The ledger's dollars have 10 digits before the point; a larger cap caps nothing."""

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


def set_default(variable: str, value: str) -> None:
    """Set what a library reads from the environment alone; what stands there already is left."""
    os.environ.setdefault(variable, value)  # noqa: TID251 - this is the one place


def day_budget_usd() -> Decimal | None:
    """What all sites together may spend per UTC day; None without the variable.

    Raises ConfigurationError for what is no amount, an empty one included: a cap that somebody
    meant to set is never silently absent.
    """
    text = environment().get(DAY_BUDGET_VARIABLE)
    if text is None:
        return None
    try:
        amount = Decimal(text.strip())
    except InvalidOperation:
        amount = Decimal("NaN")
    if not (amount.is_finite() and 0 <= amount <= MOST_USD):
        raise ConfigurationError(
            f"{DAY_BUDGET_VARIABLE} is {text[:40]!r}; give the dollars that all sites together may "
            f"spend per UTC day as a plain number of at most {MOST_USD:,f}, e.g. 25.00, or unset it"
        )
    return amount.quantize(USD_QUANTUM, rounding=ROUND_DOWN)


def broker_url() -> str:
    """The Redis that hands runs to workers. Raises ConfigurationError for anything else.

    Only Redis: there alone Celery leaves a run in the queue until a worker is free for it, so that
    a machine that dies takes none of the waiting runs with it.
    """
    url = environment().get(BROKER_VARIABLE, "").strip()
    if not url.startswith(("redis://", "rediss://", "sentinel://")):
        raise ConfigurationError(
            f"{BROKER_VARIABLE} is {'not set' if not url else 'no URL of a Redis'}; set it to the "
            "Redis that all machines share, e.g. redis://:PASSWORD@HOST:6379/0"
        )
    return url


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
