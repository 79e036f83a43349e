"""Our Helm values have the chart's keys and types, each where the chart looks for it."""

from collections.abc import Callable
from copy import deepcopy
from typing import Any

import pytest
import yaml
from jsonschema import Draft202012Validator, ValidationError

from content_pipeline_tests.deploy.chart_keys import Path, closed_schema, paths_of
from content_pipeline_tests.deploy.test_deploy_files import PROJECT
from content_pipeline_tests.deploy.test_instances import DEPLOY, HELM, ROOT

SCHEMA = Draft202012Validator(closed_schema())


def name_of(path: Path) -> str:
    return ".".join(map(str, path))


def changed(path: Path, change: Callable[[dict[str, Any], Any], None]) -> Any:
    """Our values with one change where ``path`` leads."""
    values = deepcopy(HELM)
    place = values
    for step in path[:-1]:
        place = place[step]
    change(place, path[-1])
    return values


def misspell(place: dict[str, Any], name: str) -> None:
    place[name.swapcase()] = place.pop(name)


def test_our_values_have_the_keys_and_types_of_the_chart() -> None:
    SCHEMA.check_schema(closed_schema())
    SCHEMA.validate(HELM)


@pytest.mark.parametrize("path", list(paths_of(HELM)), ids=name_of)
def test_a_misspelt_key_is_refused_wherever_it_stands(path: Path) -> None:
    with pytest.raises(ValidationError):
        SCHEMA.validate(changed(path, misspell))


@pytest.mark.parametrize(
    "path",
    [
        ("postgresql", "service", "port"),
        ("dagsterDaemon", "runRetries", "enabled"),
        ("dagster-user-deployments", "deployments", 0, "image", "tag"),
        ("runLauncher", "config", "k8sRunLauncher", "envSecrets"),
    ],
    ids=name_of,
)
def test_a_value_of_another_type_is_refused(path: Path) -> None:
    with pytest.raises(ValidationError):
        SCHEMA.validate(changed(path, lambda place, name: place.update({name: None})))


def test_a_key_that_the_chart_does_not_know_is_refused() -> None:
    """The chart would take `runMonitoring.maxRuntime` as well, and nothing would end a run."""
    monitoring = ("dagsterDaemon", "runMonitoring", "enabled")
    with pytest.raises(ValidationError, match="maxRuntime"):
        SCHEMA.validate(changed(monitoring, lambda place, _: place.update(maxRuntime=1)))


def test_the_chart_is_of_the_version_of_dagster_that_the_image_has() -> None:
    text = (DEPLOY / "helm-values.yaml").read_text(encoding="utf-8")
    pinned = dict(
        line.split("==") for line in (ROOT / "constraints.txt").read_text().split() if "==" in line
    )
    assert f"--version {pinned['dagster']} " in text
    assert f"--version {pinned['dagster']} " in (ROOT / "docs/several-machines.md").read_text()


def test_the_image_is_of_the_version_of_the_project() -> None:
    images = [HELM[part]["image"] for part in ("dagsterWebserver", "dagsterDaemon")]
    images += [each["image"] for each in HELM["dagster-user-deployments"]["deployments"]]
    assert {image["tag"] for image in images} == {PROJECT["project"]["version"]}
    assert len({image["repository"] for image in images}) == 1


def test_no_secret_stands_in_the_values() -> None:
    """What is secret is named by the Kubernetes secret that holds it."""
    written = yaml.safe_dump(HELM)
    for word in ("postgresqlPassword", "sk-", "API_KEY", "CONTENT_PIPELINE_DATABASE_URL"):
        assert word not in written
    assert not HELM["generatePostgresqlPasswordSecret"]
    assert not HELM["generateCeleryConfigSecret"]
