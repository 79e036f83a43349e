import json

import pytest

from content_pipeline.core.prompts import FACTS_CLOSE, FACTS_OPEN
from content_pipeline.sandbox.facts import Fact, facts_in, facts_of_words, subject_of
from content_pipeline_tests.sandbox.asking import ICELAND, KETTLE, SWITZERLAND, prompt_for


def fact(label: str, value: str) -> Fact:
    return Fact(label=label, value=value)


def block(document: object) -> str:
    return f"{FACTS_OPEN}\n{json.dumps(document)}\n{FACTS_CLOSE}"


@pytest.mark.parametrize("facts", [SWITZERLAND, ICELAND, KETTLE])
def test_labels_and_values_come_out_as_they_went_in(facts: dict[str, str]) -> None:
    assert {each.label: each.value for each in facts_in(prompt_for(facts))} == facts


@pytest.mark.parametrize(
    ("value", "read"),
    [
        ("8,847,037", "8,847,037"),
        ("  Bern \n", "Bern"),
        (8847037, "8847037"),
        (4.5, "4.5"),
        (True, "yes"),
        (False, "no"),
        (["Germany", "", None, "Italy"], "Germany, Italy"),
        ([{"a": 1}, "b"], "a: 1, b"),
        ("</source_facts>", "</source_facts>"),
        ('say "hi" {name}', 'say "hi" {name}'),
    ],
)
def test_any_json_value_becomes_text(value: object, read: str) -> None:
    escaped = block({"X": value}).replace('</source_facts>"', '\\u003c/source_facts>"')
    assert facts_in(escaped) == (fact("X", read),)


@pytest.mark.parametrize("value", ["", "  ", None, [], [""], {}])
def test_a_value_without_text_is_no_fact(value: object) -> None:
    assert facts_in(block({"X": value, "Y": "1"})) == (fact("Y", "1"),)


def test_nested_values_are_labelled_by_their_path() -> None:
    assert facts_in(block({"Size": {"Width": 3, "Height": 4}})) == (
        fact("Size Width", "3"),
        fact("Size Height", "4"),
    )


@pytest.mark.parametrize(
    "prompt",
    ["", "no block", f"{FACTS_OPEN}not json{FACTS_CLOSE}", f"{FACTS_OPEN}[1]{FACTS_CLOSE}", "{}"],
)
def test_a_prompt_without_a_readable_block_has_no_facts(prompt: str) -> None:
    assert facts_in(prompt) == ()


def test_the_last_block_counts() -> None:
    prompt = f"Example: {block({'Name': 'Oslo'})}\nYours: {block({'Name': 'Bern'})}"
    assert facts_in(prompt) == (fact("Name", "Bern"),)


def test_markers_named_in_the_instructions_do_not_hide_the_block() -> None:
    prompt = f"The facts between {FACTS_OPEN} and {FACTS_CLOSE} count.\n{block({'Name': 'Oslo'})}"
    assert facts_in(prompt) == (fact("Name", "Oslo"),)


@pytest.mark.parametrize(
    ("label", "key", "unit"),
    [
        ("Area (km²)", "area", "km²"),
        ("Internet  domain", "internet domain", ""),
        ("calling_code", "calling code", ""),
        ("(odd)", "(odd)", "odd"),
        ("Rate (a) (b)", "rate (a)", "b"),
    ],
)
def test_a_label_tells_its_kind_and_unit(label: str, key: str, unit: str) -> None:
    assert (fact(label, "1").key, fact(label, "1").unit) == (key, unit)


@pytest.mark.parametrize("value", ["none", "None", "N/A", "-", "—", "unknown"])
def test_words_for_nothing_are_recognised(value: str) -> None:
    assert fact("X", value).is_nothing
    assert not fact("X", f"{value} at all").is_nothing


@pytest.mark.parametrize(
    ("value", "short"),
    [("Bern", True), ("x" * 90, True), ("x" * 91, False), ("One. Two", False), ("a\nb", False)],
)
def test_a_text_of_its_own_does_not_count_as_short(value: str, short: bool) -> None:
    assert fact("X", value).is_short is short


@pytest.mark.parametrize(
    ("labels", "subject"),
    [
        (["Capital", "Name"], "Name"),
        (["Price", "Product name"], "Product name"),
        (["Country", "Name"], "Name"),
        (["Sku", "Price"], "Sku"),
    ],
)
def test_the_most_telling_label_names_the_subject(labels: list[str], subject: str) -> None:
    found = subject_of(tuple(fact(label, f"value of {label}") for label in labels))
    assert found is not None
    assert found.label == subject


def test_a_long_or_empty_name_is_passed_over() -> None:
    facts = (fact("Name", "none"), fact("Title", "A. Long. Text."), fact("Sku", "A-17"))
    assert subject_of(facts) == facts[2]
    assert subject_of(facts[:2]) is None


@pytest.mark.parametrize(
    ("prompt", "subject"),
    [
        ("Write an article about alpine cheese. Keep it short.", "alpine cheese"),
        ("Steam engines", "Steam engines"),
        ("", "this page"),
        ("?!", "?!"),
    ],
)
def test_a_prompt_without_facts_is_about_its_own_words(prompt: str, subject: str) -> None:
    assert facts_of_words(prompt)[0] == fact("Subject", subject)
