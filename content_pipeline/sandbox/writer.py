"""Writing an article from the facts in a prompt: the sandbox's stand-in for a language model.

What belongs here: choosing and joining phrases, reproducibly from a seed, so that a few hundred
pages do not read alike and the same request always gives the same text. Every fact's value is
stated to the letter. The facts are data: no value is ever used as a template or an instruction.
"""

import random
from collections.abc import Mapping, Sequence

from content_pipeline.core.article import Article, Section
from content_pipeline.core.identity import digest
from content_pipeline.sandbox import phrases
from content_pipeline.sandbox.facts import Fact, facts_in, facts_of_words, subject_of

MIN_WORDS = 225
"""Thin records are brought up to this: a site's usual lower limit is 200 words."""
FRAME_WORDS = 50
"""Words of title, introduction, headings and the closing lead-in, at least."""
MOST_SECTIONS = 5
FEWEST_REMARKS = 2
TITLE_LENGTH = 70
HEADING_LENGTH = 80
META_LENGTH = 160
LISTED_FACTS = 16
"""More facts than this are stated once only, or the page would pass 400 words needlessly."""


def write_article(prompt: str, seed: int = 0) -> Article:
    """An article on the facts in ``prompt``, or on the prompt's own words when it has none."""
    facts = facts_in(prompt) or facts_of_words(prompt)
    subject = subject_of(facts)
    name = subject.value if subject else "this subject"
    draw = random.Random(digest("article", seed, prompt))  # noqa: S311  # seeded on purpose
    pen = _Pen(name, draw)
    kinds = _kinds(facts)
    opening, stated = pen.opening(kinds)
    remaining = [fact for fact in facts if fact != subject and fact not in stated]
    sections = [pen.section(part, parts, kinds) for part, parts in _parts(remaining, kinds)]
    listed = [fact for fact in facts if fact.is_short]
    if 1 < len(listed) <= LISTED_FACTS:
        sections.append(pen.overview(listed))
    return Article(
        title=pen.title(),
        meta_description=pen.meta_description([fact for fact in facts if fact != subject]),
        introduction=opening,
        sections=pen.closed(sections, sum(len(s.body_markdown.split()) for s in sections)),
    )


def _kinds(facts: Sequence[Fact]) -> dict[Fact, str]:
    """The kind of every fact; all are generic (empty) unless the row is a country's."""
    kinds = {fact: phrases.COUNTRY_KINDS.get(fact.key, "") for fact in facts}
    is_country = len(phrases.TELLING_KINDS & set(kinds.values())) > 1
    return kinds if is_country else dict.fromkeys(facts, "")


def _parts(facts: Sequence[Fact], kinds: Mapping[Fact, str]) -> list[tuple[str, list[Fact]]]:
    """The facts grouped into named parts of the page; no part is empty."""
    placed = {
        part: [fact for kind in members for fact in facts if kinds[fact] == kind]
        for part, members in phrases.COUNTRY_PARTS.items()
    }
    other = [fact for fact in facts if not kinds[fact]]
    if any(placed.values()):
        placed["other"] = other
    else:
        half = (len(other) + 1) // 2
        placed |= {"essentials": other[:half], "detail": other[half:]}
    return [(part, members) for part, members in placed.items() if members]


def _plain(text: str, length: int) -> str:
    """``text`` as one line without tags or control characters, at most ``length`` characters."""
    printable = "".join(c if c.isprintable() else " " for c in text if c not in "<>")
    line = " ".join(printable.split())
    return line if len(line) <= length else line[: length - 1].rstrip() + "…"


def _spoken(label: str) -> str:
    """``label`` inside a sentence: ``Internet domain`` is lowered, ``ISO code`` is not."""
    return label[:1].lower() + label[1:] if label[1:2].islower() else label


