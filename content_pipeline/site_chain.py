"""The chain of a site: the prompts and output schemas that its file names, read and checked.

What belongs here: files beside a site file to ``core.chain.Chain``. The YAML itself is
``site_files``'s.
"""

import json
from pathlib import Path
from typing import Any

import jsonschema

from content_pipeline.core.chain import ARTICLE, Chain, Step, StepRole, schema_of
from content_pipeline.core.errors import SiteFileError
from content_pipeline.core.generation_settings import GenerationStep
from content_pipeline.core.prompts import PromptError, template_columns
from content_pipeline.core.site import SiteSettings


def load_chain(settings: SiteSettings, file: Path) -> tuple[Chain, frozenset[str]]:
    """The chain of the site declared in ``file``, and the columns that its prompts use.

    Raises SiteFileError.
    """
    steps: list[Step] = []
    columns: frozenset[str] = frozenset()
    for declared in _declared_steps(settings):
        template = _read_beside(file, declared.prompt, "the prompt")
        earlier = tuple(step.name for step in steps)
        try:
            used = template_columns(template, tuple(settings.article.facts))
            columns |= template_columns(template, tuple(settings.article.facts), earlier)
        except PromptError as error:
            raise SiteFileError(f"{file.parent / declared.prompt}: {error}") from None
        vector = next((step.name for step in steps if step.role is StepRole.EMBEDDING), None)
        if vector in used:
            raise SiteFileError(
                f"{file.parent / declared.prompt}: {vector!r} is a vector, which no prompt can use"
            )
        steps.append(_step(settings, declared, template, file))
    clash = sorted({step.name for step in steps[:-1]} & columns)
    if clash:
        raise SiteFileError(
            f"{file}: {clash[0]!r} is a column and a step; rename the step to keep prompts clear"
        )
    assemble = settings.generation.assemble
    assembly = None if assemble is None else {str(name): to for name, to in assemble.items()}
    return Chain(steps=tuple(steps), assembly=assembly), columns


def _declared_steps(settings: SiteSettings) -> tuple[GenerationStep, ...]:
    """The site's steps; without any, the one call that writes the whole article."""
    one = GenerationStep(name=ARTICLE, prompt=settings.article.prompt, output=ARTICLE)
    return settings.generation.steps or (one,)


def _step(settings: SiteSettings, declared: GenerationStep, template: str, file: Path) -> Step:
    generation = settings.generation
    model = declared.model or generation.model
    provided = schema_of(declared.output)
    own_temperature = declared.temperature
    if declared.is_embedding:
        return _embedding(settings, declared, template, model)
    return Step(
        name=declared.name,
        role=StepRole.REVIEW if declared.output == StepRole.REVIEW else StepRole.CONTENT,
        template=template,
        model=model,
        model_identity=settings.model_identity(model),
        schema_name=declared.name if provided is None else declared.output,
        schema=_schema_file(file, declared.output) if provided is None else provided,
        max_output_tokens=declared.max_output_tokens or generation.max_output_tokens,
        temperature=generation.temperature if own_temperature is None else own_temperature,
        retries=declared.retries,
    )


def _embedding(settings: SiteSettings, declared: GenerationStep, template: str, model: str) -> Step:
    return Step(
        name=declared.name,
        role=StepRole.EMBEDDING,
        template=template,
        model=model,
        model_identity=settings.model_identity(model),
        schema_name=declared.output,
        schema={},
        max_output_tokens=0,
        temperature=None,
        dimensions=declared.dimensions,
        retries=declared.retries,
    )


def _schema_file(file: Path, name: str) -> dict[str, Any]:
    text = _read_beside(file, name, "the output schema")
    try:
        schema = json.loads(text)
        jsonschema.Draft202012Validator.check_schema(schema)
    except json.JSONDecodeError as error:
        raise SiteFileError(f"{file.parent / name}, line {error.lineno}: {error.msg}") from None
    except jsonschema.SchemaError as error:
        raise SiteFileError(f"{file.parent / name} is no JSON schema: {error.message}") from None
    if not isinstance(schema, dict) or schema.get("type") != "object":
        raise SiteFileError(f"{file.parent / name}: an output must be of `type: object`")
    return schema


def _read_beside(file: Path, name: str, what: str) -> str:
    """The text of a file that the site file names."""
    try:
        return (file.parent / name).read_text(encoding="utf-8")
    except (OSError, UnicodeError) as error:
        raise SiteFileError(
            f"{file}: {what} {name!r} cannot be read ({error}); put it beside the site file"
        ) from None
