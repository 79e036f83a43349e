"""Dagster's web server, asked as the UI asks it.

What belongs here: the questions. Starting the server, and judging what came of it, is the caller's.
"""

import json
import urllib.request
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

HOST = "127.0.0.1"
ANSWERS_WITHIN_S = 60.0

LOCATION = "sites"
"""Under this name a workspace has the sites' definitions."""

LOADED = """
{ workspaceOrError { ... on Workspace { locationEntries {
  locationOrLoadError { __typename } } } } }
"""

LAUNCH_BACKFILL = """
mutation($params: LaunchBackfillParams!) {
  launchPartitionBackfill(backfillParams: $params) {
    __typename
    ... on LaunchBackfillSuccess { backfillId }
    ... on PythonError { message }
  }
}
"""

RETRY_FAILED = """
mutation($params: ReexecutionParams!) {
  reexecutePartitionBackfill(reexecutionParams: $params) {
    __typename
    ... on LaunchBackfillSuccess { backfillId }
    ... on PythonError { message }
  }
}
"""

CANCEL_BACKFILL = """
mutation($id: String!) {
  cancelPartitionBackfill(backfillId: $id) { __typename ... on PythonError { message } }
}
"""

LAUNCH_RUN = """
mutation($params: ExecutionParams!) {
  launchRun(executionParams: $params) {
    __typename
    ... on LaunchRunSuccess { run { runId } }
    ... on PythonError { message }
  }
}
"""

TERMINATE = """
mutation($run: String!, $policy: TerminateRunPolicy) {
  terminateRun(runId: $run, terminatePolicy: $policy) {
    __typename
    ... on TerminateRunFailure { message }
    ... on PythonError { message }
  }
}
"""


class RefusedByDagster(Exception):
    """What was asked could not be answered, or not be done."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WebServer:
    """One that listens on ``port``."""

    port: int

    def ask(self, query: str, **variables: object) -> dict[str, Any]:
        """The data of an answer. Raises RefusedByDagster, OSError while it does not listen."""
        return self.ask_one_of(query, None, variables)

    def ask_one_of(
        self, queries: str, operation: str | None, variables: Mapping[str, object]
    ) -> dict[str, Any]:
        """The data of the answer to the query of that name; raises as ``ask`` does."""
        asked = {"query": queries, "variables": variables, "operationName": operation}
        request = urllib.request.Request(
            f"http://{HOST}:{self.port}/graphql",
            json.dumps(asked).encode(),
            {"Content-Type": "application/json"},
        )
        with urllib.request.urlopen(request, timeout=ANSWERS_WITHIN_S) as answer:
            told = json.load(answer)
        if "errors" in told:
            raise RefusedByDagster(told["errors"])
        data: dict[str, Any] = told["data"]
        return data

    def is_loaded(self) -> bool:
        """Whether all definitions are there."""
        try:
            entries = self.ask(LOADED)["workspaceOrError"]["locationEntries"]
        except OSError:
            return False
        found = [entry["locationOrLoadError"] or {} for entry in entries]
        return {each.get("__typename") for each in found} == {"RepositoryLocation"}

    def launch_backfill(self, assets: Sequence[Sequence[str]], keys: Sequence[str]) -> str:
        """The id of a backfill of these partitions of the assets with these paths."""
        selection = [{"path": list(path)} for path in assets]
        params = {"assetSelection": selection, "partitionNames": list(keys)}
        return str(self._done(LAUNCH_BACKFILL, params=params)["backfillId"])

    def retry_failed(self, backfill: str) -> str:
        """The id of the backfill that "re-execute from failure" makes of another."""
        params = {"parentRunId": backfill, "strategy": "FROM_FAILURE"}
        return str(self._done(RETRY_FAILED, params=params)["backfillId"])

    def cancel_backfill(self, backfill: str) -> None:
        """Let the daemon end it."""
        self._done(CANCEL_BACKFILL, id=backfill)

    def launch_run(self, job: str, partitions: tuple[str, str] | None = None) -> str:
        """The id of a run of a job; ``partitions``: the first and the last of a range."""
        names = ("dagster/asset_partition_range_start", "dagster/asset_partition_range_end")
        tags = dict(zip(names, partitions, strict=True)) if partitions else {}
        params = {
            "selector": {
                "jobName": job,
                "repositoryName": "__repository__",
                "repositoryLocationName": LOCATION,
            },
            "executionMetadata": {"tags": [{"key": k, "value": v} for k, v in tags.items()]},
            "runConfigData": {},
        }
        return str(self._done(LAUNCH_RUN, params=params)["run"]["runId"])

    def terminate(self, run: str, policy: str) -> None:
        """End a run: ``policy`` is SAFE_TERMINATE or MARK_AS_CANCELED_IMMEDIATELY."""
        self._done(TERMINATE, run=run, policy=policy)

    def _done(self, mutation: str, **variables: object) -> dict[str, Any]:
        (answer,) = self.ask(mutation, **variables).values()
        if not answer["__typename"].endswith("Success"):
            raise RefusedByDagster(answer)
        done: dict[str, Any] = answer
        return done