class _Pen:
    """Draws phrases about one subject; never the same twice running."""

    def __init__(self, name: str, draw: random.Random) -> None:
        self._name = name
        self._draw = draw
        self._last = ""

    def opening(self, kinds: Mapping[Fact, str]) -> tuple[str, tuple[Fact, ...]]:
        """The first paragraph, and the facts that it states besides the subject's name."""
        usable = {k: f for f, k in kinds.items() if k and f.is_short and not f.is_nothing}
        capital, continent = usable.get("capital"), usable.get("continent")
        if capital and continent:
            stated: tuple[Fact, ...] = (capital, continent)
            first = self._draw.choice(phrases.COUNTRY_OPENINGS).format(
                name=self._name, capital=capital.value, continent=continent.value
            )
        else:
            stated = ()
            first = self._draw.choice(phrases.OPENINGS).format(name=self._name)
        return " ".join([first, *self._draw.sample(phrases.INTRODUCTIONS, 2)]), stated

    def section(self, part: str, facts: Sequence[Fact], kinds: Mapping[Fact, str]) -> Section:
        """One part of the page: a lead-in, then a sentence per fact."""
        sentences = [self._lead_in(part)]
        for position, fact in enumerate(facts):
            sentences.append(self._statement(fact, kinds[fact], naming=position == 0))
        return Section(heading=self._heading(part), body_markdown=" ".join(sentences))

    def overview(self, facts: Sequence[Fact]) -> Section:
        """All short facts once more, as a list."""
        lines = "\n".join(f"- **{fact.label}:** {fact.value}" for fact in facts)
        return Section(
            heading=self._heading("list"), body_markdown=f"{self._lead_in('list')}\n\n{lines}"
        )

    def closed(self, sections: list[Section], words: int) -> list[Section]:
        """``sections`` with closing ones: as many remarks as a readable length needs."""
        taken: list[str] = []
        for remark in self._draw.sample(phrases.REMARKS, len(phrases.REMARKS)):
            if len(taken) >= FEWEST_REMARKS and words >= MIN_WORDS - FRAME_WORDS:
                break
            taken.append(remark)
            words += len(remark.split())
        if len(sections) == MOST_SECTIONS:
            last = sections[-1]
            body = f"{last.body_markdown}\n\n{' '.join(taken)}"
            return [*sections[:-1], Section(heading=last.heading, body_markdown=body)]
        parts = ("closing",) if len(sections) > 1 else ("reading", "closing")
        share = -(-len(taken) // len(parts))
        return sections + [
            Section(
                heading=self._heading(part),
                body_markdown=" ".join(
                    [self._lead_in(part), *taken[at * share : (at + 1) * share]]
                ),
            )
            for at, part in enumerate(parts)
        ]

    def title(self) -> str:
        template = self._draw.choice(phrases.TITLES)
        return template.format(
            name=_plain(self._name, TITLE_LENGTH - len(template.format(name="")))
        )

    def meta_description(self, facts: Sequence[Fact]) -> str:
        """One sentence of 50 to 160 characters that names the first few labels."""
        labels = ", ".join(_plain(_spoken(fact.bare_label), 24) for fact in facts[:3])
        text = self._draw.choice(phrases.META).format(
            name=_plain(self._name, 40), labels=labels or "the main points"
        )
        return _plain(text, META_LENGTH)

    def _lead_in(self, part: str) -> str:
        return self._draw.choice(phrases.LEAD_INS[part]).format(name=self._name)

    def _heading(self, part: str) -> str:
        template = self._draw.choice(phrases.HEADINGS[part])
        return _plain(template.format(name=_plain(self._name, 50)), HEADING_LENGTH)

    def _statement(self, fact: Fact, kind: str, *, naming: bool) -> str:
        """One sentence with the fact's value; ``naming`` asks for the subject's name in it."""
        label = _spoken(fact.bare_label)
        plural = label.endswith("s") and not label.endswith(("ss", "us", "is"))
        value = fact.value
        if fact.unit and not any(character.isalpha() for character in value):
            value = f"{value} {fact.unit}"
        choices = [t for t in _templates(fact, kind) if "{name}" in t or not naming]
        self._last = self._draw.choice([t for t in choices if t != self._last] or choices)
        sentence = self._last.format(
            name=self._name, label=label, value=value, verb="are" if plural else "is"
        )
        return sentence if sentence.endswith((".", "!", "?", "…")) else f"{sentence}."


def _templates(fact: Fact, kind: str) -> tuple[str, ...]:
    """The phrasings that suit the value of ``fact``."""
    if fact.is_nothing:
        return phrases.NOTHING
    if not fact.is_short:
        return phrases.LONG
    if not kind:
        return phrases.GENERIC
    plural = f"{kind}s" if "," in fact.value else kind
    return phrases.COUNTRY.get(plural, phrases.COUNTRY[kind])
