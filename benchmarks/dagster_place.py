"""A `dagster dev` for one benchmark: webserver, daemon and code server on a throwaway project.

What belongs here: starting and ending it.
"""

import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from benchmarks.place import REPOSITORY, command_environment
from content_pipeline.config import INSTANCE_FILE, Project
from content_pipeline_tests.machines.fleet import free_port
from content_pipeline_tests.machines.web_server import WebServer

UP_WITHIN_S = 120.0
STOPS_WITHIN_S = 20.0
LOOK_EVERY_S = 0.5

_DEFINITIONS = """
from pathlib import Path
import dagster as dg
from content_pipeline.components.content_site import site_definitions
from content_pipeline.site_files import load_site
defs = dg.Definitions.merge(
    site_definitions(load_site(Path(__file__).parent / "{file}")),
    dg.Definitions(executor=dg.in_process_executor),
)
"""

_WORKSPACE = """
load_from:
  - python_file: {relative_path: sites.py, location_name: content_pipeline}
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class DagsterDev:
    """A running one."""

    web: WebServer
    pid: int

    def ask(self, query: str, **variables: object) -> dict[str, Any]:
        """The data of a GraphQL answer. Raises RefusedByDagster."""
        return self.web.ask(query, **variables)


@contextmanager
def dagster_dev(project: Project, site_file: Path) -> Iterator[DagsterDev]:
    """``dagster dev`` with the site of ``site_file`` and the instance's own file; ended after."""
    shutil.copy(REPOSITORY / INSTANCE_FILE, project.root / INSTANCE_FILE)
    relative = site_file.relative_to(project.root)
    definitions = _DEFINITIONS.format(file=relative)
    (project.root / "sites.py").write_text(definitions, encoding="utf-8")
    (project.root / "workspace.yaml").write_text(_WORKSPACE, encoding="utf-8")
    web = WebServer(port=free_port())
    command = ["dagster", "dev", "-w", "workspace.yaml", "-p", str(web.port)]
    with (project.root / "dev.log").open("w", encoding="utf-8") as log:
        process = subprocess.Popen(
            [str(Path(sys.executable).with_name(command[0])), *command[1:]],
            env=_environment(project),
            cwd=project.root,
            stdout=log,
            stderr=subprocess.STDOUT,
        )
    try:
        wait_for("dagster dev", web.is_loaded, within_s=UP_WITHIN_S)
        yield DagsterDev(web=web, pid=process.pid)
    finally:
        _end(process)


def wait_for(what: str, happened: Callable[[], bool], *, within_s: float) -> None:
    """Look until ``happened``. Ends the benchmark when it takes longer than ``within_s``."""
    until = time.monotonic() + within_s
    while not happened():
        if time.monotonic() > until:
            raise SystemExit(f"{what} took longer than {within_s:.0f} s")
        time.sleep(LOOK_EVERY_S)


def _environment(project: Project) -> Mapping[str, str]:
    return {**command_environment(project), "DAGSTER_HOME": str(project.root)}


def _end(process: subprocess.Popen[bytes]) -> None:
    """As Ctrl-C does; what does not listen is killed, code servers too, which outlive a parent."""
    family = psutil.Process(process.pid).children(recursive=True)
    process.send_signal(signal.SIGINT)
    try:
        process.wait(STOPS_WITHIN_S)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()
    for left in psutil.wait_procs(family, timeout=STOPS_WITHIN_S)[1]:
        left.kill()
