import html
import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from content_pipeline.core.article import Article, Section
from content_pipeline.core.cms import Document
from content_pipeline.core.identity import content_hash
from content_pipeline.core.rendering import (
    ALLOWED_TAGS,
    plain_text,
    render_body,
    render_document,
)
from content_pipeline_tests.core.hostile_text import PAYLOADS, Judge

pytestmark = pytest.mark.oldest


def article(**changes: object) -> Article:
    content: dict[str, object] = {
        "title": "Austria",
        "meta_description": "Mountains, rivers and a capital on the Danube.",
        "introduction": "Austria lies in *Central* Europe.",
        "sections": [Section(heading="People", body_markdown="Nine million.")],
    }
    return Article.model_validate(content | changes)


def body(markdown: str) -> str:
    return render_body(article(introduction=markdown, sections=[]))


def document(content: Article) -> Document:
    return render_document(
        content,
        page_id="a" * 32,
        revision=3,
        site_title="Countries",
        language="en",
        path="/austria/",
        url="https://example.com/austria/",
    )


# --- the body -----------------------------------------------------------------------------------


def test_a_body_is_the_introduction_and_each_section_under_an_h2() -> None:
    assert render_body(article()) == (
        "<p>Austria lies in <em>Central</em> Europe.</p>\n<h2>People</h2>\n<p>Nine million.</p>"
    )


@pytest.mark.parametrize(
    ("markdown", "expected"),
    [
        ("**bold** and `code`", "<p><strong>bold</strong> and <code>code</code></p>"),
        ("- a\n- b", "<ul>\n<li>a</li>\n<li>b</li>\n</ul>"),
        ("3. a\n4. b", '<ol start="3">\n<li>a</li>\n<li>b</li>\n</ol>'),
        ("> wise", "<blockquote>\n<p>wise</p>\n</blockquote>"),
        ("```python\nx < 1\n```", "<pre><code>x &lt; 1\n</code></pre>"),
        ("    indented", "<pre><code>indented\n</code></pre>"),
        ("a\n\n---\n\nb", "<p>a</p>\n<hr>\n<p>b</p>"),
        ("AT&T &amp; Co &copy;", "<p>AT&amp;T &amp; Co ©</p>"),
        ("5 < 6 > 4", "<p>5 &lt; 6 &gt; 4</p>"),
        ("a<br>b<BR />c", "<p>a<br>\nb<br>\nc</p>"),
        ("<b>raw</b>", "<p>&lt;b&gt;raw&lt;/b&gt;</p>"),
        ("one\r\ntwo", "<p>one\ntwo</p>"),
        ("ab\u202ecd&#x202e;ef&#x200b;", "<p>abcdef</p>"),
        ("", ""),
    ],
)
def test_markdown_becomes_the_html_a_reader_expects(markdown: str, expected: str) -> None:
    assert body(markdown) == expected


def test_a_table_keeps_its_cells_and_loses_its_styles() -> None:
    judge = Judge(body("| a | b |\n|:-:|---|\n| 1<br>2 | **3** |"))
    assert {"table", "thead", "tbody", "tr", "th", "td", "br", "strong"} == judge.names()
    assert all(not attributes for _, attributes in judge.tags)


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        ("# x", "h3"),
        ("## x", "h3"),
        ("### x", "h3"),
        ("#### x", "h4"),
        ("###### x", "h4"),
        ("x\n===", "h3"),
        ("x\n---", "h3"),
    ],
)
def test_headings_inside_a_body_stay_below_the_sections_own(written: str, shown: str) -> None:
    assert body(written) == f"<{shown}>x</{shown}>"


