from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from content_pipeline.core.article import Article
from content_pipeline.core.validation import (
    MAX_SECTIONS,
    ArticleRules,
    Finding,
    validate_article,
)
from content_pipeline_tests.core.samples import article

LAX = ArticleRules(min_words=1, min_meta_description_characters=0, min_sections=1)


def findings(
    written: Article, rules: ArticleRules = LAX, must_state: dict[str, str] | None = None
) -> list[str]:
    found = validate_article(written, rules=rules, must_state=must_state or {})
    return [finding.rule for finding in found]


def states(text: str, value: str) -> bool:
    written = article(introduction=text)
    return not findings(written, must_state={"Fact": value})


def test_a_good_article_has_no_findings() -> None:
    facts = {"Name": "Berlin", "Country": "Germany", "River": "Spree"}
    assert findings(article(), must_state=facts) == []


def of_sections(count: int) -> Article:
    return article(sections=[(f"Heading {number}", "Text.") for number in range(count)])


def of_words(count: int) -> Article:
    return article(
        title="Title", introduction=" ".join(["word"] * (count - 5)), sections=[("one two", "a b")]
    )


LIMITS: list[tuple[str, Any, dict[str, int], int, int]] = [
    ("words", of_words, {"min_words": 20, "max_words": 40}, 20, 40),
    (
        "title_characters",
        lambda count: article(title="t" * count),
        {"max_title_characters": 30},
        3,
        30,
    ),
    (
        "meta_description_characters",
        lambda count: article(meta_description="m" * count),
        {"min_meta_description_characters": 20, "max_meta_description_characters": 60},
        20,
        60,
    ),
    ("sections", of_sections, {"min_sections": 2}, 2, MAX_SECTIONS),
]


@pytest.mark.parametrize(
    ("rule", "make", "limits", "least", "most"), LIMITS, ids=[row[0] for row in LIMITS]
)
def test_a_length_is_allowed_up_to_its_limits_and_not_beyond(
    rule: str, make: Any, limits: dict[str, int], least: int, most: int
) -> None:
    rules = LAX.model_copy(update=limits)
    for count, broken in ((least - 1, True), (least, False), (most, False), (most + 1, True)):
        assert (rule in findings(make(count), rules)) is broken, count


def test_a_finding_names_the_rule_and_the_numbers() -> None:
    found = validate_article(of_words(19), rules=ArticleRules(min_words=20), must_state={})
    assert str(found[0]) == "words: 19 is outside 20 to 3000"


def test_every_broken_rule_is_found_at_once() -> None:
    written = article(
        title="", meta_description="", introduction="TBD", sections=[("", ""), ("", "")]
    )
    assert findings(written, ArticleRules(), {"Name": "Berlin"}) == [
        "words",
        "title_characters",
        "meta_description_characters",
        "empty_section",
        "empty_section",
        "repeated_heading",
        "placeholder",
        "states_fact",
    ]


@pytest.mark.parametrize(
    ("heading", "body"), [("", "Text."), (" \n", "Text."), ("Heading", ""), ("Heading", "\t")]
)
def test_an_empty_section_is_found(heading: str, body: str) -> None:
    assert findings(article(sections=[("One", "Text."), (heading, body)])) == ["empty_section"]


@pytest.mark.parametrize("other", ["Rivers", "rivers", "**Rivers**", "  RIVERS ", "Ｒｉｖｅｒｓ"])
def test_two_sections_under_one_heading_are_found(other: str) -> None:
    written = article(sections=[("Rivers", "One."), ("People", "Two."), (other, "Three.")])
    assert findings(written) == ["repeated_heading"]


