"""Chains: a page's generation as one or more paid steps, each with its own prompt and output.

What belongs here: what a step is, which comes next, and how the outputs of all become the article.
A page that is made by one call is a chain of length one, not a second way. A step's key is derived
from everything that goes into it, so that the same question about a page is never paid twice, not
even when a later step of the chain changes.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

import jsonschema
from pydantic_core import from_json

from content_pipeline.core.article import (
    SCHEMA_NAME,
    Article,
    NotAnArticle,
    article_of,
    article_schema,
    parse_article,
)
from content_pipeline.core.failures import FailureClass
from content_pipeline.core.identity import digest
from content_pipeline.core.prompts import SYSTEM_PROMPT
from content_pipeline.core.retries import RetryPolicy

Outputs = Mapping[str, Any]
"""Step name → its parsed JSON output."""


class StepRole(StrEnum):
    """What a step is for."""

    CONTENT = "content"
    """Its output goes into the page or into later steps."""
    REVIEW = "review"
    """A second opinion: it may reject the page, and adds nothing to it."""
    EMBEDDING = "embedding"
    """A vector of its prompt: pages are compared by it, and nobody reads it."""


REVIEW_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {
        "approved": {"type": "boolean", "description": "Whether the page may be published."},
        "findings": {
            "type": "array",
            "items": {"type": "string"},
            "description": "What is wrong, one sentence each; empty when approved.",
        },
    },
    "required": ["approved", "findings"],
    "additionalProperties": False,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """One paid call of a page's chain."""

    name: str
    role: StepRole
    template: str = field(repr=False)
    model: str
    model_identity: str
    """The model as it enters identities: sandbox text is never taken for a model's."""
    schema_name: str
    schema: Mapping[str, Any] = field(repr=False)
    max_output_tokens: int
    temperature: float | None
    dimensions: int | None = None
    """Numbers of an embedding's vector; None: as many as the model gives by itself."""
    retries: Mapping[FailureClass, RetryPolicy] = field(default_factory=dict, repr=False)
    """Where they differ from the site's. No part of the version: trying again is the same step."""
    version: str = field(init=False)
    """Identity of how this step is made; derived once, since every page asks for it."""

    def __post_init__(self) -> None:
        if self.role is StepRole.EMBEDDING:
            version = digest("embedding", self.template, self.model_identity, self.dimensions)
            object.__setattr__(self, "version", version)
            return
        version = digest(
            "step",
            self.template,
            SYSTEM_PROMPT,
            self.model_identity,
            dict(self.schema),
            self.max_output_tokens,
            self.temperature,
        )
        object.__setattr__(self, "version", version)

    def key(self, prompt: str) -> str:
        """Identity of this step's answer to ``prompt``."""
        return digest("answer", self.version, prompt)


@dataclass(frozen=True, slots=True, kw_only=True)
class Chain:
    """All steps of a page, in order, and how their outputs become the article."""

    steps: tuple[Step, ...]
    assembly: Mapping[str, str] | None
    """Article field → ``step`` or ``step.key``; None: the one article among the outputs."""

    @property
    def version(self) -> str:
        """Identity of the whole chain."""
        assembly = None if self.assembly is None else dict(self.assembly)
        return digest("chain", [[step.name, step.version] for step in self.steps], assembly)

    def next_step(self, outputs: Outputs) -> Step | None:
        """The first step without an output; None when all have one."""
        return next((step for step in self.steps if step.name not in outputs), None)

    def step(self, name: str) -> Step:
        """The step called ``name``. Raises KeyError."""
        for step in self.steps:
            if step.name == name:
                return step
        raise KeyError(name)

    @property
    def embedding(self) -> Step | None:
        """The step whose vector pages are compared by; None where the chain has none."""
        return next((step for step in self.steps if step.role is StepRole.EMBEDDING), None)

    @property
    def page_step(self) -> Step:
        """The last step that writes what visitors read: asked again when the page breaks a rule."""
        if self.assembly is None:
            return [step for step in self.steps if step.schema_name == ARTICLE][-1]
        writers = {source.partition(".")[0] for source in self.assembly.values()}
        return [step for step in self.steps if step.name in writers][-1]

    def article(self, outputs: Outputs) -> Article:
        """The page's article, made of all outputs. Raises NotAnArticle."""
        if self.assembly is None:
            return article_of(outputs[self.page_step.name])
        return article_of(
            {name: _looked_up(outputs, source) for name, source in self.assembly.items()}
        )

    def rejections(self, outputs: Outputs) -> list[str]:
        """Reviews that reject the page: step names with their number of findings."""
        return [
            f"{step.name} ({len(outputs[step.name]['findings'])} findings)"
            for step in self.steps
            if step.role is StepRole.REVIEW and not outputs[step.name]["approved"]
        ]


ARTICLE = SCHEMA_NAME
"""The schema of a whole page."""


def schema_of(name: str) -> Mapping[str, Any] | None:
    """A schema that the project itself provides, by name."""
    return {ARTICLE: article_schema(), StepRole.REVIEW.value: REVIEW_SCHEMA}.get(name)


class NotOfSchema(ValueError):
    """The output is not what was asked for; the message names the place, never the text."""


def parse_output(text: str, step: Step) -> Any:
    """The parsed output of ``step``. Raises NotOfSchema."""
    if step.schema_name == ARTICLE:
        try:
            return parse_article(text).model_dump()
        except NotAnArticle as error:
            raise NotOfSchema(str(error)) from None
    try:
        # Not json.loads, which takes half a character and dies of deep nesting.
        output = from_json(text)
        jsonschema.validate(output, dict(step.schema))
    except ValueError:
        raise NotOfSchema("the answer is not JSON") from None
    except jsonschema.ValidationError as error:
        raise NotOfSchema(f"the answer is not of the asked schema ({error.validator})") from None
    if "\\u0000" in json.dumps(output):
        raise NotOfSchema("the answer holds NUL characters, so its text is damaged")
    return output


def _looked_up(outputs: Outputs, source: str) -> Any:
    name, _, key = source.partition(".")
    output = outputs[name]
    if not key:
        return output
    if not isinstance(output, Mapping) or key not in output:
        raise NotAnArticle(f"the output of step {name!r} has no {key!r}")
    return output[key]
