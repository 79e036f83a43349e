"""Dagster's processes around sites of the tests' project: services, and run workers by themselves.

What belongs here: starting them on the sites' definitions. How a process is ended is in ``fleet``.
"""

import json
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import yaml

from content_pipeline_tests.components.conftest import TownSite
from content_pipeline_tests.machines.fleet import HOST, LONGEST_S, Fleet, free_port, wait_until
from content_pipeline_tests.machines.web_server import LOCATION, WebServer

DEFINITIONS = """
from pathlib import Path
import dagster as dg
from content_pipeline.components import interruption
from content_pipeline.components.content_site import site_definitions
from content_pipeline.site_files import load_site

interruption.LOOK_INTERVAL_S = 1

@dg.definitions
def defs():
    sites = [site_definitions(load_site(Path(file))) for file in {files!r}]
    return dg.Definitions.merge(*sites, dg.Definitions(executor=dg.in_process_executor))
"""

WAITS_FOR_CODE = {"DAGSTER_BACKFILL_RETRY_DEFINITION_CHANGED_ERROR": "1"}
"""As the image and the project's .env say: a backfill waits for its code server."""

WORKER = """
import json, sys
import dagster as dg
from pathlib import Path
from content_pipeline.components.content_site import site_definitions
from content_pipeline.site_files import load_site
order = json.load(sys.stdin)
definitions = site_definitions(load_site(Path(order["file"])))
with dg.DagsterInstance.get() as instance:
    definitions.resolve_job_def(order["job"]).execute_in_process(
        instance=instance, tags=order["tags"], run_config=order["run_config"])
"""
"""A run worker: it carries out one requested run, and no code server watches it."""


@dataclass(kw_only=True)
class Services:
    """A code server, a web server and a daemon of some sites; what is killed can be had back."""

    fleet: Fleet
    web: WebServer
    _definitions: Path
    _workspace: Path
    _code_port: int
    _up: dict[str, "subprocess.Popen[bytes]"] = field(default_factory=dict)

    @property
    def code(self) -> "subprocess.Popen[bytes]":
        """The code server; a new one in the place of one that was killed."""
        return self._alive(
            "code", lambda: self.fleet.code_server(self._definitions, self._code_port)
        )

    @property
    def daemon(self) -> "subprocess.Popen[bytes]":
        """The daemon; a new one in the place of one that was killed."""
        return self._alive("daemon", lambda: self.fleet.daemon(self._workspace))

    def all_up(self) -> None:
        """Start what is not there, and wait until the UI shows the sites."""
        assert self.code.poll() is self.daemon.poll() is None
        self.wait_until(lambda: is_listening(self._code_port))
        self.wait_until(self.web.is_loaded)

    def wait_until(self, reached: Callable[[], bool]) -> None:
        wait_until(reached, self.fleet)

    def _alive(
        self, name: str, start: Callable[[], "subprocess.Popen[bytes]"]
    ) -> "subprocess.Popen[bytes]":
        if name not in self._up or self._up[name].poll() is not None:
            self._up[name] = start()
        return self._up[name]


@contextmanager
def services_of(sites: Sequence[TownSite], folder: Path) -> Iterator[Services]:
    """A code server and a web server that have loaded ``sites``; no daemon yet."""
    definitions, workspace = folder / "sites.py", folder / "workspace.yaml"
    definitions.write_text(DEFINITIONS.format(files=[str(site.site.file) for site in sites]))
    code_port, web_port = free_port(), free_port()
    location = {"host": HOST, "port": code_port, "location_name": LOCATION}
    workspace.write_text(yaml.safe_dump({"load_from": [{"grpc_server": location}]}))
    with Fleet(folder=folder, variables=WAITS_FOR_CODE) as fleet:
        services = Services(
            fleet=fleet,
            web=WebServer(port=web_port),
            _definitions=definitions,
            _workspace=workspace,
            _code_port=code_port,
        )
        assert services.code.poll() is None
        services.wait_until(lambda: is_listening(code_port))
        fleet.web_server(workspace, web_port)
        yield services


def is_listening(port: int) -> bool:
    try:
        socket.create_connection((HOST, port), timeout=1).close()
    except OSError:
        return False
    return True


def worker_of(
    site: TownSite,
    job: str,
    *,
    tags: Mapping[str, str] | None = None,
    run_config: Mapping[str, object] | None = None,
) -> "subprocess.Popen[str]":
    """A run worker of one of the site's jobs."""
    order = {
        "file": str(site.site.file),
        "job": f"{site.assets.name}_{job}",
        "tags": dict(tags or {}),
        "run_config": dict(run_config or {}),
    }
    process = subprocess.Popen(
        [sys.executable, "-W", "ignore", "-c", WORKER],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        text=True,
    )
    assert process.stdin is not None
    process.stdin.write(json.dumps(order))
    process.stdin.close()
    return process


def kill_in_the_middle(site: TownSite, worker: "subprocess.Popen[str]", *, after: int) -> None:
    """Kill a run worker once ``after`` pages were paid for."""
    until = time.monotonic() + LONGEST_S
    try:
        while site.billed() < after and time.monotonic() < until:
            time.sleep(0.05)
    finally:
        worker.kill()
        worker.wait()
