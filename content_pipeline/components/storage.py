"""Where Dagster keeps its own records: in the project's database and below its data folder.

What belongs here: the classes that ``dagster.yaml`` names. They need no configuration: which
database it is, and where the project lies, is known to the project.
"""

from typing import Any

from content_pipeline.components.dagster_private import (
    EVENT_BATCH_VARIABLE,
    ConfigurableClassData,
    DagsterPostgresStorage,
    LocalArtifactStorage,
    LocalComputeLogManager,
    keep_events_in,
    pool_connections,
)
from content_pipeline.components.event_store import DAGSTERS_BATCH, EventStore
from content_pipeline.components.project import this_project
from content_pipeline.config import environment, set_default
from content_pipeline.postgres.healing import install_heal
from content_pipeline.postgres.schemas import ensure_schema
from content_pipeline.postgres.urls import database_url

SCHEMA = "dagster"

FOLDER = "dagster"
"""Below the project's data folder."""


class PipelineStorage(DagsterPostgresStorage):
    """Dagster's runs, events and schedules in schema ``dagster`` of the project's database."""

    @classmethod
    def config_type(cls) -> dict[str, Any]:
        """Nothing can be configured here."""
        return {}

    @classmethod
    def from_config_value(
        cls,
        inst_data: ConfigurableClassData | None,
        config_value: Any,  # noqa: ARG003
    ) -> "PipelineStorage":
        """Open the storage; starts the embedded server and creates the schema if need be.

        Raises ConfigurationError or DatabaseUnavailable.
        """
        urls = database_url(environment(), this_project().data_home)
        ensure_schema(urls.dagster_url, SCHEMA)
        storage = cls(urls.dagster_url, inst_data=inst_data)
        set_default(EVENT_BATCH_VARIABLE, str(DAGSTERS_BATCH))
        keep_events_in(storage, EventStore(urls.dagster_url))
        for engine in pool_connections(storage, urls.dagster_url):
            install_heal(engine, urls.server)
        return storage


class PipelineArtifacts(LocalArtifactStorage):
    """Files of runs in the project's data folder.

    Dagster counts a relative ``base_dir`` from the working directory of each process, which would
    scatter folders.
    """

    @classmethod
    def config_type(cls) -> dict[str, Any]:
        """Nothing can be configured here."""
        return {}

    @classmethod
    def from_config_value(
        cls,
        inst_data: ConfigurableClassData | None,
        config_value: Any,  # noqa: ARG003
    ) -> "PipelineArtifacts":
        """Raises ConfigurationError when there is no project."""
        return cls(_folder(), inst_data=inst_data)


class PipelineComputeLogs(LocalComputeLogManager):
    """What steps print, in the project's data folder."""

    @classmethod
    def config_type(cls) -> dict[str, Any]:
        """Nothing can be configured here."""
        return {}

    @classmethod
    def from_config_value(
        cls,
        inst_data: ConfigurableClassData | None,
        config_value: Any,  # noqa: ARG003
    ) -> "PipelineComputeLogs":
        """Raises ConfigurationError when there is no project."""
        return cls(_folder(), inst_data=inst_data)


def _folder() -> str:
    return str(this_project().data_home / FOLDER)
