"""One paid call as the pipeline makes it: sent, and its answer read."""

from content_pipeline.adapters.llm.openai_model import OpenAIModel
from content_pipeline.core.errors import CallFailed
from content_pipeline.core.failures import Failure
from content_pipeline.core.ports import Reading
from content_pipeline_tests.adapters.llm.samples import request


def reading_of(model: OpenAIModel, **changes: object) -> Reading:
    """What the answer to one call turns out to be."""
    return model.read(model.send(request(**changes)))


def failure_of(model: OpenAIModel, **changes: object) -> Failure:
    """The failure of one call, whether the call or only its answer failed."""
    try:
        reading = reading_of(model, **changes)
    except CallFailed as failed:
        return failed.failure
    assert reading.failure is not None
    assert reading.text is None
    return reading.failure
