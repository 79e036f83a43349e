"""Paid calls: which side of the provider a step's call goes to, and who can be asked afterwards.

What belongs here: the one place that tells a completion from an embedding. When a call is made, and
what follows from its answer, is decided elsewhere and the same for both.
"""

from content_pipeline.core.chain import Step, StepRole
from content_pipeline.core.generation_settings import GenerationAPI
from content_pipeline.core.ports import EmbeddingModel, EmbeddingRequest, RawResponse, Reading
from content_pipeline.ledger.jobs import PageJob
from content_pipeline.operations.requests import build_request
from content_pipeline.operations.runtime import SiteRuntime


def send(
    runtime: SiteRuntime, job: PageJob, step: Step, prompt: str, attempt_id: str
) -> RawResponse:
    """Make the paid call of ``step`` once. Raises CallFailed."""
    if step.role is not StepRole.EMBEDDING:
        return runtime.model.send(build_request(runtime, job, step, prompt, attempt_id))
    return _embeddings(runtime).send(
        EmbeddingRequest(
            attempt_id=attempt_id,
            model=step.model,
            text=prompt,
            dimensions=step.dimensions,
            deadline_s=runtime.site.generation.deadline_s,
        )
    )


def read(runtime: SiteRuntime, step: str, raw: RawResponse) -> Reading:
    """Interpret the raw answer of a call for ``step``, named as in the attempt."""
    if _role(runtime, step) is StepRole.EMBEDDING:
        return _embeddings(runtime).read(raw)
    return runtime.model.read(raw)


def can_be_asked_about(runtime: SiteRuntime, step: str) -> bool:
    """Whether the provider may know what became of a call for ``step``.

    No provider keeps embeddings. Of a step that the site's file no longer has, nobody knows what
    kind of call it was: absence from the list of completions would prove nothing.
    """
    role = _role(runtime, step)
    if role is None or role is StepRole.EMBEDDING:
        return False
    return runtime.model.capabilities.look_up_by_attempt


def api_of(runtime: SiteRuntime, step: str) -> GenerationAPI | None:
    """Through which API a call for ``step`` is sent; embeddings have one of their own."""
    if _role(runtime, step) is StepRole.EMBEDDING:
        return None
    return runtime.site.generation.api


def _role(runtime: SiteRuntime, step: str) -> StepRole | None:
    try:
        return runtime.chain.step(step).role
    except KeyError:
        return None


def _embeddings(runtime: SiteRuntime) -> EmbeddingModel:
    assert runtime.embeddings is not None, "the chain embeds and the runtime has nothing to do it"
    return runtime.embeddings
