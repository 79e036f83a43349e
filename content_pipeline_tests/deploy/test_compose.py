"""The compose file is one: by the schema of the Compose specification, and once filled in.

The schema comes with ``check-jsonschema``. Nothing here starts a container.
"""

import json
import re
from collections.abc import Callable
from copy import deepcopy
from importlib.resources import files
from typing import Any

import pytest
from jsonschema import Draft202012Validator, ValidationError

from content_pipeline.config import BROKER_VARIABLE
from content_pipeline.postgres.urls import VARIABLE
from content_pipeline_tests.deploy.test_deploy_files import COMPOSE, DOCKERFILE, OURS, SERVICES
from content_pipeline_tests.deploy.test_instances import DEPLOY, ROOT

SPECIFICATION = Draft202012Validator(
    json.loads(
        files("check_jsonschema").joinpath("builtin_schemas/vendor/compose-spec.json").read_text()
    )
)

TEXT = (DEPLOY / "compose.yaml").read_text(encoding="utf-8")

REFERENCE = re.compile(r"\$\{(\w+)(:[-?])?")
"""A variable, and what stands in for it when it is unset: `:-` a default, `:?` an error."""


def changed(change: Callable[[dict[str, Any]], Any]) -> Any:
    """The compose file with one change."""
    compose = deepcopy(COMPOSE)
    change(compose)
    return compose


def test_the_compose_file_keeps_to_the_specification() -> None:
    SPECIFICATION.validate(COMPOSE)


@pytest.mark.parametrize(
    "change",
    [
        lambda compose: compose["services"]["worker"].update(stop_grace="11m"),
        lambda compose: compose["services"]["code"]["healthcheck"].update(retry=30),
        lambda compose: compose["services"]["code"].update(depends_on={"migrate": {}}),
        lambda compose: compose["services"]["webserver"].update(ports={"3000": 3000}),
        lambda compose: compose["services"]["daemon"].update(restart=False),
        lambda compose: compose.update(volume={}),
    ],
    ids=["service", "healthcheck", "condition", "ports", "restart", "top"],
)
def test_a_mistake_is_against_the_specification(change: Callable[[dict[str, Any]], Any]) -> None:
    with pytest.raises(ValidationError):
        SPECIFICATION.validate(changed(change))


def test_nothing_must_be_set_but_the_password_of_the_database() -> None:
    """Compose fills in the whole file, services that are not started as well."""
    required = {name for name, kind in REFERENCE.findall(TEXT) if kind == ":?"}
    bare = {name for name, kind in REFERENCE.findall(TEXT) if not kind}
    assert required == {"POSTGRES_PASSWORD"}
    assert bare <= required, "unset, they would be nothing, with a warning that nobody reads"


def test_the_instance_can_be_any_file_that_is_there() -> None:
    (mount,) = {
        volume
        for name in OURS
        for volume in SERVICES[name]["volumes"]
        if volume.endswith("/app/dagster.yaml:ro")
    }
    (default,) = re.findall(r"\$\{INSTANCE:-(.+)\}", mount)
    for name in {default, *re.findall(r"INSTANCE=(\S+)", TEXT)}:
        assert (ROOT / name).is_file()


def test_the_file_with_the_keys_is_optional_and_in_neither_git_nor_the_image() -> None:
    for name in OURS:
        assert SERVICES[name]["env_file"] == [{"path": ".env", "required": False}]
    assert "/deploy/.env" in (ROOT / ".gitignore").read_text().split()
    ignored = (ROOT / ".dockerignore").read_text().split()
    assert ignored.index("deploy/.env") > ignored.index("!deploy"), "the last line that fits rules"


@pytest.mark.parametrize("variable", [VARIABLE, BROKER_VARIABLE])
def test_a_url_names_a_service_and_the_password_that_it_has(variable: str) -> None:
    """And another machine can name another: it has no such service."""
    url = SERVICES["code"]["environment"][variable]
    found = re.fullmatch(rf"\$\{{{variable}:-\w+://\w*:\$\{{(\w+).*\}}@(\w+):\d+/\w+\}}", url)
    assert found, url
    password, service = found.groups()
    own = [*SERVICES[service].get("environment", {}).values()]
    own += SERVICES[service].get("command", [])
    assert any(str(value).startswith(f"${{{password}:") for value in own)


def test_a_volume_lies_where_the_images_user_has_made_its_folder() -> None:
    """Docker gives a new volume the owner that the folder has in the image; else it is root's."""
    (made,) = re.findall(
        r"install --directory --owner pipeline --group pipeline (.+)$", DOCKERFILE, re.M
    )
    mounts = [volume.split(":") for name in OURS for volume in SERVICES[name]["volumes"]]
    assert {target for source, target, *_ in mounts if "/" not in source} <= set(made.split())
