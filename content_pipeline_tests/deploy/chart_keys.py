"""The keys of the official Helm chart that we set, each with its type, as one closed JSON schema.

What belongs here: names and types, read off the chart's own schema and default values. The chart's
schema lets an unknown key pass nearly everywhere, and Helm then ignores it; this one does not.
``test_chart.py`` holds it against a chart.
"""

from collections.abc import Iterator, Mapping
from typing import Any

Keys = Mapping[str, Any]
"""A name of JSON schema's types, a list of one element for lists, or keys below."""

TEXT, NUMBER, SWITCH = "string", "integer", "boolean"

KUBERNETES = "object"
"""What the chart hands on as it is: its keys are those of Kubernetes, or of a URL."""

IMAGE: Keys = {"repository": TEXT, "tag": TEXT, "pullPolicy": TEXT}
SECRETS = [{"name": TEXT}]

CHART_KEYS: Keys = {
    "global": {"postgresqlSecretName": TEXT, "dagsterHome": TEXT},
    "generatePostgresqlPasswordSecret": SWITCH,
    "generateCeleryConfigSecret": SWITCH,
    "postgresql": {
        "enabled": SWITCH,
        "postgresqlHost": TEXT,
        "postgresqlUsername": TEXT,
        "postgresqlDatabase": TEXT,
        "postgresqlScheme": TEXT,
        "postgresqlParams": KUBERNETES,
        "service": {"port": NUMBER},
    },
    "dagsterWebserver": {
        "replicaCount": NUMBER,
        "image": IMAGE,
        "envSecrets": SECRETS,
        "service": {"port": NUMBER},
        "readinessProbe": {"httpGet": {"port": NUMBER}},
    },
    "dagster-user-deployments": {
        "enabled": SWITCH,
        "deployments": [
            {
                "name": TEXT,
                "image": IMAGE,
                "dagsterApiGrpcArgs": [TEXT],
                "port": NUMBER,
                "envSecrets": SECRETS,
                "includeConfigInLaunchedRuns": {"enabled": SWITCH},
                "resources": KUBERNETES,
            }
        ],
    },
    "runLauncher": {
        "type": TEXT,
        "config": {
            "k8sRunLauncher": {
                "imagePullPolicy": TEXT,
                "envSecrets": SECRETS,
                "runK8sConfig": {
                    "containerConfig": KUBERNETES,
                    "podSpecConfig": KUBERNETES,
                    "jobSpecConfig": KUBERNETES,
                },
            }
        },
    },
    "dagsterDaemon": {
        "enabled": SWITCH,
        "image": IMAGE,
        "envSecrets": SECRETS,
        "runCoordinator": {"enabled": SWITCH, "type": TEXT},
        "runMonitoring": {
            "enabled": SWITCH,
            "maxRuntimeSeconds": NUMBER,
            "freeSlotsAfterRunEndSeconds": NUMBER,
            "pollIntervalSeconds": NUMBER,
            "startTimeoutSeconds": NUMBER,
        },
        "runRetries": {"enabled": SWITCH, "maxRetries": NUMBER, "retryOnAssetOrOpFailure": SWITCH},
    },
    "concurrency": {
        "enabled": SWITCH,
        "runs": {
            "maxConcurrentRuns": NUMBER,
            "tagConcurrencyLimits": [{"key": TEXT, "value": KUBERNETES, "limit": NUMBER}],
        },
    },
    "migrate": {"enabled": SWITCH},
    "rabbitmq": {"enabled": SWITCH},
    "redis": {"enabled": SWITCH},
    "telemetry": {"enabled": SWITCH},
}


def closed_schema(keys: Any = CHART_KEYS) -> dict[str, Any]:
    """A JSON schema that knows these keys and no others; all of them must be there."""
    if isinstance(keys, str):
        return {"type": keys}
    if isinstance(keys, list):
        return {"type": "array", "items": closed_schema(keys[0])}
    return {
        "type": "object",
        "properties": {name: closed_schema(below) for name, below in keys.items()},
        "required": list(keys),
        "additionalProperties": False,
    }


Path = tuple[str | int, ...]


def paths_of(values: Any, keys: Any = CHART_KEYS) -> Iterator[Path]:
    """Where each key of the chart stands in ``values``, as deep as ``keys`` go."""
    if isinstance(keys, list):
        for place, value in enumerate(values):
            yield from ((place, *path) for path in paths_of(value, keys[0]))
    elif isinstance(keys, Mapping):
        for name, below in keys.items():
            yield (name,)
            yield from ((name, *path) for path in paths_of(values[name], below))