@pytest.mark.parametrize(
    "text",
    [
        "Lorem ipsum dolor sit amet.",
        "As an AI, I cannot say.",
        "As an AI language model I do not travel.",
        "as an AI assistant I have no opinion.",
        "As a language model, I have never been there.",
        "As a large language model I cannot know.",
        "[insert name of the river]",
        "It lies on the [Insert river].",
        "TODO: write about rivers.",
        "Population: TBD.",
    ],
)
def test_unfinished_or_refused_text_is_found(text: str) -> None:
    assert findings(article(introduction=text)) == ["placeholder"]
    assert findings(article(sections=[("One", text), ("Two", "Text.")])) == ["placeholder"]
    assert findings(article(meta_description=text)) == ["placeholder"]


@pytest.mark.parametrize(
    "text",
    [
        "The city serves as an airport hub for the region.",
        "It is used as an aid to navigation.",
        "The river acts as an airway for the wind.",
        "The castle stands as a language school now.",
        "Sobre todo: el río.",
        "They inserted a lock into the canal.",
        "The [insertion] was made in 1850.",
    ],
)
def test_ordinary_text_is_not_taken_for_a_placeholder(text: str) -> None:
    assert findings(article(introduction=text)) == []


STATED = [
    ("It has 47 people.", "47"),
    ("The number is 47.", "47"),
    ("The number is 47, says the town.", "47"),
    ("Is it 47?", "47"),
    ("(47)", "47"),
    ("47", "47"),
    ("The years 1947-47 were hard.", "47"),
    ("It has **47** people.", "47"),
    ("It has *4*7 people.", "47"),
    ("An area of 468 km².", "468 km²"),
    ("An area of **468&#32;km**.".replace("&#32;", " "), "468 km"),
    ("An area of 468\N{NO-BREAK SPACE}km².", "468 km²"),
    ("An area of 468\n km².", "468 km²"),
    ("An area of ４６８ km².", "468 km²"),
    ("It has 77,006 people.", "77,006"),
    ("It has 77,006 people.", "77006"),
    ("It has 77006 people.", "77,006"),
    ("It has 1,234,567 people.", "1234567"),
    ("It is 1,234.5 m high.", "1234.5"),
    ("It is -47 degrees cold.", "-47"),
    ("It is \N{MINUS SIGN}47 degrees cold.", "-47"),
    ("In the years 1914\N{EN DASH}1918.", "1914-1918"),
    ("BERLIN IS LARGE", "Berlin"),
    ("Straße", "STRASSE"),
    ("berlin\N{RIGHT SINGLE QUOTATION MARK}s mayor", "Berlin"),
    ("St. John\N{RIGHT SINGLE QUOTATION MARK}s is its capital.", "St. John's"),
    ("Guinea\N{NON-BREAKING HYPHEN}Bissau lies in Africa.", "Guinea-Bissau"),
    ("\N{LEFT DOUBLE QUOTATION MARK}Big Apple\N{RIGHT DOUBLE QUOTATION MARK}", '"Big Apple"'),
    ("known as\N{HORIZONTAL ELLIPSIS}Paris", "Paris"),
    ("London,Paris,Rome", "Paris"),
    ("Its domain is .ad.", ".ad"),
    ("Call +376 first.", "+376"),
    ("The Euro (EUR) is used.", "Euro (EUR)"),
    ("A\\*B is its code.", "A*B"),
    ("snake_case", "snake_case"),
    ("Cafe\N{COMBINING ACUTE ACCENT}", "Café"),
    ("Ca, fr and es are spoken.", "ca, fr"),
    ("東京 は 首都", "東京"),
]

