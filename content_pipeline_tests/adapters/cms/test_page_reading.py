from dataclasses import replace

import pytest

from content_pipeline.adapters.cms.page_html import render_page
from content_pipeline.adapters.cms.page_reading import read_page, says_what_it_is_marked
from content_pipeline.core.cms import Document, RemoteContent
from content_pipeline.core.identity import content_hash
from content_pipeline_tests.adapters.cms.documents import make_document


def of_text(title: str, meta_description: str, body_html: str) -> Document:
    document = make_document()
    marker = replace(document.marker, content_hash=content_hash(title, meta_description, body_html))
    return replace(
        document,
        marker=marker,
        title=title,
        meta_description=meta_description,
        body_html=body_html,
    )


@pytest.mark.parametrize(
    ("title", "meta_description", "body_html"),
    [
        ("Austria", "A country", "<p>Austria lies in Europe.</p>"),
        ('Fish & "Chips"', "1 < 2 & 3 > 2, 'so'", "<p>a &amp; b</p>\n<p>c</p>"),
        ("<h1> in a title", 'content="x"', "<h2>x</h2>\n<pre><code>&lt;/article&gt;</code></pre>"),
        ("Ünïcode ☕", "", "<p></p>"),
    ],
)
def test_what_was_rendered_is_read_back_to_the_letter(
    title: str, meta_description: str, body_html: str
) -> None:
    document = of_text(title, meta_description, body_html)
    content = read_page(render_page(document))
    assert content == RemoteContent(
        title=title, meta_description=meta_description, body_html=body_html
    )
    assert says_what_it_is_marked(content, document.marker)


@pytest.mark.parametrize("part", ["title", "meta_description", "body_html"])
def test_a_changed_part_is_no_longer_what_the_mark_says(part: str) -> None:
    document = of_text("Austria", "A country", "<p>Austria lies in Europe.</p>")
    content = replace(read_page(render_page(document)), **{part: "changed"})
    assert not says_what_it_is_marked(content, document.marker)
    assert not says_what_it_is_marked(content, None)


@pytest.mark.parametrize("page", [b"", b"\xff\xfe", b"<p>Hands off.", b"<h1>only</h1>"])
def test_a_strangers_page_is_read_as_far_as_it_goes(page: bytes) -> None:
    content = read_page(page)
    assert content.body_html == page.decode(errors="replace")
    assert content.meta_description == ""
