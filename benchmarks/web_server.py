"""Dagster's web server with a code server of its own, asked as its UI asks.

What belongs here: starting both on one site, the queries of an asset's page, and what they come to.
"""

import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from benchmarks.machine import tree_cpu_s
from benchmarks.place import command_environment
from content_pipeline.components.project import DAGSTER_HOME
from content_pipeline.config import Project
from content_pipeline.core.states import Stage
from content_pipeline.site_files import Site
from content_pipeline_tests.adapters.llm.loopback import free_port
from content_pipeline_tests.machines import web_server

REPEATS = 3
PATIENCE_S = 120

DEFINITIONS = """
from pathlib import Path
import dagster as dg
from content_pipeline.components.content_site import site_definitions
from content_pipeline.site_files import load_site

@dg.definitions
def defs():
    return site_definitions(load_site(Path({file!r})))
"""

LOADED = "{workspaceOrError {... on Workspace {locationEntries {loadStatus locationOrLoadError \
{__typename}}}}}"

ASSET_PAGE = Path(__file__).with_name("asset_page.graphql")

SHOWN_CHECKS = 31
"""Evaluations that the tab of the checks asks for."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Served:
    """What a web server and its code server came to on one site."""

    load_s: float
    """From the start of the processes until the site is loaded."""
    load_cpu_s: float
    code_server_mb: float
    first_page_s: float
    """Dagster counts what it has not counted before."""
    first_page_cpu_s: float
    page_s: float
    slowest: str
    """The query of the page that took longest at last, and the seconds it took by itself."""
    materialized: int


def serve(project: Project, site: Site) -> Served:
    """Start a web server on ``site`` and ask it; the second start, with compiled modules."""
    module = project.root / "large.py"
    module.write_text(DEFINITIONS.format(file=str(site.file)), encoding="utf-8")
    with _web_server(project, module) as server:
        server.wait_until_loaded()
    began = time.monotonic()
    with _web_server(project, module) as server:
        server.wait_until_loaded()
        load_s, load_cpu_s = time.monotonic() - began, server.cpu_s()
        first_s = server.asset_page_s(site)
        first_cpu_s = server.cpu_s() - load_cpu_s
        later_s = min(server.asset_page_s(site) for _ in range(REPEATS))
        slowest = max((server.asked_s(query, site), query) for query in server.queries(site))
        return Served(
            load_s=load_s,
            load_cpu_s=load_cpu_s,
            code_server_mb=server.code_server_mb(),
            first_page_s=first_s,
            first_page_cpu_s=first_cpu_s,
            page_s=later_s,
            slowest=f"{slowest[1]} {slowest[0]:.2f}",
            materialized=server.materialized(site),
        )


def dagster_environment(project: Project) -> dict[str, str]:
    """What a process of Dagster sees."""
    return {**command_environment(project), DAGSTER_HOME: str(project.root)}


@dataclass(frozen=True, slots=True, kw_only=True)
class WebServer:
    """Dagster's web server, which started a code server of its own."""

    process: subprocess.Popen[bytes]
    port: int
    module: Path
    asset_page: str

    def ask(
        self, query: str, variables: Mapping[str, Any] | None = None, operation: str | None = None
    ) -> Any:
        """The data that a query is answered with. Raises RefusedByDagster."""
        asked = web_server.WebServer(port=self.port)
        return asked.ask_one_of(query, operation, variables or {})

    def wait_until_loaded(self) -> None:
        """Until the definitions are there."""
        until = time.monotonic() + PATIENCE_S
        while time.monotonic() < until and self.process.poll() is None:
            try:
                (entry,) = self.ask(LOADED)["workspaceOrError"]["locationEntries"]
            except OSError:
                time.sleep(0.05)
                continue
            if entry["loadStatus"] == "LOADED":
                found = entry["locationOrLoadError"]["__typename"]
                if found != "RepositoryLocation":
                    raise SystemExit(f"the site cannot be loaded: {found}")
                return
        raise SystemExit(f"no definitions were loaded within {PATIENCE_S} s")

    def queries(self, site: Site) -> dict[str, dict[str, Any]]:
        """What the page of the artifact asks for in all its tabs: operation → variables."""
        key = _artifact(site)
        checks = {"assetKey": key, "checkName": "published", "limit": SHOWN_CHECKS}
        return {
            "AssetViewDefinitionQuery": {"assetKey": key},
            "AssetOverviewMetadataEventsQuery": {"assetKey": key},
            "AssetGraphLiveQuery": {"assetKeys": [key]},
            "AssetStaleStatusDataQuery": {"assetKeys": [key]},
            "AssetsFreshnessInfoQuery": {"assetKeys": [key]},
            "LocationWorkspaceAssetsQuery": {"name": self.module.name},
            "PartitionHealthQuery": {"assetKey": key},
            "AssetChecksQuery": {"assetKey": key},
            "AssetCheckDetailsQuery": checks,
        }

    def asset_page_s(self, site: Site) -> float:
        """Seconds until all of them are answered, asked at once."""
        queries = self.queries(site)
        began = time.monotonic()
        with ThreadPoolExecutor(len(queries)) as browser:
            for answer in [browser.submit(self.asked_s, query, site) for query in queries]:
                answer.result()
        return time.monotonic() - began

    def asked_s(self, operation: str, site: Site) -> float:
        """Seconds until one of them is answered."""
        began = time.monotonic()
        self.ask(self.asset_page, self.queries(site)[operation], operation)
        return time.monotonic() - began

    def materialized(self, site: Site) -> int:
        """How many partitions of the artifact are green, as the tab of the partitions is told."""
        asked = {"assetKey": _artifact(site)}
        node = self.ask(self.asset_page, asked, "PartitionHealthQuery")["assetNodeOrError"]
        return len(node["assetPartitionStatuses"]["materializedPartitions"])

    def cpu_s(self) -> float:
        """CPU seconds that both have used so far."""
        return tree_cpu_s(self.process.pid)

    def code_server_mb(self) -> float:
        """The resident memory of the largest process below the web server."""
        below = psutil.Process(self.process.pid).children(recursive=True)
        return float(max(process.memory_info().rss for process in below)) / 2**20


def _artifact(site: Site) -> dict[str, list[str]]:
    return {"path": [site.settings.site, Stage.ARTIFACT.value]}


@contextmanager
def _web_server(project: Project, module: Path) -> Iterator[WebServer]:
    port = free_port()
    command = [
        str(Path(sys.executable).with_name("dagster-webserver")),
        *("--python-file", str(module), "--port", str(port), "--log-level", "error"),
    ]
    with (project.root / "server.log").open("ab") as log:
        # Not where this repository's .env says which project it is.
        process = subprocess.Popen(
            command, env=dagster_environment(project), cwd=project.root, stdout=log, stderr=log
        )
    try:
        yield WebServer(
            process=process,
            port=port,
            module=module,
            asset_page=ASSET_PAGE.read_text(encoding="utf-8"),
        )
    finally:
        process.terminate()
        process.wait()
