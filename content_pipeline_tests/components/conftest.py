"""A project of its own with the real dagster.yaml, the embedded database and sandbox, and sites."""

import csv
import itertools
import shutil
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import dagster as dg
import pytest
import yaml
from sqlalchemy import text

from content_pipeline.bootstrap import open_ledger, open_site, topic_rows
from content_pipeline.components.content_site import site_definitions
from content_pipeline.components.project import DAGSTER_HOME
from content_pipeline.components.site_assets import SiteAssets
from content_pipeline.config import HOME_VARIABLE, Project
from content_pipeline.core.states import Stage
from content_pipeline.ledger import reports
from content_pipeline.ledger.database import Ledger
from content_pipeline.ledger.reports import PageReport
from content_pipeline.operations.submit import submit
from content_pipeline.postgres.server import EmbeddedServer
from content_pipeline.postgres.urls import VARIABLE
from content_pipeline.sandbox.client import SandboxClient
from content_pipeline.sandbox.faults import Fault, FaultKind, FaultPlan, Match, Rule
from content_pipeline.sandbox.settings import ProviderSettings
from content_pipeline.sandbox.supervisor import ensure_provider_running, stop_provider
from content_pipeline.site_cms import published_folder
from content_pipeline.site_files import Site, load_site
from content_pipeline_tests.postgres.conftest import fastest_place

REPOSITORY = Path(__file__).parents[2]

TOWNS = ("Aalen", "Brigg", "Celle", "Deal", "Ely", "Fulda", "Gent", "Hull", "Ipswich", "Jena")

INVALID = "lorem ipsum"
"""A page that states this fact breaks the rule against unfinished text."""

Attributes = dict[str, Any]


def settings_of(name: str, **changes: Any) -> Attributes:
    """A site that answers at once; ``changes`` replace whole top-level keys."""
    return {
        "site": name,
        "title": f"Towns of {name}",
        "base_url": f"https://{name}.example",
        "owner": "town team",
        "topics": {"table": "topics.csv", "id": "code", "name": "name", "path": "/{name}/"},
        "article": {
            "prompt": "prompt.md",
            "facts": {"name": "Name", "known_for": "Known for", "population": "Population"},
            "must_state": ["name", "population"],
            "rules": {"min_words": 20},
        },
        "generation": {
            "provider": "sandbox",
            "model": "gpt-5-mini",
            "deadline_s": 20,
            "sandbox": {"latency_median_s": 0},
        },
        "cms": {"kind": "folder", "folder": f"public/{name}"},
        "lane": {"patience_s": 0},
    } | changes


def rows_of(count: int, **known_for: str) -> list[dict[str, str]]:
    """``count`` towns with keys t01, t02, …; ``known_for``: other facts, by key."""
    return [
        {
            "code": f"t{number:02}",
            "name": f"{TOWNS[number % len(TOWNS)]} {number}",
            "known_for": known_for.get(f"t{number:02}", "its market"),
            "population": str(10_000 + number),
        }
        for number in range(1, count + 1)
    ]


