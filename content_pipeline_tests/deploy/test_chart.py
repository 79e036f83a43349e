"""The official chart itself, for who has it: what ``chart`` and ``chart_keys`` say of it is so.

    helm pull dagster/dagster --version 1.13.27 --untar --untardir build
    DAGSTER_CHART=build/dagster make test TEST_ARGS=content_pipeline_tests/deploy

The chart is not part of this project and not in the package registries, so without the variable
these tests are skipped, in continuous integration as well.
"""

import json
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema import Draft202012Validator, ValidationError

from content_pipeline.config import environment
from content_pipeline_tests.deploy.chart import NAMESPACE, RELEASE, instance_of
from content_pipeline_tests.deploy.chart_keys import paths_of
from content_pipeline_tests.deploy.test_instances import DEPLOY, HELM

CHART = environment().get("DAGSTER_CHART")

pytestmark = pytest.mark.skipif(not CHART, reason="DAGSTER_CHART names no chart")

DEPLOYMENTS = "dagster-user-deployments"


def chart() -> Path:
    assert CHART
    return Path(CHART)


def schema_of(folder: Path) -> dict[str, Any]:
    """The chart's schema without what it takes from Kubernetes, which lies on the network."""
    schema: dict[str, Any] = json.loads(
        (folder / "values.schema.json").read_text(encoding="utf-8"),
        object_hook=lambda node: {} if node.get("$ref", "#")[:1] != "#" else node,
    )
    return schema


def merged(defaults: Any, ours: Any) -> Any:
    """Our values over the chart's, as Helm lays them: mappings are merged, lists replaced."""
    if not isinstance(defaults, Mapping) or not isinstance(ours, Mapping):
        return ours
    below = {name: merged(defaults.get(name), value) for name, value in ours.items()}
    return {**defaults, **below}


def defaults_of(folder: Path) -> dict[str, Any]:
    values: dict[str, Any] = yaml.safe_load((folder / "values.yaml").read_text(encoding="utf-8"))
    return values


def properties_of(schema: Mapping[str, Any], node: Mapping[str, Any]) -> Mapping[str, Any]:
    """What ``node`` says of the keys below it, its references followed."""
    while "$ref" in node:
        node = schema["$defs"][node["$ref"].rpartition("/")[2]]
    if "items" in node:
        return properties_of(schema, node["items"])
    for choice in node.get("anyOf", []):
        if choice.get("type") != "null":
            return properties_of(schema, choice)
    found: Mapping[str, Any] = node.get("properties", {})
    return found


def test_the_charts_own_schema_takes_our_values() -> None:
    folder = chart()
    Draft202012Validator(schema_of(folder)).validate(merged(defaults_of(folder), HELM))
    below = folder / "charts" / DEPLOYMENTS
    ours = {**HELM[DEPLOYMENTS], "global": merged(defaults_of(folder)["global"], HELM["global"])}
    Draft202012Validator(schema_of(below)).validate(merged(defaults_of(below), ours))


def test_the_charts_own_schema_refuses_a_wrong_type() -> None:
    folder = chart()
    wrong = merged(HELM, {"dagsterDaemon": {"runRetries": {"maxRetries": "one"}}})
    with pytest.raises(ValidationError):
        Draft202012Validator(schema_of(folder)).validate(merged(defaults_of(folder), wrong))


def test_each_key_of_ours_is_one_of_the_chart() -> None:
    folder = chart()
    whole = schema_of(folder)
    below = schema_of(folder / "charts" / DEPLOYMENTS)
    # Of the switch of its own chart below, only the chart above knows.
    below["properties"]["enabled"] = {}
    for path in paths_of(HELM):
        inside = path[0] == DEPLOYMENTS
        schema = below if inside else whole
        node: Mapping[str, Any] = schema
        for step in path[1 if inside else 0 :]:
            if isinstance(step, int):
                continue
            known = properties_of(schema, node)
            if not known:  # from here on the keys are those of Kubernetes
                break
            assert step in known, path
            node = known[step]


def test_the_chart_makes_of_our_values_what_the_other_tests_take_for_granted() -> None:
    helm = shutil.which("helm")
    if helm is None:
        pytest.skip("there is no helm")
    values = str(DEPLOY / "helm-values.yaml")
    made = subprocess.run(
        [helm, "template", RELEASE, str(chart()), "--namespace", NAMESPACE, "--values", values],
        check=True,
        capture_output=True,
        text=True,
    ).stdout
    objects = {
        (each["kind"], each["metadata"]["name"]): each for each in yaml.safe_load_all(made) if each
    }
    instance = yaml.safe_load(
        objects["ConfigMap", f"{RELEASE}-dagster-instance"]["data"]["dagster.yaml"]
    )
    for section, expected in instance_of(HELM).items():
        if section == "run_coordinator":
            del instance[section]["config"]
        assert instance[section] == expected, section
    # The chart would make these of passwords; ours are made by hand, before.
    assert not [name for kind, name in objects if kind == "Secret"]
    server = objects["Deployment", f"{RELEASE}-dagster-webserver"]["spec"]["template"]["spec"]
    (container,) = server["containers"]
    assert container["ports"][0]["containerPort"] == container["readinessProbe"]["httpGet"]["port"]
