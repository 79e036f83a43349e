"""What the official Helm chart makes of our values, without the chart and without Helm.

What belongs here: the parts of the chart's ``dagster.yaml`` that our values decide, in the words of
Dagster. The chart itself is not part of this project: ``test_chart.py`` holds this page against it.
"""

from collections.abc import Mapping
from typing import Any

RELEASE = "content-pipeline"
NAMESPACE = "pages"

_WORDS = {
    "runMonitoring": {
        "enabled": "enabled",
        "startTimeoutSeconds": "start_timeout_seconds",
        "maxRuntimeSeconds": "max_runtime_seconds",
        "pollIntervalSeconds": "poll_interval_seconds",
        "freeSlotsAfterRunEndSeconds": "free_slots_after_run_end_seconds",
    },
    "runRetries": {
        "enabled": "enabled",
        "maxRetries": "max_retries",
        "retryOnAssetOrOpFailure": "retry_on_asset_or_op_failure",
    },
    "runs": {
        "maxConcurrentRuns": "max_concurrent_runs",
        "tagConcurrencyLimits": "tag_concurrency_limits",
    },
    "runK8sConfig": {
        "containerConfig": "container_config",
        "podSpecConfig": "pod_spec_config",
        "jobSpecConfig": "job_spec_config",
    },
}
"""The chart's word of each setting, and Dagster's."""

MADE_BY_THE_CHART = {"max_resume_run_attempts": 0}
"""Of run monitoring, whatever our values say."""


def instance_of(values: Mapping[str, Any]) -> dict[str, Any]:
    """The sections of ``dagster.yaml`` that depend on ``values``, for the release above."""
    daemon = values["dagsterDaemon"]
    storage = {"postgres_db": _database_of(values["postgresql"])}
    return {
        "run_launcher": {
            "module": "dagster_k8s",
            "class": values["runLauncher"]["type"],
            "config": _launcher_of(values),
        },
        "run_coordinator": _coordinator_of(daemon["runCoordinator"]),
        **{
            section: {"module": f"dagster_postgres.{module}", "class": name, "config": storage}
            for section, module, name in (
                ("run_storage", "run_storage", "PostgresRunStorage"),
                ("event_log_storage", "event_log", "PostgresEventLogStorage"),
                ("schedule_storage", "schedule_storage", "PostgresScheduleStorage"),
            )
        },
        "concurrency": {"runs": _in_dagsters_words("runs", values["concurrency"]["runs"])},
        "run_monitoring": {
            **MADE_BY_THE_CHART,
            **_in_dagsters_words("runMonitoring", daemon["runMonitoring"]),
        },
        "run_retries": _in_dagsters_words("runRetries", daemon["runRetries"]),
        "telemetry": values["telemetry"],
    }


def _in_dagsters_words(section: str, settings: Mapping[str, Any]) -> dict[str, Any]:
    """Raises KeyError for a setting that is not in the table above."""
    return {_WORDS[section][name]: value for name, value in settings.items()}


def _database_of(settings: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "username": settings["postgresqlUsername"],
        "password": {"env": "DAGSTER_PG_PASSWORD"},
        "hostname": settings["postgresqlHost"],
        "db_name": settings["postgresqlDatabase"],
        "port": settings["service"]["port"],
        "params": settings["postgresqlParams"],
        "scheme": settings["postgresqlScheme"],
    }


def _launcher_of(values: Mapping[str, Any]) -> dict[str, Any]:
    own = values["runLauncher"]["config"]["k8sRunLauncher"]
    return {
        "load_incluster_config": True,
        "job_namespace": NAMESPACE,
        "image_pull_policy": own["imagePullPolicy"],
        "service_account_name": f"{RELEASE}-dagster",
        "dagster_home": values["global"]["dagsterHome"],
        "instance_config_map": f"{RELEASE}-dagster-instance",
        "postgres_password_secret": values["global"]["postgresqlSecretName"],
        "env_secrets": [secret["name"] for secret in own["envSecrets"]],
        "run_k8s_config": _in_dagsters_words("runK8sConfig", own["runK8sConfig"]),
    }


def _coordinator_of(settings: Mapping[str, Any]) -> dict[str, Any]:
    """Without a coordinator of ours the chart names one that starts every run at once."""
    if settings["enabled"]:
        return {"module": "dagster.core.run_coordinator", "class": settings["type"]}
    module = "dagster._core.run_coordinator.sync_in_memory_run_coordinator"
    return {"module": module, "class": "SyncInMemoryRunCoordinator"}
