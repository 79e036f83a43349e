"""Requests: which paid call a page job needs next, fully determined before anything is sent.

What belongs here: walking the chain over the outputs that are stored, this job's own and those of
earlier jobs of the page that answer the very same question. What was wrong with a rejected draft is
part of the question. Nothing is paid or written here.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol

from sqlalchemy import Connection

from content_pipeline.core.chain import Chain, Step, StepRole
from content_pipeline.core.money import Usage, input_token_bound
from content_pipeline.core.ports import GenerationRequest
from content_pipeline.core.prompts import SYSTEM_PROMPT, ask_again, render_prompt
from content_pipeline.core.site import SiteSettings
from content_pipeline.ledger import rejections, step_outputs
from content_pipeline.ledger.jobs import PageJob
from content_pipeline.ledger.step_outputs import StepOutput
from content_pipeline.operations.runtime import SiteRuntime


class Wish(Protocol):
    """What of a page job decides what is asked for it; a planned one need not exist yet."""

    @property
    def page_job_id(self) -> str:
        """Its own outputs come before those of other jobs."""
        ...

    @property
    def nonce(self) -> str:
        """Sets a deliberate regeneration apart."""
        ...

    @property
    def input_columns(self) -> Mapping[str, str]:
        """Column → value."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ChainPosition:
    """How far a page job's chain has come."""

    outputs: Mapping[str, StepOutput]
    """By step, in the order of the chain; some may still belong to an earlier job."""
    step: Step | None
    """The step to pay for next; None when every step has its output."""
    prompt: str = field(default="", repr=False)

    @property
    def values(self) -> dict[str, Any]:
        """Step name → output."""
        return {name: found.output for name, found in self.outputs.items()}

    def of_earlier_jobs(self, job: PageJob) -> list[StepOutput]:
        """Those of ``outputs`` that other jobs of the page paid for."""
        return [found for found in self.outputs.values() if found.page_job_id != job.page_job_id]

    def step_key(self, job: PageJob) -> str:
        """Identity of the question that ``step`` asks."""
        assert self.step is not None
        return _key(self.step, self.prompt, job)


def position(runtime: SiteRuntime, job: PageJob, *, by_itself: bool = False) -> ChainPosition:
    """Where ``job`` stands in its chain; ``by_itself``: without what other jobs have paid for."""
    stored: list[StepOutput] = []
    findings: list[str] = []
    if job.has_outputs:  # not so of most pages: that nothing is there need not be asked twice
        with runtime.ledger.begin() as connection:
            stored = step_outputs.of_page(connection, job.page_id)
            findings = findings_of(connection, job.page_job_id) if job.is_asked_again else []
    return position_among(runtime.site, runtime.chain, job, stored, findings, by_itself=by_itself)


def position_among(
    site: SiteSettings,
    chain: Chain,
    job: Wish,
    stored: Iterable[StepOutput],
    findings: Iterable[str] = (),
    *,
    by_itself: bool = False,
) -> ChainPosition:
    """The same for outputs that were read already: those ``stored`` of the page, newest first.

    ``findings``: what was wrong with the draft that is asked for again. Raises PromptError.
    """
    stored, findings = list(stored), list(findings)
    own = {found.step: found for found in stored if found.page_job_id == job.page_job_id}
    by_key = {} if by_itself else {found.step_key: found for found in reversed(stored)}
    outputs: dict[str, StepOutput] = {}
    for step in chain.steps:
        prompt = prompt_of(site, job, step, outputs)
        if findings and step is chain.page_step:
            prompt = ask_again(prompt, findings)
            own = {}  # from here on the job's outputs are those of the draft that broke rules
        found = own.get(step.name) or by_key.get(_key(step, prompt, job))
        if found is None:
            return ChainPosition(outputs=outputs, step=step, prompt=prompt)
        outputs[step.name] = found
    return ChainPosition(outputs=outputs, step=None)


def findings_of(connection: Connection, page_job_id: str) -> list[str]:
    """What was wrong with the draft that a page job is asked to make again."""
    drafts = rejections.of_job(connection, page_job_id)
    asked = [draft for draft in drafts if draft.is_asked_again][-1]
    return [str(finding) for finding in asked.findings]


def _key(step: Step, prompt: str, job: Wish) -> str:
    return step.key(f"{job.nonce}\n{prompt}")


def prompt_of(site: SiteSettings, job: Wish, step: Step, outputs: Mapping[str, StepOutput]) -> str:
    """The prompt of ``step`` after ``outputs``. Raises PromptError."""
    facts = {
        label: job.input_columns[column]
        for column, label in site.article.facts.items()
        if job.input_columns.get(column)
    }
    earlier = {name: found.output for name, found in outputs.items()}
    return render_prompt(step.template, job.input_columns, facts, earlier)


def build_request(
    runtime: SiteRuntime, job: PageJob, step: Step, prompt: str, attempt_id: str
) -> GenerationRequest:
    """The paid call of ``step``."""
    return GenerationRequest(
        attempt_id=attempt_id,
        page_job_id=job.page_job_id,
        model=step.model,
        system=SYSTEM_PROMPT,
        user=prompt,
        schema_name=step.schema_name,
        schema=step.schema,
        max_output_tokens=step.max_output_tokens,
        temperature=step.temperature,
        deadline_s=runtime.site.generation.deadline_s,
    )


def sent_bytes(step: Step, prompt: str) -> int:
    """The text that the call of ``step`` sends, in UTF-8 bytes: what tokens are counted from."""
    system = "" if step.role is StepRole.EMBEDDING else SYSTEM_PROMPT
    return len(system.encode()) + len(prompt.encode())


def most_usage(step: Step, prompt: str) -> Usage:
    """The most tokens that the call of ``step`` can come to."""
    if step.role is StepRole.EMBEDDING:
        return Usage(input_tokens=input_token_bound(prompt), output_tokens=0)
    sent = input_token_bound(SYSTEM_PROMPT, prompt, str(step.schema))
    return Usage(input_tokens=sent, cache_write_tokens=sent, output_tokens=step.max_output_tokens)