NOT_STATED = [
    ("It has 147 people.", "47"),
    ("It has 470 people.", "47"),
    ("It is 4.7 km long.", "47"),
    ("It is 47.5 km long.", "47"),
    ("It is 47,5 km long.", "47"),
    ("It is 3.47 km long.", "47"),
    ("It is 3,47 km long.", "47"),
    ("It is .47 km long.", "47"),
    ("The 47th street.", "47"),
    ("The A47 road.", "47"),
    ("It is -47 degrees cold.", "47"),
    ("It is \N{MINUS SIGN}47 degrees cold.", "47"),
    ("-47", "47"),
    ("It has 1,234,567 people.", "234"),
    ("It has 1,234,567 people.", "1,234"),
    ("It has 1,234,567 people.", "567"),
    ("It has 12,345 people.", "345"),
    ("It is 1,234.5 m high.", "1,234"),
    ("Berliner live there.", "Berlin"),
    ("Oberlin is elsewhere.", "Berlin"),
    ("example.ad is a domain", ".ad"),
    ("Call 00+376.", "+376"),
    ("", "Berlin"),
    ("Guinea Bissau", "Guinea-Bissau"),
    ("Cafe", "Café"),
    ("An area of 468 km.", "468 km²"),
]


@pytest.mark.parametrize(("text", "value"), STATED)
def test_a_fact_is_stated_however_it_is_set(text: str, value: str) -> None:
    assert states(text, value)


@pytest.mark.parametrize(("text", "value"), NOT_STATED)
def test_a_fact_is_not_stated_by_a_part_of_another(text: str, value: str) -> None:
    written = article(
        title="Title", introduction=text, sections=(("One", "Text."), ("Two", "Text."))
    )
    assert findings(written, must_state={"Fact": value}) == ["states_fact"]


def test_a_fact_may_be_stated_in_any_part_a_reader_sees() -> None:
    for fields in (
        {"title": "The number 4711"},
        {"introduction": "The number 4711."},
        {"sections": [("The number 4711", "Text."), ("Two", "Text.")]},
        {"sections": [("One", "The number 4711."), ("Two", "Text.")]},
    ):
        assert findings(article(**fields), must_state={"Number": "4711"}) == []


def test_a_fact_in_the_description_alone_is_not_on_the_page() -> None:
    written = article(meta_description="The number 4711 is only here, where no reader looks.")
    assert findings(written, must_state={"Number": "4711"}) == ["states_fact"]


@given(value=st.integers(0, 10**12), other=st.integers(0, 10**12))
def test_one_whole_number_never_states_another(value: int, other: int) -> None:
    for text in (f"There are {other} of them.", f"There are {other:,} of them."):
        for wanted in (str(value), f"{value:,}"):
            assert states(text, wanted) is (value == other)


@given(
    value=st.text(
        alphabet=st.characters(
            categories=["L", "Nd", "Zs", "Po", "Sc"], exclude_characters="*_`\\"
        ),
        min_size=1,
        max_size=30,
    ).filter(str.strip)
)
def test_any_fact_is_stated_by_a_sentence_that_holds_it(value: str) -> None:
    assert states(f"It says {value.strip()} on the sign", value)


def test_a_finding_quotes_the_fact_and_never_the_models_text() -> None:
    written = article(introduction="Zanzibar is an island. TBD", title="Zanzibar" * 20)
    found = validate_article(written, rules=LAX, must_state={"River": "Limmat"})
    shown = "; ".join(map(str, found))
    assert "states_fact: the page does not state River: 'Limmat'" in shown
    assert "Zanzibar" not in shown
    assert all(isinstance(finding, Finding) for finding in found)


@pytest.mark.parametrize(
    "fields",
    [
        {"min_words": 101, "max_words": 100},
        {"min_words": 4000},
        {"min_meta_description_characters": 61, "max_meta_description_characters": 60},
        {"min_sections": 0},
        {"min_sections": MAX_SECTIONS + 1},
        {"min_words": 0},
        {"max_title_characters": 9},
        {"minimum_words": 5},
    ],
    ids=str,
)
def test_rules_that_no_article_can_meet_are_refused_before_anything_is_paid(
    fields: dict[str, int],
) -> None:
    with pytest.raises(ValidationError):
        ArticleRules.model_validate(fields)


def test_limits_may_meet() -> None:
    rules = ArticleRules(min_words=100, max_words=100)
    assert findings(of_words(100), rules.model_copy(update={"min_sections": 1})) == []
