"""Looking at how a run failed."""

import dagster as dg
from dagster import DagsterEventType


def failure_of(result: dg.ExecuteInProcessResult) -> dg.Failure | None:
    """What ended the step of a run, as people see it."""
    (event,) = [
        event
        for event in result.all_events
        if event.event_type_value == DagsterEventType.STEP_FAILURE.value
    ]
    data = event.step_failure_data.user_failure_data
    if data is None:
        return None
    return dg.Failure(description=data.description, metadata=dict(data.metadata))


def reason_of(result: dg.ExecuteInProcessResult) -> str:
    """The one line that a failed run shows first."""
    failure = failure_of(result)
    assert failure is not None
    return failure.description or ""
