"""A run on Kubernetes, as our values have the official chart and Dagster's launcher make it.

The launcher is the real one, and so is the job that it would hand to a cluster. There is none.
"""

from collections.abc import Iterator
from typing import Any

import dagster as dg
import pytest
import yaml
from dagster_k8s import K8sRunLauncher
from dagster_k8s.job import construct_dagster_k8s_job
from kubernetes.client import ApiClient
from sqlalchemy import make_url

from content_pipeline.components.storage import SCHEMA
from content_pipeline_tests.deploy.chart import instance_of
from content_pipeline_tests.deploy.test_deploy_files import DOCKERFILE, EXAMPLE
from content_pipeline_tests.deploy.test_instances import HELM, ONE_MACHINE

IMAGE = "registry.example/content-pipeline:0.1.0"
"""Of a run: that of the code server it comes from."""

ARGUMENTS = ["dagster", "api", "execute_run", "{}"]

NOBODYS_CLUSTER = {
    "apiVersion": "v1",
    "kind": "Config",
    "clusters": [{"name": "none", "cluster": {"server": "http://127.0.0.1:9"}}],
    "users": [{"name": "none", "user": {}}],
    "contexts": [{"name": "none", "context": {"cluster": "none", "user": "none"}}],
    "current-context": "none",
}
"""A launcher reads where its cluster is when it is made; it calls nobody then."""

FIRST_UNPRIVILEGED_PORT = 1024

STORAGES = ("run_storage", "event_log_storage", "schedule_storage")
"""They connect at once, so the tests leave them out; where they lead is a test of its own."""


@pytest.fixture(scope="module")
def instance(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dg.DagsterInstance]:
    """Dagster's own reading of the chart's ``dagster.yaml``, but for storage and cluster."""
    home = tmp_path_factory.mktemp("home")
    sections = {key: value for key, value in instance_of(HELM).items() if key not in STORAGES}
    cluster = home / "cluster.yaml"
    cluster.write_text(yaml.safe_dump(NOBODYS_CLUSTER))
    sections["run_launcher"]["config"] |= {
        "load_incluster_config": False,
        "kubeconfig_file": str(cluster),
    }
    (home / "dagster.yaml").write_text(yaml.safe_dump(sections))
    with dg.DagsterInstance.from_config(str(home)) as read:
        yield read


@pytest.fixture(scope="module")
def job(instance: dg.DagsterInstance) -> dict[str, Any]:
    """What Kubernetes is sent for a run, as JSON."""
    launcher = instance.run_launcher
    assert isinstance(launcher, K8sRunLauncher)
    context = launcher.get_container_context_for_run(dg.DagsterRun(job_name="towns", run_id="1"))
    made = construct_dagster_k8s_job(
        context.get_k8s_job_config(job_image=IMAGE, run_launcher=launcher),
        ARGUMENTS,
        "dagster-run-1",
        user_defined_k8s_config=context.run_k8s_config,
        component="run_worker",
    )
    spec: dict[str, Any] = ApiClient().sanitize_for_serialization(made)["spec"]
    return spec


def pod_of(job: dict[str, Any]) -> dict[str, Any]:
    pod: dict[str, Any] = job["template"]["spec"]
    return pod


def container_of(job: dict[str, Any]) -> dict[str, Any]:
    (container,) = pod_of(job)["containers"]
    assert isinstance(container, dict)
    return container


def test_runs_are_queued_and_limited_as_on_one_machine(instance: dg.DagsterInstance) -> None:
    assert type(instance.run_coordinator).__name__ == "QueuedRunCoordinator"
    limits = ONE_MACHINE["concurrency"]["runs"]
    queue = instance.get_concurrency_config().run_queue_config
    assert queue is not None
    assert queue.max_concurrent_runs == limits["max_concurrent_runs"]
    assert list(queue.tag_concurrency_limits) == limits["tag_concurrency_limits"]