@dataclass(frozen=True, kw_only=True)
class TownSite:
    """A site of the project, with the ways tests look at it from every side."""

    project: Project
    site: Site
    instance: dg.DagsterInstance
    ledger: Ledger
    provider: SandboxClient
    definitions: dg.Definitions = field(repr=False)

    @property
    def assets(self) -> SiteAssets:
        return SiteAssets(site=self.site)

    def materialize(
        self,
        *stages: Stage,
        pages: str | tuple[str, str] | None = None,
        also: Sequence[dg.AssetKey] = (),
    ) -> dg.ExecuteInProcessResult:
        """Run assets of a page or a range of pages; the result, whatever it is."""
        key, tags = None, {}
        if isinstance(pages, tuple):
            tags = {
                "dagster/asset_partition_range_start": pages[0],
                "dagster/asset_partition_range_end": pages[1],
            }
        else:
            key = pages
        job = self.definitions.resolve_implicit_global_asset_job_def()
        return job.execute_in_process(
            instance=self.instance,
            asset_selection=[*(self.assets.key(stage) for stage in stages), *also],
            partition_key=key,
            tags=tags,
            raise_on_error=False,
        )

    def materialize_topics(self) -> dg.ExecuteInProcessResult:
        return self.materialize(also=[self.assets.topics])

    def submit(self) -> None:
        """Want every topic, as the command line does before it works."""
        runtime = open_site(self.site, self.project, self.ledger, purpose="test")
        submit(runtime, topic_rows(self.site), requested_by=runtime.worker)

    def run_job(self, name: str, **config: Any) -> dg.ExecuteInProcessResult:
        """Run a job; ``config``: what a person says to its one op in the launchpad."""
        job = self.definitions.resolve_job_def(name)
        (op,) = job.nodes
        return job.execute_in_process(
            instance=self.instance,
            raise_on_error=False,
            run_config={"ops": {op.name: {"config": config}}} if config else None,
        )

    def statuses(self, stage: Stage, keys: Sequence[str]) -> dict[str, str]:
        """Partition → what the asset's page shows of it."""
        found = self.instance.get_status_by_partition(
            self.assets.key(stage), list(keys), self.assets.pages
        )
        statuses = {key: (found or {}).get(key) for key in keys}
        return {key: "MISSING" if value is None else value.name for key, value in statuses.items()}

    def tags_of(self, result: dg.ExecuteInProcessResult) -> dict[str, str]:
        """The tags that a run gave itself."""
        run = self.instance.get_run_by_id(result.run_id)
        assert run is not None
        return {k: v for k, v in run.tags.items() if not k.startswith(("dagster/", ".dagster"))}

    def shown_of(self, result: dg.ExecuteInProcessResult) -> str:
        """Everything that Dagster keeps of a run, as one text."""
        return "\n".join(str(entry) for entry in self.instance.all_logs(result.run_id))

    def events_of(
        self, result: dg.ExecuteInProcessResult, kind: dg.DagsterEventType
    ) -> list[dg.DagsterEvent]:
        """The events of a kind that Dagster kept of a run, also of one that failed."""
        kept = [entry.dagster_event for entry in self.instance.all_logs(result.run_id)]
        return [event for event in kept if event and event.event_type_value == kind.value]

    def checks_of(self, result: dg.ExecuteInProcessResult) -> list[dg.AssetCheckEvaluation]:
        events = self.events_of(result, dg.DagsterEventType.ASSET_CHECK_EVALUATION)
        return [event.asset_check_evaluation_data for event in events]

    def event(self, stage: Stage, page: str) -> dg.AssetMaterialization:
        """The newest materialization of a page."""
        wanted = dg.AssetRecordsFilter(self.assets.key(stage), asset_partitions=[page])
        (record,) = self.instance.fetch_materializations(wanted, limit=1).records
        assert record.asset_materialization is not None
        return record.asset_materialization

    def report(self, page: str) -> PageReport:
        """What the ledger says of a page."""
        with self.ledger.begin() as connection:
            (found,) = reports.page_reports(connection, self.assets.name, [page])
        return found

    def set_faults(self, *rules: Rule) -> None:
        self.provider.set_faults(FaultPlan(rules=rules))

    def billed(self) -> int:
        """Generations that were billed since the test began, by the provider's own account."""
        return len(self.provider.truth()["generations"])

    def file_of(self, page: str) -> Path:
        """The page as a visitor's web server finds it."""
        folder = published_folder(self.site, self.project)
        path = self.report(page).path
        assert folder is not None
        assert path is not None
        return folder / path.strip("/") / "index.html"

    def edit(self, page: str) -> None:
        """Let a person edit the page on the site."""
        file = self.file_of(page)
        file.write_text(file.read_text().replace("<h1>", "<h1>Lovely "))

    def told_of(self, stage: Stage, page: str, result: dg.ExecuteInProcessResult) -> list[str]:
        """What the run's observations of the page say."""
        kept = self.events_of(result, dg.DagsterEventType.ASSET_OBSERVATION)
        found = [event.asset_observation_data.asset_observation for event in kept]
        return [
            item.description or ""
            for item in found
            if (item.asset_key, item.partition) == (self.assets.key(stage), page)
        ]

    def writes(self) -> list[str]:
        """Lines that the folder wrote into its own log, one per page written."""
        folder = published_folder(self.site, self.project)
        assert folder is not None
        log = folder / ".content-pipeline" / "writes.log"
        return log.read_text().splitlines() if log.exists() else []


_NUMBERS = itertools.count(1)
MakeSite = Callable[..., TownSite]


@contextmanager
def _working_for(project: Project) -> Iterator[None]:
    """As if this process had been started for ``project``."""
    with pytest.MonkeyPatch.context() as patch:
        patch.delenv(VARIABLE, raising=False)
        patch.setenv(HOME_VARIABLE, str(project.root))
        patch.setenv(DAGSTER_HOME, str(project.root))
        yield


