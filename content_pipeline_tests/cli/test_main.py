"""The command group itself: help, version, usage errors, and what it imports."""

import subprocess
import sys

import pytest

from content_pipeline import __version__
from content_pipeline_tests.cli.workshop import REPOSITORY, Workshop

COMMANDS = {
    (): ("run", "status", "show", "uncertain", "repair", "db", "sandbox"),
    ("repair",): ("retry",),
    ("db",): ("start", "status", "stop"),
    ("sandbox",): ("status", "stop"),
}


@pytest.mark.parametrize("group", COMMANDS, ids=" ".join)
def test_help_names_every_command_with_a_sentence(
    workshop: Workshop, group: tuple[str, ...]
) -> None:
    for option in ("-h", "--help"):
        done = workshop.cli(*group, option)
        assert (done.status, done.err) == (0, "")
        for command in COMMANDS[group]:
            (line,) = [row for row in done.out.splitlines() if row.split()[:1] == [command]]
            assert len(line.split()) >= 4


def test_the_program_tells_its_version(workshop: Workshop) -> None:
    done = workshop.program("--version")
    assert (done.status, done.err) == (0, "")
    assert __version__ in done.out


@pytest.mark.parametrize(
    "arguments",
    [("runn",), ("run", "--sight", "x"), ("run", "towns"), ("show",), ("db",), ("db", "drop")],
    ids=" ".join,
)
def test_a_usage_error_is_status_2_and_shown_on_standard_error(
    workshop: Workshop, arguments: tuple[str, ...]
) -> None:
    done = workshop.cli(*arguments)
    assert (done.status, done.out) == (2, "")
    assert "Usage: content-pipeline" in done.err


def test_a_command_does_not_pay_for_dagster() -> None:
    code = "import sys, content_pipeline.cli; print('dagster' in sys.modules)"
    found = subprocess.run(
        [sys.executable, "-c", code], cwd=REPOSITORY, capture_output=True, text=True, check=True
    )
    assert found.stdout == "False\n"
