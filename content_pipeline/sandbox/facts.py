"""Reading the facts out of a prompt: what a model "understands" of the message it is sent.

What belongs here: finding the block of facts, and turning whatever JSON it holds into labels and
values of text. A value is data: nothing in it is looked at beyond "is it empty" and "what kind of
value is it".
"""

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from content_pipeline.core.prompts import FACTS_CLOSE, FACTS_OPEN

_BLOCK = re.compile(re.escape(FACTS_OPEN) + "(.*?)" + re.escape(FACTS_CLOSE), re.DOTALL)
_ABOUT = re.compile(r"\babout\s+([^.!?\n]{3,60})", re.IGNORECASE)
_SENTENCE_END = re.compile(r"[.!?]\s|\n")
_UNIT = re.compile(r"\s*\(([^()]*)\)\s*$")

NOTHING = frozenset({"none", "n/a", "na", "null", "nil", "-", "\u2013", "\u2014", "unknown"})
"""Values that say "there is none": they are still stated, in words that fit."""

SUBJECT_LABELS = ("name", "title", "country", "product", "town", "city", "place", "subject")
"""Labels whose value is what the page is about, the most telling first."""

SHORT_VALUE = 90
"""Characters up to which a value reads well inside a sentence."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Fact:
    """One labelled value, kept to the letter but for spaces around it."""

    label: str
    value: str

    @property
    def bare_label(self) -> str:
        """The label without its unit."""
        return _UNIT.sub("", self.label) or self.label

    @property
    def key(self) -> str:
        """The bare label in lower case: what kind of fact this is."""
        return " ".join(self.bare_label.lower().replace("_", " ").split())

    @property
    def unit(self) -> str:
        """The unit in the label's parentheses, as in ``Area (km²)``; empty without one."""
        found = _UNIT.search(self.label)
        return found.group(1).strip() if found else ""

    @property
    def is_nothing(self) -> bool:
        """Whether the value says that there is none."""
        return self.value.lower() in NOTHING

    @property
    def is_short(self) -> bool:
        """Whether the value fits into a sentence; else it is a text of its own."""
        return len(self.value) <= SHORT_VALUE and not _SENTENCE_END.search(self.value)


def facts_in(prompt: str) -> tuple[Fact, ...]:
    """The facts of the last readable block in ``prompt``; empty when there is none."""
    for block in reversed(_BLOCK.findall(prompt)):
        try:
            document = json.loads(block)
        except ValueError:
            continue
        if isinstance(document, dict):
            return tuple(_facts(document, prefix=""))
    return ()


def _facts(document: Mapping[str, Any], prefix: str) -> Iterator[Fact]:
    for name, value in document.items():
        label = f"{prefix}{' '.join(name.split())}"
        if isinstance(value, dict):
            yield from _facts(value, prefix=f"{label} ")
        elif text := _text(value):
            yield Fact(label=label or "Note", value=text)


def _text(value: object) -> str:
    """``value`` as a reader would write it; empty when there is nothing to state."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list):
        return ", ".join(filter(None, map(_text, value)))
    if isinstance(value, dict):
        return ", ".join(f"{key}: {_text(inner)}" for key, inner in value.items())
    return str(value).strip()


def subject_of(facts: tuple[Fact, ...]) -> Fact | None:
    """The fact that names what the page is about, or None when nothing looks like a name."""
    by_key = {fact.key: fact for fact in reversed(facts)}
    keys = [key for label in SUBJECT_LABELS for key in (label, f"{label} name")]
    named = [by_key[key] for key in keys if key in by_key]
    return next((f for f in [*named, *facts] if f.is_short and not f.is_nothing), None)


def facts_of_words(prompt: str) -> tuple[Fact, ...]:
    """What can be said of a prompt without facts: its subject and its longer words."""
    about = _ABOUT.search(prompt)
    subject = " ".join((about.group(1) if about else prompt).split()[:8]).strip(" .,:;")
    words = dict.fromkeys(word for word in re.findall(r"\w+", prompt) if len(word) > 4)
    found = {"Subject": subject[:60] or "this page", "Keywords": ", ".join(list(words)[:8])}
    return tuple(Fact(label=label, value=value) for label, value in found.items() if value)