@pytest.fixture(scope="session")
def project() -> Iterator[Project]:
    """A project with the repository's dagster.yaml, in a place that any account can enter.

    Its queue is looked at more often, so that tests with a daemon wait less.
    """
    root = Path(tempfile.mkdtemp(prefix="cp-", dir=fastest_place()))
    root.chmod(0o755)
    settings = yaml.safe_load((REPOSITORY / "dagster.yaml").read_text())
    settings["run_queue"] |= {"user_code_failure_retry_delay": 1, "dequeue_interval_seconds": 1}
    (root / "dagster.yaml").write_text(yaml.safe_dump(settings))
    made = Project(root=root)
    yield made
    stop_provider(made.data_home)
    EmbeddedServer(made.data_home).stop()
    shutil.rmtree(root)


@pytest.fixture(scope="module", autouse=True)
def at_home(project: Project) -> Iterator[None]:
    """No test of this folder may reach the project that it is started in."""
    with _working_for(project):
        yield


@pytest.fixture(scope="session")
def instance(project: Project) -> Iterator[dg.DagsterInstance]:
    """The instance that dagster.yaml describes."""
    with _working_for(project):
        made = dg.DagsterInstance.get()
    with made:
        yield made


@pytest.fixture(scope="session")
def ledger(project: Project) -> Iterator[Ledger]:
    with _working_for(project):
        made = open_ledger(project)
    yield made
    made.dispose()


def _provider(project: Project) -> SandboxClient:
    """The project's provider, without memory of what came before and without faults."""
    settings = ProviderSettings(latency_median_s=0, idle_exit_s=600)
    client = ensure_provider_running(project.data_home, settings).client()
    client.reset()
    client.set_faults(FaultPlan())
    return client


@pytest.fixture(scope="session")
def make_site(project: Project, instance: dg.DagsterInstance, ledger: Ledger) -> MakeSite:
    """Declare a new site in the project; with each, provider and routes forget what came before."""

    def make(rows: Sequence[Mapping[str, str]], **changes: Any) -> TownSite:
        name = f"towns{next(_NUMBERS)}"
        folder = project.root / "content_pipeline" / "defs" / name
        write_site(folder, rows, settings_of(name, **changes))
        site = load_site(folder / "defs.yaml")
        with ledger.begin() as connection:
            connection.execute(text("DELETE FROM content_pipeline.routes"))
            connection.execute(text("DELETE FROM content_pipeline.call_limits"))
        return TownSite(
            project=project,
            site=site,
            instance=instance,
            ledger=ledger,
            provider=_provider(project),
            definitions=site_definitions(site),
        )

    return make


def write_site(
    folder: Path, rows: Sequence[Mapping[str, str]], attributes: Mapping[str, Any]
) -> None:
    """A site's three files."""
    folder.mkdir(parents=True)
    write_table(folder / "topics.csv", rows)
    (folder / "prompt.md").write_text("Write about {{ name }}.\n\n{{ facts }}\n")
    document = {"type": "content_pipeline.ContentSite", "attributes": dict(attributes)}
    (folder / "defs.yaml").write_text(yaml.safe_dump(document, sort_keys=False))


def write_table(file: Path, rows: Sequence[Mapping[str, str]]) -> None:
    with file.open("w", newline="") as output:
        writer = csv.DictWriter(output, list(rows[0]))
        writer.writeheader()
        writer.writerows(rows)


def fault(kind: FaultKind, about: str, *, times: int | None = None, **particulars: Any) -> Rule:
    """What happens to the pages whose prompt holds ``about``."""
    return Rule(
        fault=Fault(kind=kind, **particulars), match=Match(prompt_contains=about), times=times
    )


FOR_LONG = {"transient": {"attempts": 9, "first_wait_s": 500_000, "max_wait_s": 500_000}}
"""Retries of a site whose pages wait for days after a fault of the provider: one draw of jitter in
10,000 is a wait of less than a minute."""


def faulty(about: str) -> Rule:
    """The provider has a fault of its own: the page alone waits, as the site's retries say."""
    return fault(FaultKind.STATUS, about, status=500)


def throttled(about: str, wait_s: int = 600) -> Rule:
    """The provider asks everybody to come back in ``wait_s`` seconds."""
    return fault(
        FaultKind.STATUS,
        about,
        status=429,
        code="rate_limit_exceeded",
        type="requests",
        headers={"retry-after": str(wait_s)},
    )
