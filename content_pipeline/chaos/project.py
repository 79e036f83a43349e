"""The throwaway project of a chaos run: one site, a database, a provider and a CMS of its own.

What belongs here: its files, its services, and taking all of it away again. Nothing of the project
around it is read: not its database, not its budgets, not its site files.
"""

import csv
import shutil
import tempfile
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from enum import StrEnum
from pathlib import Path
from typing import Any

import yaml

from content_pipeline.bootstrap import open_ledger
from content_pipeline.chaos.cms_plan import LATE_S, LISTING_LAG_S
from content_pipeline.config import (
    DAY_BUDGET_VARIABLE,
    HOME_VARIABLE,
    INSTANCE_FILE,
    SITE_FILE,
    Project,
    environment,
)
from content_pipeline.core.failures import FailureClass
from content_pipeline.ledger.database import Ledger
from content_pipeline.postgres.server import EmbeddedServer
from content_pipeline.postgres.urls import VARIABLE
from content_pipeline.sandbox.client import SandboxClient
from content_pipeline.sandbox.cms.client import CMSClient
from content_pipeline.sandbox.cms.supervisor import ensure_cms_running, stop_cms
from content_pipeline.sandbox.settings import ProviderSettings
from content_pipeline.sandbox.supervisor import ensure_provider_running, stop_provider

SITE = "chaos"
MODEL = "gpt-5-mini"
BASE_URL = "https://chaos.example"

DEADLINE_S = 3.0
"""Of one call: ten times the median latency, so that an undisturbed answer is never late."""

SLACK_S = 2.0
"""Longer than the plan's late answers take beyond the deadline."""

LATENCY_MEDIAN_S = 0.3
LATENCY_SIGMA = 0.35
IN_FLIGHT = 8
"""Calls at once of each worker."""

LEASE_S = 2.0
"""A killed worker's pages are free again after this."""

PATIENCE_S = 20.0
"""Longer than every wait of the plan: a worker ends only when all is done."""

QUIET_S = 1.0
"""How long a lost write may still take effect. No site should set it so: production's default is
a minute, for a web server may work on a request that long after its client is gone."""

LATE_QUIET_S = 6.0
"""The same in a run with late writes: shorter than in production as well, longer than LATE_S."""

CMS_LATENCY_S = 0.03
CMS_DEADLINE_S = 10.0

DEPLOY_VARIABLE = "CHAOS_DEPLOY_HOOK"
DEPLOY_HOOK = {"kind": "deploy_hook", "url_env": DEPLOY_VARIABLE, "debounce_s": 1}
"""A host that builds the site anew whenever it is called: the CMS's imitation counts the calls."""

TRIES = 12
"""Of each class that the plan draws: at its shares no page of ten thousand meets so many."""

DRAWN = (
    FailureClass.TRANSIENT,
    FailureClass.THROTTLED,
    FailureClass.UNCERTAIN,
    FailureClass.BAD_OUTPUT,
)

PROMPT = "Write a page about {{ name }}.\n\n{{ facts }}\n"


class Target(StrEnum):
    """Where the pages go."""

    FOLDER = "folder"
    SANDBOX = "sandbox"
    """The offline CMS, which has faults, people and a truth of its own."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ArenaPlan:
    """What kind of project is made."""

    pages: int
    seed: int
    target: Target = Target.SANDBOX
    late: bool = False
    """Lost writes take effect late, and the CMS's lists are behind."""
    keep: bool = False
    """Its services end in the end, its files stay."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Arena:
    """A running throwaway project."""

    project: Project
    names: Mapping[str, str]
    """Topic key → the name of its page."""
    variables: Mapping[str, str] = field(repr=False)
    """The environment of everything that works in it."""
    ledger: Ledger = field(repr=False)
    sandbox: SandboxClient
    cms: CMSClient | None
    """None: pages go to a folder."""
    late_s: float
    """How long after the last answer a write may still take effect."""

    @property
    def public(self) -> Path:
        """The folder of the published pages."""
        return self.project.root / "public"


def names_of(pages: int) -> dict[str, str]:
    """Topic key → name; no name is the beginning of another, so a prompt tells them apart."""
    return {f"t{number:05}": f"Harbour {number:05}" for number in range(1, pages + 1)}


def path_of(name: str) -> str:
    """Where the page of a topic is published."""
    return f"/{name.lower().replace(' ', '-')}/"


def paths_of(names: Collection[str]) -> frozenset[str]:
    """Where the pages of these topics are published."""
    return frozenset(map(path_of, names))


def table_of(root: Path) -> Path:
    """The topic table of the project at ``root``."""
    return root / "arena" / "defs" / SITE / "topics.csv"


@contextmanager
def arena(plan: ArenaPlan) -> Iterator[Arena]:
    """A new project with its database and services running; gone afterwards.

    Raises ConfigurationError or DatabaseUnavailable.
    """
    root = Path(tempfile.mkdtemp(prefix="cp-chaos-"))
    root.chmod(0o755)  # root's database server runs as nobody, who must be able to enter
    project = Project(root=root)
    names = names_of(plan.pages)
    try:
        _write(root, names, plan)
        cms = _cms(project, plan)
        variables = _variables(root, cms)
        ledger = open_ledger(project, variables)
        try:
            address = ensure_provider_running(project.data_home, _provider_settings(plan.seed))
            yield Arena(
                project=project,
                names=names,
                variables=variables,
                ledger=ledger,
                sandbox=address.client(),
                cms=cms,
                late_s=LATE_S if plan.late else 0.0,
            )
        finally:
            ledger.dispose()
    finally:
        _take_away(project, keep=plan.keep)


def _cms(project: Project, plan: ArenaPlan) -> CMSClient | None:
    """The CMS; how it behaves the first worker tells it, by the site's file."""
    if plan.target is Target.FOLDER:
        return None
    return ensure_cms_running(project.data_home, SITE).client()


