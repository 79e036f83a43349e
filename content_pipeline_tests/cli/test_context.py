"""Which project and which site a command means, and what it says when that is not clear."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from content_pipeline_tests.cli.conftest import MakeSite
from content_pipeline_tests.cli.workshop import Finished, Starter, Workshop


@pytest.fixture
def empty(tmp_path: Path, starter: Starter) -> Iterator[Workshop]:
    """A project without sites, whose database does not exist: nothing here gets as far."""
    nowhere = "postgresql://nobody@127.0.0.1:1/nowhere"
    yield Workshop.in_folder(tmp_path / "empty", starter, database_url=nowhere)
    assert not (tmp_path / "empty" / ".content_pipeline").exists(), "nothing was started"


def refused(done: Finished) -> str:
    assert (done.status, done.out) == (2, "")
    assert done.err.startswith("Error: ")
    assert len(done.err.splitlines()) == 1
    return done.err


@pytest.mark.parametrize("command", [("run",), ("status",), ("show", "t0"), ("db", "stop")])
def test_outside_of_a_project_every_command_says_what_is_missing(
    empty: Workshop, tmp_path: Path, command: tuple[str, ...]
) -> None:
    message = refused(empty.cli(*command, folder=tmp_path))
    assert (
        f"no project here: neither {tmp_path} nor a folder above it holds dagster.yaml" in message
    )


def test_the_program_itself_leaves_with_status_2(empty: Workshop) -> None:
    assert "declares no site" in refused(empty.program("run"))


def test_a_project_without_sites_says_where_one_goes(empty: Workshop) -> None:
    for command in (("run",), ("run", "--site", "towns"), ("status",), ("uncertain",)):
        message = refused(empty.cli(*command))
        assert "declares no site; put a defs.yaml of type content_pipeline.ContentSite" in message


def test_one_site_need_not_be_named_and_several_must(empty: Workshop) -> None:
    empty.site("towns_a")
    assert "127.0.0.1" in refused(empty.cli("run")), "it got as far as the database"
    empty.site("towns_b")
    message = refused(empty.cli("run"))
    assert "the project has several sites; choose one with --site: towns_a, towns_b" in message


def test_a_site_nobody_declared_is_answered_with_those_that_exist(empty: Workshop) -> None:
    empty.site("towns_a")
    empty.site("towns_b")
    for command in (
        ("run",),
        ("status",),
        ("uncertain",),
        ("repair", "retry", "x", "--cause", "y"),
    ):
        message = refused(empty.cli(*command, "--site", "town"))
        assert "there is no site 'town'; known: towns_a, towns_b" in message


def test_two_files_of_one_site_are_refused_with_both_places(empty: Workshop) -> None:
    first, second = empty.site("towns_a"), empty.site("towns_b")
    (second.folder / "defs.yaml").write_text((first.folder / "defs.yaml").read_text())
    for command in (("run",), ("run", "--site", "towns_a"), ("status",)):
        message = refused(empty.cli(*command))
        assert "site 'towns_a' is declared by " in message
        assert str(first.folder) in message
        assert str(second.folder) in message


def test_a_mistake_in_a_site_file_is_named_with_its_line(empty: Workshop) -> None:
    site = empty.site("towns_a")
    site.declare(generation__temprature=1)
    line = (site.folder / "defs.yaml").read_text().splitlines().index("    temprature: 1") + 1
    for command in (("run",), ("run", "--site", "towns_a"), ("status",)):
        message = refused(empty.cli(*command))
        assert f"defs.yaml, line {line}, attributes.generation.temprature: unknown key" in message
        assert "did you mean 'temperature'?" in message


def test_a_mistake_of_another_team_stops_only_what_needs_its_site(empty: Workshop) -> None:
    empty.site("towns_a")
    empty.site("towns_b").declare(title="")
    assert "127.0.0.1" in refused(empty.cli("run", "--site", "towns_a"))
    for command in (("run", "--site", "towns_b"), ("run", "--site", "towns_c"), ("status",)):
        assert "attributes.title" in refused(empty.cli(*command))


def test_a_site_file_that_is_named_must_be_one(empty: Workshop, tmp_path: Path) -> None:
    message = refused(empty.cli("run", "--file", str(tmp_path / "nowhere.yaml")))
    assert "nowhere.yaml cannot be read: [Errno 2]" in message
    done = empty.cli("run", "--file", str(tmp_path))
    assert done.status == 2
    assert "is a directory" in done.err


def test_a_command_works_from_any_folder_of_the_project_and_by_its_variable(
    make_site: MakeSite, workshop: Workshop, tmp_path: Path
) -> None:
    site = make_site()
    inside = workshop.cli("status", "--site", site.name, folder=site.folder)
    named = workshop.cli(
        "status",
        "--site",
        site.name,
        folder=tmp_path,
        environment={"CONTENT_PIPELINE_HOME": str(workshop.root)},
    )
    assert inside.status == named.status == 0
    assert inside.out == named.out
    wrong = workshop.cli(
        "status", folder=site.folder, environment={"CONTENT_PIPELINE_HOME": str(tmp_path)}
    )
    assert "CONTENT_PIPELINE_HOME is " in refused(wrong)
