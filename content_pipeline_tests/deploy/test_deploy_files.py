"""What the files of ``deploy`` name is there: programs, options, files, services, chart keys.

Nothing here starts a container or a cluster.
"""

import re
import shutil
import subprocess
import sys
import tomllib
from importlib.metadata import entry_points
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import click
import pytest
from packaging.requirements import Requirement

from content_pipeline.config import (
    BROKER_VARIABLE,
    DAY_BUDGET_VARIABLE,
    HOME_VARIABLE,
    environment,
)
from content_pipeline.postgres.urls import VARIABLE
from content_pipeline.site_files import load_site
from content_pipeline_tests.deploy.test_instances import DEPLOY, HELM, ROOT, read

COMPOSE = read(DEPLOY / "compose.yaml")
SERVICES: dict[str, dict[str, Any]] = COMPOSE["services"]
DOCKERFILE = (DEPLOY / "Dockerfile").read_text()
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
EXAMPLE = load_site(ROOT / "content_pipeline" / "defs" / "countries" / "defs.yaml").settings

OURS = sorted(name for name, service in SERVICES.items() if service["image"] == "content-pipeline")

LOAD = """
import content_pipeline.definitions as module
print(module.__file__, len(list(module.defs().resolve_all_asset_specs())))
"""

IN_KUBERNETES = ["dagster", "api", "grpc"]
"""What the chart puts before ``dagsterApiGrpcArgs``."""


def command_of(words: list[str]) -> tuple[click.Command, list[str]]:
    """The click command that the words start, and what is left of them."""
    (script,) = entry_points(group="console_scripts", name=words[0])
    command = script.load()
    if not isinstance(command, click.Command):
        # Dagster's scripts are functions that call the group of their module.
        (command,) = {
            value
            for name, value in vars(find_module(script.module)).items()
            if isinstance(value, click.Command) and name in {"cli", "group", "dagster_webserver"}
        } or {find_module(script.module).create_dagster_cli()}
    rest = words[1:]
    while isinstance(command, click.Group):
        command, rest = command.commands[rest[0]], rest[1:]
    return command, rest


def find_module(name: str) -> Any:
    return __import__(name, fromlist=["_"])


def assert_starts(words: list[str]) -> None:
    if words[:2] == ["python", "-m"]:
        assert find_spec(words[2]), f"no module {words[2]}"
        return
    command, rest = command_of(words)
    known = {option for parameter in command.params for option in parameter.opts}
    assert {word for word in rest if word.startswith("--")} <= known, words


@pytest.mark.parametrize("name", OURS)
def test_every_command_of_the_compose_file_exists_with_its_options(name: str) -> None:
    assert_starts(SERVICES[name]["command"])
    check = SERVICES[name].get("healthcheck")
    if check:
        assert check["test"][0] == "CMD"
        assert_starts(check["test"][1:])


def test_the_code_server_of_kubernetes_is_started_with_options_that_exist() -> None:
    (deployment,) = HELM["dagster-user-deployments"]["deployments"]
    words = deployment["dagsterApiGrpcArgs"]
    assert_starts([*IN_KUBERNETES, *words])
    assert find_spec(words[words.index("--module-name") + 1])


def test_web_server_and_daemon_find_the_code_server_where_it_listens() -> None:
    (place,) = read(DEPLOY / "workspace.yaml")["load_from"]
    words = SERVICES["code"]["command"]
    assert place["grpc_server"]["host"] == "code"
    assert str(place["grpc_server"]["port"]) == words[words.index("--port") + 1]
    for name in ("webserver", "daemon"):
        assert "deploy/workspace.yaml" in SERVICES[name]["command"]


@pytest.mark.parametrize("name", sorted(SERVICES))
def test_a_service_refers_to_services_and_volumes_that_are_declared(name: str) -> None:
    service = SERVICES[name]
    assert set(service.get("depends_on", {})) <= set(SERVICES)
    named = {volume.split(":")[0] for volume in service.get("volumes", [])}
    assert {volume for volume in named if "/" not in volume} <= set(COMPOSE["volumes"])


def test_only_who_asks_for_workers_gets_them() -> None:
    assert SERVICES["worker"]["profiles"] == SERVICES["redis"]["profiles"] == ["workers"]


