"""``content-pipeline db`` and ``sandbox``: services that come when needed and stay until told."""

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from content_pipeline.postgres.server import EmbeddedServer
from content_pipeline.sandbox.cms.supervisor import ensure_cms_running, stop_cms
from content_pipeline.sandbox.supervisor import stop_provider
from content_pipeline_tests.cli.workshop import DATABASE, Starter, Workshop, towns
from content_pipeline_tests.postgres.conftest import fastest_place


@pytest.fixture
def own(starter: Starter) -> Iterator[Workshop]:
    """A project with services of its own, where root's unprivileged server can reach it."""
    place = Path(tempfile.mkdtemp(prefix="cp-", dir=fastest_place()))
    place.chmod(0o755)
    workshop = Workshop.in_folder(place / "project", starter)
    yield workshop
    home = workshop.root / ".content_pipeline"
    EmbeddedServer(home).stop()
    stop_provider(home)
    stop_cms(home)
    shutil.rmtree(place)


def said(workshop: Workshop, *command: str) -> str:
    done = workshop.cli(*command)
    assert (done.status, done.err) == (0, "")
    return done.out


def test_a_project_of_files_alone_gets_its_services_and_keeps_what_they_hold(
    own: Workshop,
) -> None:
    assert said(own, "db", "status").startswith("absent: ")
    assert said(own, "sandbox", "status").startswith("not running; it starts with the first run")
    assert said(own, "db", "stop") == said(own, "sandbox", "stop") == "it was not running\n"
    assert not (own.root / ".content_pipeline").exists(), "looking makes nothing"

    site = own.site("towns", towns(2))
    first = own.cli("run")
    assert (first.status, first.err, first.count("published")) == (0, "", 2)

    running = said(own, "db", "status")
    assert running.startswith("running: ")
    assert str(own.root / ".content_pipeline") in running
    assert "ServerStatus(" not in running
    assert ": 2 generations, " in said(own, "sandbox", "status")

    assert said(own, "db", "stop") == said(own, "sandbox", "stop") == "stopped\n"
    assert said(own, "db", "status").startswith("stopped: ")
    again = own.cli("run")
    assert (again.status, again.count("reused")) == (0, 2)
    assert ": 2 generations, " in said(own, "sandbox", "status")
    assert len(site.writes()) == 2

    assert said(own, "db", "stop") == "stopped\n"
    assert said(own, "db", "start") == "the database answers and the ledger is up to date\n"
    assert said(own, "db", "status").startswith("running: ")


def test_the_offline_cms_is_told_and_stopped_with_the_provider(own: Workshop) -> None:
    cms = ensure_cms_running(own.root / ".content_pipeline", "towns")
    assert said(own, "sandbox", "status") == (
        f"CMS of towns {cms.base_url}: 0 pages live, 0 requests since it was set up\n"
    )
    assert said(own, "sandbox", "stop") == "stopped\n"
    assert said(own, "sandbox", "status").startswith("not running")
    assert said(own, "sandbox", "stop") == "it was not running\n"


def test_a_database_of_the_teams_own_is_asked_and_never_stopped(workshop: Workshop) -> None:
    answer = said(workshop, "db", "status")
    assert answer.endswith(f" ({DATABASE}) answers\n")
    assert said(workshop, "db", "stop") == "it was not running\n"
    assert said(workshop, "db", "status") == answer


def test_a_database_that_does_not_answer_is_status_2(workshop: Workshop) -> None:
    nowhere = {DATABASE: "postgresql://me:hush@127.0.0.1:1/towns"}
    for command in ("status", "start"):
        done = workshop.cli("db", command, environment=nowhere)
        assert (done.status, done.out) == (2, "")
        assert "127.0.0.1" in done.err
        assert "hush" not in done.err