def _variables(root: Path, cms: CMSClient | None) -> dict[str, str]:
    left_out = {VARIABLE, DAY_BUDGET_VARIABLE, DEPLOY_VARIABLE}
    kept = {name: value for name, value in environment().items() if name not in left_out}
    hook = {} if cms is None else {DEPLOY_VARIABLE: f"{cms.base_url}/hooks/deploy/{SITE}"}
    return {**kept, **hook, HOME_VARIABLE: str(root)}


def _provider_settings(seed: int) -> ProviderSettings:
    return ProviderSettings(
        latency_median_s=LATENCY_MEDIAN_S, latency_sigma=LATENCY_SIGMA, seed=seed
    )


def _write(root: Path, names: Mapping[str, str], plan: ArenaPlan) -> None:
    folder = root / "arena" / "defs" / SITE
    folder.mkdir(parents=True)
    (root / INSTANCE_FILE).touch()
    (root / "pyproject.toml").write_text('[tool.dg.project]\nroot_module = "arena"\n')
    (folder / "prompt.md").write_text(PROMPT)
    document = {"type": "content_pipeline.ContentSite", "attributes": _attributes(plan)}
    (folder / SITE_FILE).write_text(yaml.safe_dump(document, sort_keys=False))
    with table_of(root).open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow(("id", "name", "sea", "berths"))
        for number, (key, name) in enumerate(names.items()):
            sea = ("North Sea", "Baltic Sea", "Adriatic Sea")[number % 3]
            writer.writerow((key, name, sea, f"{100 + 7 * number:,}"))


def _attributes(plan: ArenaPlan) -> dict[str, Any]:
    policy = {"attempts": TRIES, "first_wait_s": 0.3, "max_wait_s": 3}
    return {
        "site": SITE,
        "title": "Harbours",
        "base_url": BASE_URL,
        "topics": {"table": "topics.csv", "id": "id", "name": "name"},
        "article": {
            "facts": {"name": "Name", "sea": "Sea", "berths": "Berths"},
            "must_state": ["name", "berths"],
            "rules": {"min_words": 60},
        },
        "generation": {
            "provider": "sandbox",
            "model": MODEL,
            "deadline_s": DEADLINE_S,
            "answer_slack_s": SLACK_S,
            "in_flight": IN_FLIGHT,
            "sandbox": {
                "latency_median_s": LATENCY_MEDIAN_S,
                "latency_sigma": LATENCY_SIGMA,
                "seed": plan.seed,
            },
        },
        "cms": _cms_attributes(plan),
        **({} if plan.target is Target.FOLDER else {"announce": [DEPLOY_HOOK]}),
        "lane": {
            "lease_s": LEASE_S,
            "patience_s": PATIENCE_S,
            "publish_quiet_s": LATE_QUIET_S if plan.late else QUIET_S,
        },
        "budgets": {"page_usd": 1, "site_day_usd": 10_000},
        "retries": {str(drawn): policy for drawn in DRAWN},
    }


def _cms_attributes(plan: ArenaPlan) -> dict[str, Any]:
    if plan.target is Target.FOLDER:
        return {"folder": "public"}
    return {
        "kind": "sandbox",
        "latency_median_s": CMS_LATENCY_S,
        "listing_lag_s": LISTING_LAG_S if plan.late else 0,
        "deadline_s": CMS_DEADLINE_S,
        "seed": plan.seed,
    }


def _take_away(project: Project, *, keep: bool) -> None:
    try:
        stop_provider(project.data_home)
        stop_cms(project.data_home)
    finally:
        EmbeddedServer(project.data_home).stop()
    if not keep:
        shutil.rmtree(project.root)