def test_no_service_is_open_to_other_machines_and_no_secret_is_written_down() -> None:
    ports = [port for service in SERVICES.values() for port in service.get("ports", [])]
    assert all(port.startswith("127.0.0.1:") for port in ports)
    for service in SERVICES.values():
        for name, value in service.get("environment", {}).items():
            if "PASSWORD" in name or "KEY" in name:
                assert value.startswith("${"), name
    assert "postgresqlPassword" not in HELM["postgresql"]
    for part in ("dagsterWebserver", "dagsterDaemon"):
        assert HELM[part]["envSecrets"] == [{"name": "content-pipeline"}]


def test_the_variables_are_those_that_the_program_reads() -> None:
    given = {name for name in SERVICES["code"]["environment"] if name.startswith("CONTENT_")}
    assert given == {VARIABLE, BROKER_VARIABLE, DAY_BUDGET_VARIABLE}
    assert f"{HOME_VARIABLE}=/app" in DOCKERFILE


def test_a_worker_that_is_told_to_end_has_time_for_its_pages_at_work() -> None:
    grace = SERVICES["worker"]["stop_grace_period"]
    assert 60 * int(grace.removesuffix("m")) > EXAMPLE.lane.longest_hold_s


def test_the_image_is_slim_and_does_not_run_as_root() -> None:
    bases = re.findall(r"^FROM (\S+)", DOCKERFILE, flags=re.MULTILINE)
    assert all(re.fullmatch(r"python:3\.\d+-slim-\w+", base) for base in bases)
    (user,) = re.findall(r"^USER (\d+)$", DOCKERFILE, flags=re.MULTILINE)
    assert int(user) > 1000
    assert "ADD " not in DOCKERFILE


def test_the_image_has_the_pinned_versions_of_everything_with_every_extra() -> None:
    (extras,) = re.findall(
        r"--constraint constraints\.txt --editable \"\.\[([\w,]+)\]\"", DOCKERFILE
    )
    assert set(extras.split(",")) == set(PROJECT["project"]["optional-dependencies"])
    pinned = {line.partition("==")[0] for line in (ROOT / "constraints.txt").read_text().split()}
    for wanted in PROJECT["project"]["optional-dependencies"].values():
        assert {Requirement(each).name for each in wanted} <= pinned


def test_all_that_is_copied_into_the_image_exists_and_is_not_ignored() -> None:
    allowed = {
        line.removeprefix("!")
        for line in (ROOT / ".dockerignore").read_text().splitlines()
        if line.startswith("!")
    }
    copies = re.findall(r"^COPY (?!--from)(?:--\S+ )?(.+) \S+$", DOCKERFILE, flags=re.MULTILINE)
    for name in " ".join(copies).split():
        assert (ROOT / name).exists(), name
        assert name.split("/")[0] in allowed, name


def test_what_is_copied_into_the_image_is_a_project_that_can_load_its_sites(tmp_path: Path) -> None:
    """As an installed package it is none: no site was found below the interpreter's packages."""
    for line in re.findall(r"^COPY (?!--from)(.+)$", DOCKERFILE.split("\nFROM ")[-1], re.MULTILINE):
        *names, target = line.split()
        for name in names:
            source, goal = ROOT / name, tmp_path / target
            if source.is_dir():
                shutil.copytree(source, goal, ignore=shutil.ignore_patterns("__pycache__"))
            else:
                goal.mkdir(exist_ok=True)
                shutil.copy(source, goal)
    told = subprocess.run(
        [sys.executable, "-c", LOAD],
        cwd=tmp_path,
        env={**environment(), "PYTHONPATH": str(tmp_path)}
        | {name: str(tmp_path) for name in (HOME_VARIABLE, "DAGSTER_HOME")},
        check=False,
        capture_output=True,
        text=True,
    )
    assert told.returncode == 0, told.stderr[-2000:]
    place, assets = told.stdout.split()
    assert Path(place).is_relative_to(tmp_path)
    assert int(assets) > 0


def test_the_package_in_the_image_is_the_project_and_no_copy_of_it() -> None:
    """Both stages have one folder, for an editable package is found by its path."""
    assert set(re.findall(r"^WORKDIR (\S+)$", DOCKERFILE, flags=re.MULTILINE)) == {"/app"}
    assert "--editable" in DOCKERFILE
