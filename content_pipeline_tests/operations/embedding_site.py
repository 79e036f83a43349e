"""Small sites whose pages are made by a chain with a step that embeds.

What belongs here: the chain, its files, and putting a bench on it.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from content_pipeline_tests.operations.bench import Bench
from content_pipeline_tests.operations.small_site import settings_of, site_of

OUTLINE = {"name": "outline", "prompt": "outline.md", "output": "outline.json"}
PAGE = {"name": "page", "prompt": "page.md"}
VECTOR = {
    "name": "vector",
    "prompt": "vector.md",
    "output": "embedding",
    "model": "text-embedding-3-small",
}
STEPS = (OUTLINE, PAGE, VECTOR)

FILES = {
    "outline.md": "Outline a page about {{ name }}. {{ facts }}",
    "outline.json": (
        '{"type": "object", "properties": {"points": {"type": "string"}}, '
        '"required": ["points"], "additionalProperties": false}'
    ),
    "page.md": "Write about {{ name }} along {{ outline }}. {{ facts }}",
    "vector.md": "{{ page }}",
    "opinion.md": "Judge {{ page }}. {{ facts }}",
}
ABOUT_RIVERS = {"vector.md": "The river {{ river }} near {{ name }}"}
"""A text that a test decides on by two columns, without a word of the model's."""


def put_on(
    bench: Bench,
    steps: Sequence[Mapping[str, Any]] = STEPS,
    *,
    limit: float | None = None,
    files: Mapping[str, str] | None = None,
    **changes: Any,
) -> Bench:
    """``bench`` with pages made by ``steps`` and compared up to ``limit``."""
    rules = {"min_words": 60, "max_similarity": limit}
    article = {"rules": rules, **changes.pop("article", {})}
    bench.changes = {"generation": {"steps": list(steps)}, "article": article, **changes}
    bench.site = site_of(settings_of(bench.name, **bench.changes), files=FILES | dict(files or {}))
    return bench


def received(bench: Bench) -> tuple[int, int, int]:
    """Completions, embeddings and look-ups that the provider was asked for."""
    counts = bench.sandbox.truth()["requests_by_operation"]
    return counts.get("create", 0), counts.get("embed", 0), counts.get("list", 0)


def strike_embedding(bench: Bench, kind: str, **more: Any) -> None:
    """Let the provider fail at embeddings only."""
    bench.strike(kind, match={"operation": "embed", **more.pop("match", {})}, **more)
