"""A throwaway project for one benchmark: the example's site, its own database and provider.

What belongs here: making it, and taking away everything that it started, whatever happened.
"""

import csv
import shutil
import signal
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import yaml

from content_pipeline.config import HOME_VARIABLE, INSTANCE_FILE, SITE_FILE, Project, environment
from content_pipeline.postgres.server import EmbeddedServer
from content_pipeline.postgres.urls import VARIABLE
from content_pipeline.sandbox.cms.supervisor import stop_cms
from content_pipeline.sandbox.supervisor import stop_provider
from content_pipeline.site_files import Site, load_site

REPOSITORY = Path(__file__).resolve().parents[1]
EXAMPLE = REPOSITORY / "content_pipeline" / "defs" / "countries"

IN_FLIGHT = 8


@contextmanager
def temporary_project(*, pages: int, latency_median_s: float = 0.0) -> Iterator[Project]:
    """The example with its first ``pages`` topics; gone, with its services, afterwards.

    ``latency_median_s``: of the sandbox provider's lognormal latency, sigma 0.5.
    """
    if environment().get(VARIABLE, "").strip():
        raise SystemExit(f"unset {VARIABLE}: a benchmark measures a database of its own")
    root = Path(tempfile.mkdtemp(prefix="cp-bench-"))
    root.chmod(0o755)  # root's database server runs as nobody, who must be able to enter
    project = Project(root=root)
    try:
        _copy_example(root, pages, latency_median_s)
        yield project
    finally:
        take_away(project, root)


def site_of_example(project: Project) -> Site:
    """The one site of a temporary project."""
    return load_site(project.site_files()[0])


def command_environment(project: Project) -> Mapping[str, str]:
    """What a command of a user sees: the project, and compiled modules kept between starts."""
    dropped = {"PYTHONDONTWRITEBYTECODE"}
    kept = {name: value for name, value in environment().items() if name not in dropped}
    return {**kept, HOME_VARIABLE: str(project.root)}


def _copy_example(root: Path, pages: int, latency_median_s: float) -> None:
    folder = root / "content_pipeline" / "defs" / EXAMPLE.name
    shutil.copytree(EXAMPLE, folder)
    (root / INSTANCE_FILE).touch()
    document = yaml.safe_load((folder / SITE_FILE).read_text(encoding="utf-8"))
    attributes = document["attributes"]
    attributes["generation"] |= {
        "in_flight": IN_FLIGHT,
        "sandbox": {"latency_median_s": latency_median_s, "latency_sigma": 0.5},
    }
    (folder / SITE_FILE).write_text(yaml.safe_dump(document), encoding="utf-8")
    table = folder / attributes["topics"]["table"]
    with table.open(encoding="utf-8", newline="") as file:
        rows = list(csv.reader(file))[: pages + 1]
    if len(rows) <= pages:
        raise SystemExit(f"the example has {len(rows) - 1} topics; ask for at most that many pages")
    with table.open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows(rows)


def take_away(project: Project, folder: Path) -> None:
    """Stop the project's services and delete ``folder``, even when Ctrl-C comes again."""
    stops = (signal.SIGINT, signal.SIGTERM)
    before = {number: signal.signal(number, signal.SIG_IGN) for number in stops}
    try:
        try:
            stop_provider(project.data_home)
            stop_cms(project.data_home)
        finally:
            EmbeddedServer(project.data_home).stop()
        shutil.rmtree(folder)
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)
