"""The report as one file: it needs nothing, obeys nobody's text, and can be read without seeing."""

import base64
import hashlib
import re
from html.parser import HTMLParser

import pytest

from content_pipeline.reporting.html import render
from content_pipeline_tests.reporting.samples import EMPTY, HOSTILE, REPORT


class Reader(HTMLParser):
    """The elements of a page with their attributes, in order, and its text."""

    def __init__(self) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        if self.lasttag != "style":
            self.text += data

    def named(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.elements if name == tag]


def read(page: bytes) -> Reader:
    reader = Reader()
    reader.feed(page.decode())
    return reader


@pytest.fixture(scope="module")
def page() -> Reader:
    return read(render(REPORT))


def test_it_loads_and_runs_nothing(page: Reader) -> None:
    assert not {"script", "link", "img", "iframe", "object"} & {tag for tag, _ in page.elements}
    for tag, attributes in page.elements:
        assert not {"src", "href", "style", "onclick", "onload"} & set(attributes), tag
    text = render(REPORT).decode()
    assert "http" not in text.replace('http-equiv="', "")
    assert "url(" not in text


def test_its_policy_allows_its_own_style_alone(page: Reader) -> None:
    (policy,) = [meta["content"] for meta in page.named("meta") if "http-equiv" in meta]
    (style,) = re.findall(r"<style>(.*?)</style>", render(REPORT).decode(), flags=re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(style.encode()).digest()).decode()
    assert policy == (
        f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"
    )


def test_names_of_topics_and_sites_are_shown_and_never_obeyed(page: Reader) -> None:
    assert page.text.count(HOSTILE) >= 3  # title, heading, queue


def test_beside_each_plot_stand_its_numbers(page: Reader) -> None:
    plots = page.named("svg")
    assert len(plots) == 7
    assert all(plot["role"] == "img" and plot["aria-label"] for plot in plots)
    captions = [
        attributes["aria-label"]
        for attributes in page.named("div")
        if (attributes.get("aria-label") or "").endswith(", the numbers")
    ]
    assert len(captions) == len(plots)


def test_tables_say_what_their_rows_and_columns_are(page: Reader) -> None:
    scopes = {attributes.get("scope") for attributes in page.named("th")}
    assert scopes == {"col", "row"}
    assert len(page.named("caption")) == len(page.named("table"))


def test_what_is_too_wide_for_a_phone_scrolls_by_itself(page: Reader) -> None:
    assert {"name": "viewport", "content": "width=device-width, initial-scale=1"} in page.named(
        "meta"
    )
    wide = [each for each in page.named("div") if each.get("class") == "wide"]
    assert len(wide) == len(page.named("svg")) + len(page.named("table"))
    assert all(each["tabindex"] == "0" and each["role"] == "region" for each in wide)


def test_warnings_come_first_and_in_words(page: Reader) -> None:
    warned = page.text.index("look here The oldest due page has waited.")
    assert warned < page.text.index("good Nothing is uncertain.")
    assert warned < page.text.index("Dollars per day by class")


def test_light_dark_and_paper_are_all_provided_for() -> None:
    text = render(REPORT).decode()
    assert "prefers-color-scheme: dark" in text
    assert "@media print" in text


def test_equal_reports_are_equal_files() -> None:
    assert render(REPORT) == render(REPORT)


def test_a_site_without_anything_has_a_page_too() -> None:
    empty = read(render(EMPTY))
    assert empty.named("svg") == []
    assert empty.text.count("Nothing.") == 11
