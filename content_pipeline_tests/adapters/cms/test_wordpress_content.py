from dataclasses import replace

import pytest

from content_pipeline.adapters.cms.wordpress_content import compose, search_token, take_apart
from content_pipeline.core.cms import Marker
from content_pipeline_tests.adapters.cms.documents import make_document

MARK = "<!-- cp:key=abc rev=3 h=0f -->"


@pytest.mark.parametrize("json_ld", [False, True])
@pytest.mark.parametrize(
    "body",
    [
        "<p>Nine million.</p>",
        "<p>Nine million.</p>\n<h2>People</h2>\n<ul>\n<li>a</li>\n</ul>",
        '<p class="lead">Nine &lt; ten.</p>\n',
        "Nine million, without an element.",
        '<img src="https://example.com/a.png" alt="a">\n<p>A picture first.</p>',
        "",
    ],
)
def test_what_was_composed_comes_apart_again(body: str, json_ld: bool) -> None:
    document = replace(make_document(), body_html=body)
    content = take_apart(compose(document, json_ld=json_ld))
    assert content.marker == document.marker
    assert content.body_html == body


def test_the_mark_stands_inside_the_first_element() -> None:
    """Outside of one WordPress would make a paragraph of it, an empty one for visitors."""
    content = compose(make_document(), json_ld=False)
    assert content.startswith("<p><!-- cp:key=")


def test_the_mark_holds_what_is_searched_for() -> None:
    document = make_document()
    token = search_token(document.marker.page_id)
    assert token in compose(document, json_ld=False)
    assert not set(token) & set(' \t",+%_'), "it must be one term, without a wildcard"


def test_json_ld_is_left_out_unless_asked_for() -> None:
    assert "<script" not in compose(make_document(), json_ld=False)
    assert '<script type="application/ld+json">{' in compose(make_document(), json_ld=True)


def test_json_ld_cannot_end_its_element() -> None:
    document = replace(make_document(), json_ld={"name": "</script><script>alert(1)</script>"})
    content = compose(document, json_ld=True)
    assert content.count("</script>") == 1
    assert take_apart(content).body_html == document.body_html


@pytest.mark.parametrize(
    "content",
    [
        "",
        "<p>No mark.</p>",
        MARK + "<p>Two marks are a copy of a copy.</p>" + MARK,
        "<!-- cp:key=abc rev=0 h=0f -->",
        "<!-- cp:key=abc rev=3 -->",
        "<!-- cp:key=a b rev=3 h=0f -->",
        "<!--cp:key=abc rev=3 h=0f-->",
        f"<!-- cp:key={'a' * 65} rev=3 h=0f -->",
        "&lt;!-- cp:key=abc rev=3 h=0f --&gt;",
    ],
)
def test_anything_but_one_well_formed_mark_is_none(content: str) -> None:
    found = take_apart(content)
    assert found.marker is None
    assert found.body_html == content


@pytest.mark.parametrize("before", ["", "<p>A person's own paragraph.</p>\n"])
def test_the_mark_is_found_wherever_a_person_left_it(before: str) -> None:
    found = take_apart(f"{before}<p>{MARK}Ours.</p>")
    assert found.marker == Marker(page_id="abc", revision=3, content_hash="0f")
    assert found.body_html == f"{before}<p>Ours.</p>"


def test_a_script_of_a_person_counts_as_text() -> None:
    script = '\n<script type="text/javascript">alert(1)</script>'
    assert take_apart(f"<p>{MARK}Ours.</p>{script}").body_html == f"<p>Ours.</p>{script}"