@pytest.mark.parametrize(
    ("link", "href"),
    [
        ("[x](https://a.example/?q=1&r=2#f)", "https://a.example/?q=1&r=2#f"),
        ("[x](http://a.example)", "http://a.example"),
        ('[x](https://a.example "tip")', "https://a.example"),
        ("<https://a.example/>", "https://a.example/"),
        ("[x](https://ö.example/ä b)", None),
        ("[x](/austria/)", None),
        ("[x](austria.html)", None),
        ("[x](#top)", None),
        ("[x](//a.example/)", None),
        ("[x](mailto:a@a.example)", None),
        ("[x](ftp://a.example/)", None),
        ("[x](https://)", None),
        ("[x](http://[::1)", None),
        ("[x](https://bank.example@evil.example/)", None),
        ("[x](javascript:alert)", None),
    ],
)
def test_only_absolute_web_links_stay_links(link: str, href: str | None) -> None:
    links = Judge(body(link)).all_of("a")
    if href is None:
        assert links == []
    else:
        assert links == [{"href": href, "rel": "nofollow noopener"}]


def test_a_link_that_is_taken_off_leaves_its_words() -> None:
    assert body("see [the **old** town](/wien/) now") == (
        "<p>see the <strong>old</strong> town now</p>"
    )


def test_an_image_leaves_its_description_and_loads_nothing() -> None:
    assert body("a ![view of *Graz*](https://x.example/p.png) b") == (
        "<p>a view of <em>Graz</em> b</p>"
    )


def test_a_heading_may_speak_of_a_tag() -> None:
    section = Section(heading="The `<canvas>` & <b>more</b>", body_markdown="")
    assert render_body(article(introduction="", sections=[section])) == (
        "<h2>The &lt;canvas&gt; &amp; more</h2>"
    )


def test_a_section_without_a_visible_heading_has_none() -> None:
    section = Section(heading="\u200b ", body_markdown="text")
    assert render_body(article(introduction="", sections=[section])) == "<p>text</p>"


# --- hostile text -------------------------------------------------------------------------------


@pytest.mark.parametrize("payload", PAYLOADS)
def test_hostile_markdown_becomes_harmless_html(payload: str) -> None:
    for text in (payload, f"before {payload} after", f"- {payload}", f"> {payload}"):
        section = Section(heading=payload, body_markdown=text)
        judge = Judge(render_body(article(introduction=text, sections=[section])))
        assert judge.dangers() == []
        assert judge.names() <= ALLOWED_TAGS
        for tag, attributes in judge.tags:
            assert set(attributes) <= {"a": {"href", "rel"}, "ol": {"start"}}.get(tag, set())
        for link in judge.all_of("a"):
            assert str(link["href"]).startswith(("http://", "https://"))


MARKDOWN_PIECES = st.lists(
    st.one_of(
        st.sampled_from(
            (*PAYLOADS, "[", "](", ")", "<", ">", "`", "```\n", "\n\n", "|", "# ", "&#x202e;")
        ),
        st.text(max_size=8),
    ),
    max_size=8,
).map("".join)


@settings(max_examples=150, deadline=None)
@given(MARKDOWN_PIECES)
def test_no_combination_of_pieces_escapes_the_allow_list(markdown: str) -> None:
    rendered = body(markdown)
    judge = Judge(rendered)
    assert judge.dangers() == []
    assert judge.names() <= ALLOWED_TAGS
    assert_visible(rendered)


@settings(max_examples=150, deadline=None)
@given(MARKDOWN_PIECES)
def test_plain_text_is_one_visible_line_whatever_came_in(text: str) -> None:
    line = plain_text(text)
    assert line == " ".join(line.split())
    assert_visible(line)


def assert_visible(text: str) -> None:
    for character in text:
        assert character in "\n\t" or unicodedata.category(character) not in ("Cc", "Cs")
        assert unicodedata.bidirectional(character) not in (
            *("LRE", "RLE", "LRO", "RLO", "PDF", "LRI", "RLI", "FSI", "PDI"),
        )


