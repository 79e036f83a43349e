"""Reading one site's YAML file: the settings, or a message with file, line, key and the fix.

What belongs here: YAML to ``core.site.SiteSettings``, the files that a site file names, and the
refusal of credentials. The file is the same that Dagster loads as a component.
"""

import difflib
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, get_args, get_origin

import yaml
from pydantic import BaseModel, ValidationError

from content_pipeline.core.chain import Chain
from content_pipeline.core.cms_settings import CMS_MODELS
from content_pipeline.core.errors import SiteFileError
from content_pipeline.core.hook_settings import HOOK_MODELS
from content_pipeline.core.identity import digest
from content_pipeline.core.site import SiteSettings
from content_pipeline.core.topics import used_columns
from content_pipeline.site_chain import load_chain

COMPONENT_TYPE = "content_pipeline.ContentSite"

_SECRET_KEYS = {"api_key", "apikey", "password", "application_password", "secret", "token"}
_SECRET_VALUE = re.compile(
    r"\b(?:sk-|gsk_|hf_|ghp_|xai-|AIza)(?=\S*\d)[A-Za-z0-9_-]{16,}"
    r"|://[^/\s:@]+:[^/\s:@]+@|\bBearer\s+\S{16,}"
)

Location = tuple[str | int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Site:
    """A site as declared, with the contents of the files it names."""

    file: Path
    settings: SiteSettings
    chain: Chain = field(repr=False)
    columns: frozenset[str]
    """The columns of the topic table that enter a page."""

    @property
    def table(self) -> Path | None:
        """The topic table's file; None when topics come from a query."""
        name = self.settings.topics.table
        return None if name is None else self.file.parent / name

    @property
    def generation_version(self) -> str:
        """Identity of how this site makes its pages."""
        return digest("generation", self.chain.version, list(self.settings.article.facts.items()))


def load_site(file: Path) -> Site:
    """The site that ``file`` declares. Raises SiteFileError."""
    try:
        text = file.read_text(encoding="utf-8")
    except (OSError, UnicodeError) as error:
        raise SiteFileError(f"{file} cannot be read: {error}") from None
    try:
        root = yaml.compose(text, Loader=yaml.SafeLoader)
        document = yaml.safe_load(text)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        where = f"{file}, line {mark.line + 1}" if mark else str(file)
        problem = getattr(error, "problem", None) or "not YAML"
        raise SiteFileError(f"{where}: {problem}; check quotes, colons and indentation") from None
    except (ValueError, RecursionError):
        # 2026-02-30 and other values that only look like one; nothing is said of which.
        raise SiteFileError(
            f"{file}: a date or number in it does not exist, or it is nested too deeply; put "
            "quotes around text that looks like a date"
        ) from None
    lines = _Lines(file=file, lines=dict(_node_lines(root)))
    _refuse_odd_nodes(root, lines)
    if not isinstance(document, dict) or document.get("type") != COMPONENT_TYPE:
        raise SiteFileError(f"{file}: the file must begin with `type: {COMPONENT_TYPE}`")
    extra = sorted(set(document) - {"type", "attributes", "requirements"})
    if extra:
        raise lines.error(
            (extra[0],), f"unknown key {extra[0]!r}; a site's keys go in `attributes`"
        )
    attributes = document.get("attributes")
    if not isinstance(attributes, dict):
        raise SiteFileError(f"{file}: `attributes` is missing; it holds the site's settings")
    try:
        settings = SiteSettings.model_validate(attributes)
    except ValidationError as error:
        raise _first_error(error, lines) from None
    return site_of(settings, file)


def site_of(settings: SiteSettings, file: Path) -> Site:
    """The site of ``settings`` declared in ``file``, with its prompts. Raises SiteFileError."""
    chain, columns = load_chain(settings, file)
    return Site(file=file, settings=settings, chain=chain, columns=used_columns(settings, columns))


@dataclass(frozen=True, slots=True, kw_only=True)
class _Lines:
    """Where each key of a file stands."""

    file: Path
    lines: Mapping[Location, int]

    def error(self, location: Location, message: str) -> SiteFileError:
        """An error that names the nearest line that exists for ``location``."""
        key = ".".join(str(part) for part in location)
        for length in range(len(location), 0, -1):
            line = self.lines.get(location[:length])
            if line is not None:
                return SiteFileError(f"{self.file}, line {line}, {key}: {message}")
        return SiteFileError(f"{self.file}, {key}: {message}")


def _nodes(root: yaml.Node | None) -> Iterator[tuple[Location, yaml.Node]]:
    """Each node with its place, in the order of the file; one that is used again comes once."""
    waiting: list[tuple[Location, yaml.Node]] = [] if root is None else [((), root)]
    seen: set[int] = set()  # an anchor may be used a billion times, or within itself
    while waiting:
        location, node = waiting.pop()
        if id(node) in seen:
            continue
        seen.add(id(node))
        yield location, node
        inner: list[tuple[Location, yaml.Node]] = []
        if isinstance(node, yaml.MappingNode):
            inner = [((*location, str(key.value)), value) for key, value in node.value]
        elif isinstance(node, yaml.SequenceNode):
            inner = [((*location, index), value) for index, value in enumerate(node.value)]
        waiting += reversed(inner)


def _node_lines(root: yaml.Node | None) -> Iterator[tuple[Location, int]]:
    for location, node in _nodes(root):
        if isinstance(node, yaml.MappingNode):
            for key, _ in node.value:
                yield (*location, str(key.value)), key.start_mark.line + 1
        elif isinstance(node, yaml.SequenceNode):
            for index, value in enumerate(node.value):
                yield (*location, index), value.start_mark.line + 1


def _refuse_odd_nodes(root: yaml.Node | None, lines: _Lines) -> None:
    """Refuse what YAML would swallow (a key given twice) and what must not stand in a file."""
    for location, node in _nodes(root):
        if isinstance(node, yaml.MappingNode):
            names = [str(key.value) for key, _ in node.value]
            for number, name in enumerate(names):
                if _SECRET_VALUE.search(name):
                    raise lines.error(location, _NO_SECRETS)
                if name in names[:number]:
                    raise lines.error(
                        (*location, name), "the key is given twice; remove one of them"
                    )
                if name.lower() in _SECRET_KEYS and location != _COLUMNS:
                    raise lines.error((*location, name), _NO_SECRETS)
        elif isinstance(node, yaml.ScalarNode) and _SECRET_VALUE.search(str(node.value)):
            raise lines.error(location, _NO_SECRETS)


_COLUMNS = ("attributes", "article", "facts")
"""Its keys are columns of the topic table, one of which may well be called "token"."""


_NO_SECRETS = (
    "this looks like a credential, and a site file must hold none. Put it into the environment, "
    "name the variable here (for example `api_key_env`), and change the credential if this file "
    "was ever shared"
)


def _first_error(error: ValidationError, lines: _Lines) -> SiteFileError:
    """One error at a time, in the order of the file, never with the offending value."""
    located = [(_in_file(item["loc"]), item) for item in error.errors(include_input=False)]
    located.sort(key=lambda pair: lines.lines.get(pair[0], 10**9))
    location, item = located[0]
    if item["type"] == "extra_forbidden":
        name = str(location[-1])
        known = _field_names(SiteSettings, item["loc"][:-1])
        close = difflib.get_close_matches(name, known, n=1)
        hint = f"did you mean {close[0]!r}?" if close else f"known keys: {', '.join(known)}"
        return lines.error(location, f"unknown key {name!r}; {hint}")
    if item["type"] == "missing":
        return lines.error(location, f"the key {str(location[-1])!r} is missing; add it")
    message = item["msg"].removeprefix("Value error, ")
    return lines.error(location, message[0].lower() + message[1:])


def _in_file(location: Location) -> Location:
    """The place in the file of an error at ``location`` of the model, which names kinds."""
    if location[:1] == ("cms",) and len(location) > 1:
        return ("attributes", "cms", *location[2:])
    if location[:1] == ("announce",) and len(location) > 2:
        return ("attributes", "announce", location[1], *location[3:])
    return ("attributes", *location)


def _field_names(model: type[BaseModel], location: Location) -> list[str]:
    """The keys that are known at ``location`` of the settings."""
    if location[:1] == ("cms",):
        return list(CMS_MODELS[str(location[1])].model_fields)
    if location[:1] == ("announce",):
        return list(HOOK_MODELS[str(location[2])].model_fields)
    parts = iter(location)
    for part in parts:
        declared = model.model_fields.get(str(part))
        inner = None if declared is None else _model_in(declared.annotation)
        if declared is None or inner is None:
            return []
        if get_origin(declared.annotation) is dict:
            next(parts, None)  # whatever key leads to a value of this model
        model = inner
    return list(model.model_fields)


def _model_in(annotation: Any) -> type[BaseModel] | None:
    for candidate in (annotation, *get_args(annotation)):
        if isinstance(candidate, type) and issubclass(candidate, BaseModel):
            return candidate
    return None
