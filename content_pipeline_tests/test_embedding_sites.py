"""Site files with a step that embeds, and with policies of a step's own."""

from collections.abc import Mapping
from typing import Any

import pytest
from pydantic import ValidationError

from content_pipeline.core.chain import Chain, StepRole
from content_pipeline.core.errors import SiteFileError
from content_pipeline.core.failures import FailureClass
from content_pipeline.core.retries import RetryPolicy
from content_pipeline_tests.operations.small_site import settings_of, site_of

PAGE = {"name": "page", "prompt": "page.md"}
VECTOR = {
    "name": "vector",
    "prompt": "vector.md",
    "output": "embedding",
    "model": "text-embedding-3-small",
}
FILES = {"page.md": "Write about {{ facts }}", "vector.md": "{{ page.title }} {{ page.sections }}"}
ASSEMBLED = {
    "title": "page.title",
    "meta_description": "page.meta_description",
    "introduction": "vector",
    "sections": "page.sections",
}


def chain_of(
    *steps: Mapping[str, Any], files: Mapping[str, str] | None = None, **changes: Any
) -> Chain:
    settings = settings_of("towns", generation={"steps": list(steps)}, **changes)
    return site_of(settings, files=FILES | dict(files or {})).chain


def refusal(*steps: Mapping[str, Any], **changes: Any) -> str:
    """The message of the one thing that is wrong."""
    generation = {"steps": list(steps), **changes.pop("generation", {})}
    with pytest.raises(ValidationError) as caught:
        settings_of("towns", generation=generation, **changes)
    (error,) = caught.value.errors()
    return str(error["msg"])


def test_a_step_that_embeds_has_a_model_of_its_own_and_no_text() -> None:
    chain = chain_of(PAGE, VECTOR | {"dimensions": 256})
    step = chain.embedding
    assert step is chain.steps[1]
    assert step is not None
    assert (step.role, step.model) == (StepRole.EMBEDDING, "text-embedding-3-small")
    assert step.model_identity == "sandbox/text-embedding-3-small"
    assert (step.dimensions, step.max_output_tokens, step.temperature) == (256, 0, None)
    assert chain.page_step is chain.steps[0]


def test_a_chain_without_such_a_step_says_so() -> None:
    assert chain_of(PAGE).embedding is None


def test_what_makes_another_vector_makes_another_version() -> None:
    versions = {
        chain_of(PAGE, VECTOR | changes, files=files).version
        for changes, files in (
            ({}, {}),
            ({"dimensions": 256}, {}),
            ({"model": "text-embedding-3-large"}, {}),
            ({}, {"vector.md": "{{ page.title }}"}),
        )
    }
    assert len(versions) == 4


def test_how_often_a_step_is_tried_does_not_make_another_page() -> None:
    retries = {"retries": {"transient": {"attempts": 9}}}
    plain = chain_of(PAGE, VECTOR)
    stubborn = chain_of(PAGE | retries, VECTOR | retries)
    assert stubborn.version == plain.version
    for step in stubborn.steps:
        assert step.retries == {FailureClass.TRANSIENT: RetryPolicy(attempts=9)}
    assert all(step.retries == {} for step in plain.steps)


REFUSED: list[tuple[str, list[Mapping[str, Any]], dict[str, Any]]] = [
    ("needs a `model` of its own", [PAGE, VECTOR | {"model": None}], {}),
    ("neither `max_output_tokens` nor", [PAGE, VECTOR | {"max_output_tokens": 100}], {}),
    ("neither `max_output_tokens` nor", [PAGE, VECTOR | {"temperature": 0.5}], {}),
    ("`dimensions` are an embedding's", [PAGE | {"dimensions": 100}], {}),
    ("keep one step", [PAGE, VECTOR, VECTOR | {"name": "another"}], {}),
    ("no step writes the article", [VECTOR], {}),
    ("a vector and no text", [PAGE, VECTOR], {"generation": {"assemble": ASSEMBLED}}),
    (
        "add a step with `output: embedding`",
        [PAGE],
        {"article": {"rules": {"max_similarity": 0.9}}},
    ),
    (
        "policy is tried once",
        [PAGE, VECTOR | {"retries": {"policy": {"attempts": 2}}}],
        {},
    ),
]


@pytest.mark.parametrize(("words", "steps", "changes"), REFUSED)
def test_what_cannot_be_meant_is_refused(
    words: str, steps: list[Mapping[str, Any]], changes: dict[str, Any]
) -> None:
    if "article" in changes:
        changes = {"article": changes["article"]}
    assert words in refusal(*steps, **changes)


@pytest.mark.parametrize("limit", [0, 1, -0.5, 1.2])
def test_a_similarity_that_all_or_no_pages_pass_is_no_limit(limit: float) -> None:
    assert "than" in refusal(PAGE, VECTOR, article={"rules": {"max_similarity": limit}})


def test_no_prompt_can_use_a_vector() -> None:
    after = {"name": "opinion", "prompt": "opinion.md", "output": "review"}
    with pytest.raises(SiteFileError, match=r"opinion\.md: 'vector' is a vector"):
        chain_of(PAGE, VECTOR, after, files={"opinion.md": "Judge {{ page }} by {{ vector }}"})
    chain = chain_of(PAGE, VECTOR, after, files={"opinion.md": "Judge {{ page }}"})
    assert [step.role for step in chain.steps] == ["content", "embedding", "review"]


def test_a_similarity_needs_its_step_only_where_it_is_asked_for() -> None:
    chain = chain_of(PAGE, VECTOR, article={"rules": {"max_similarity": 0.95}})
    assert chain.embedding is not None