# --- plain text ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("written", "shown"),
    [
        ("  Two\n\t words  ", "Two words"),
        ("**Austria** at a _glance_", "Austria at a glance"),
        ("<b>Austria</b> &amp; <i class='x'>more</i>", "Austria & more"),
        ("<p><strong>Austria</strong></p>", "Austria"),
        ("one<br>two<BR/>three", "one two three"),
        ("The `<canvas>` element", "The <canvas> element"),
        ("The <canvas> element", "The <canvas> element"),
        ("a<b and c>d", "a<b and c>d"),
        ("<b>one", "<b>one"),
        ("one</b>", "one</b>"),
        ("2*3 and snake_case_name", "2*3 and snake_case_name"),
        ("[Graz](https://x.example)", "Graz"),
        ("![Graz](x.png)", "Graz"),
        ("AT&T", "AT&T"),
        ("safe\u202egnp.exe", "safegnp.exe"),
        ("safe&#x202e;gnp.exe", "safegnp.exe"),
        ("a\x00b\x1bc\x7fd\u200be\ufefff", "abcdef"),
        ("می\u200cخواهم", "می\u200cخواهم"),
        ("family: 👨\u200d👩\u200d👧", "family: 👨\u200d👩\u200d👧"),
        ("line\u2028two\u00a0three", "line two three"),
        ("", ""),
    ],
)
def test_plain_text_is_what_a_reader_would_see(written: str, shown: str) -> None:
    assert plain_text(written) == shown


def test_plain_text_of_a_long_hostile_title_takes_no_quadratic_time() -> None:
    # A quadratic pairing of 40,000 tags takes minutes and would run into the test's time limit.
    assert plain_text("<a>" * 20_000 + "x" + "</a>" * 20_000) == "x"
    assert plain_text("<a " * 40_000).startswith("<a <a")


# --- the document -------------------------------------------------------------------------------


def test_a_document_carries_clean_text_and_the_marker_of_its_content() -> None:
    made = document(article(title="**Austria**\n", meta_description="A <b>fine</b> place."))
    assert made.title == "Austria"
    assert made.meta_description == "A fine place."
    assert made.marker.page_id == "a" * 32
    assert made.marker.revision == 3
    assert made.marker.content_hash == content_hash(
        made.title, made.meta_description, made.body_html
    )
    assert (made.path, made.url) == ("/austria/", "https://example.com/austria/")


def test_structured_data_repeats_the_page_in_plain_values() -> None:
    made = document(article(title="A & <i>B</i>"))
    assert made.json_ld == {
        "@context": "https://schema.org",
        "@type": "Article",
        "headline": "A & B",
        "description": made.meta_description,
        "inLanguage": "en",
        "url": "https://example.com/austria/",
        "mainEntityOfPage": {"@type": "WebPage", "@id": "https://example.com/austria/"},
        "isPartOf": {"@type": "WebSite", "name": "Countries"},
    }


def test_the_same_article_gives_the_same_document() -> None:
    assert document(article()) == document(article())


@pytest.mark.parametrize(
    "change",
    [
        {"title": "Österreich"},
        {"meta_description": "Another description."},
        {"introduction": "Other words."},
        {"sections": [Section(heading="Land", body_markdown="Nine million.")]},
    ],
    ids=lambda change: next(iter(change)),
)
def test_whatever_a_visitor_reads_is_part_of_the_content_hash(change: dict[str, object]) -> None:
    changed = document(article(**change)).marker.content_hash
    assert changed != document(article()).marker.content_hash


def test_markup_that_nobody_sees_is_not_part_of_the_content_hash() -> None:
    hidden = document(
        article(title="Aus\u200btria", introduction="Austria lies in _Central_ Europe.")
    )
    assert hidden.marker == document(article()).marker


@pytest.mark.parametrize("payload", PAYLOADS)
def test_plain_fields_survive_escaping_unchanged(payload: str) -> None:
    made = document(article(title=payload, meta_description=payload))
    for text in (made.title, made.meta_description, made.json_ld["headline"]):
        assert html.unescape(html.escape(text)) == text
        assert_visible(text)