def test_a_run_that_broke_off_is_started_again_by_dagster_and_by_nobody_else(
    instance: dg.DagsterInstance, job: dict[str, Any]
) -> None:
    retries = ONE_MACHINE["run_retries"]
    assert instance.run_retries_enabled
    assert instance.run_retries_max_retries == retries["max_retries"]
    assert not instance.run_retries_retry_on_asset_or_op_failure
    assert job["backoffLimit"] == 0
    assert pod_of(job)["restartPolicy"] == "Never"


def test_a_run_has_the_image_of_its_code_server_and_the_command_of_dagster(
    job: dict[str, Any],
) -> None:
    assert container_of(job)["image"] == IMAGE
    assert container_of(job)["args"] == ARGUMENTS
    assert "command" not in container_of(job)
    assert "ENTRYPOINT" not in DOCKERFILE, "it would take Dagster's command for its arguments"


def test_a_run_has_its_own_memory_and_not_that_of_the_code_server(job: dict[str, Any]) -> None:
    own = HELM["runLauncher"]["config"]["k8sRunLauncher"]["runK8sConfig"]["containerConfig"]
    (server,) = HELM["dagster-user-deployments"]["deployments"]
    assert container_of(job)["resources"] == own["resources"] != server["resources"]
    assert not server["includeConfigInLaunchedRuns"]["enabled"]


def test_all_secrets_of_a_run_come_from_secrets(job: dict[str, Any]) -> None:
    container = container_of(job)
    assert container["envFrom"] == [{"secretRef": {"name": "content-pipeline"}}]
    plain = {entry["name"]: entry.get("value") for entry in container["env"]}
    assert plain == {"DAGSTER_HOME": "/app", "DAGSTER_PG_PASSWORD": None}
    (password,) = [entry for entry in container["env"] if "valueFrom" in entry]
    assert password["valueFrom"] == {
        "secretKeyRef": {"name": "content-pipeline-postgresql", "key": "postgresql-password"}
    }


def test_a_run_that_is_evicted_may_end_its_pages_before_it_is_killed(job: dict[str, Any]) -> None:
    """Then every lease is given back or has run out, and whoever is next goes on at once."""
    grace_s = pod_of(job)["terminationGracePeriodSeconds"]
    assert grace_s > EXAMPLE.lane.longest_hold_s > EXAMPLE.lane.lease_s


def test_what_a_pod_printed_can_be_read_for_a_day(job: dict[str, Any]) -> None:
    assert job["ttlSecondsAfterFinished"] == 24 * 60 * 60


def test_dagsters_home_is_the_folder_of_the_project_in_the_image() -> None:
    """Another folder would be Kubernetes' own making, where only root can write."""
    home = HELM["global"]["dagsterHome"]
    assert f"DAGSTER_HOME={home} " in DOCKERFILE
    assert f"CONTENT_PIPELINE_HOME={home} " in DOCKERFILE
    assert f"--owner pipeline --group pipeline {home} " in DOCKERFILE


def test_dagsters_tables_are_where_the_other_machines_have_them() -> None:
    """With the driver that dagster-postgres can use: SQLAlchemy takes another by default."""
    for section in STORAGES:
        settings = instance_of(HELM)[section]["config"]["postgres_db"]
        assert make_url(f"{settings['scheme']}://").get_dialect().driver == "psycopg2"
        assert settings["params"] == {"options": f"-csearch_path={SCHEMA}"}
        assert settings["password"] == {"env": "DAGSTER_PG_PASSWORD"}


def test_the_web_server_listens_where_a_user_that_is_not_root_may() -> None:
    """The chart's own port is 80, and its probe does not follow the port."""
    server = HELM["dagsterWebserver"]
    assert server["service"]["port"] >= FIRST_UNPRIVILEGED_PORT
    assert server["readinessProbe"]["httpGet"]["port"] == server["service"]["port"]
