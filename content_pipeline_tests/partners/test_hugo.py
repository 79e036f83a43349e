"""Real Hugo builds what the git adapter commits, and visitors read what was published.

The judges are Hugo's public folder and the bare repository.
"""

from html import escape, unescape
from pathlib import Path

import pytest

from content_pipeline.core.cms import Document, RemotePage, RemoteStatus
from content_pipeline_tests.adapters.cms.conformance import LAWS, Law, law_name
from content_pipeline_tests.adapters.cms.documents import make_document
from content_pipeline_tests.adapters.cms.git_repository import HUGO_CONFIGURATION
from content_pipeline_tests.partners.hugo_site import HugoBench, HugoSite, bench_of

ALLOWS_HTML = '[security]\nallowContent = [".*"]\n'

SPECIAL = {
    "shortcodes": "Write {{< ref >}}, {{% note %}}, {{*x*}} or {{</ close >}} and {{ .Title }}.",
    "a template's opening at the end of a paragraph": "It ends in {{",
    "front matter's own lines": "Above\n\n---\n\nbelow\n\n+++\n\nthe line",
    "quotes and dashes": "\"Double\" 'single' -- --- ... (c) 1/2 `code` \\ back",
    "emoji": "🎉 👩‍👩‍👧 :heart: :+1:",
    "entities": "&amp; &lt;b&gt; &#123; &nbsp; AT&T <b>bold</b>",
    "code with empty lines": "```\na  b\n\n\n---\n{{ c }}\n```",
    "a table": "| a | b |\n|---|---|\n| {{<x>}} | `{{%` |",
    "other scripts": "Österreich, 日本, עברית, \u00a0nbsp, soft\u00adhyphen, line\u2028separator",
    "Markdown in HTML": "# No heading\n\n* a\n\n    indented\n\n[x]: https://example.com",
}

TITLES = (
    "Austria: land of mountains",
    "- a list? # a comment",
    "\"Quoted\" and 'single'",
    "{{ .Title }} {{< x >}} {% raw %}",
    "---",
    "yes",
    "2026-01-02",
    "null",
    "1e5",
    "[a, b] {c: d} & *x !y |z >w %v @u `t",
    "Österreich 🎉 日本",
    "back\\slash \\n \\u0041",
)


@pytest.fixture
def site(tmp_path: Path) -> HugoSite:
    return HugoSite.new(tmp_path / "server")


@pytest.fixture
def bench(site: HugoSite, tmp_path: Path) -> HugoBench:
    return bench_of(site, tmp_path / "ours.git")


def seen(bench: HugoBench, document: Document) -> RemotePage:
    page = bench.cms.look_up(document.marker.page_id, document.path, None).page
    assert page is not None
    return page


@pytest.mark.parametrize("law", LAWS, ids=law_name)
def test_a_hugo_site_keeps_the_law(law: Law, bench: HugoBench) -> None:
    law(bench)


# --- what a visitor reads -----------------------------------------------------------------------


def test_the_built_page_shows_our_text_and_our_mark(bench: HugoBench) -> None:
    document = make_document("/austria/vienna/")
    bench.cms.publish(document, replacing=None)
    page = bench.visible(document.path)
    assert page is not None
    assert bench.site.article(document.path) == document.body_html
    assert f'<meta name="cp-key" content="{document.marker.page_id}">' in page
    assert '<meta name="cp-rev" content="1">' in page
    assert f'<link rel="canonical" href="{document.url}">' in page
    assert f"<title>{document.title}</title>" in page
    assert '"@type": "Article"' in page


@pytest.mark.parametrize("body", SPECIAL.values(), ids=SPECIAL.keys())
def test_whatever_the_text_says_visitors_read_it(body: str, bench: HugoBench) -> None:
    document = make_document(body=body)
    bench.cms.publish(document, replacing=None)
    built = bench.site.article(document.path)
    # The one thing written otherwise: what Hugo would take for a shortcode, as an entity.
    assert built.replace("&#123;", "{") == document.body_html
    if "{{" not in document.body_html:
        assert built == document.body_html


def test_titles_that_look_like_yaml_are_titles(bench: HugoBench) -> None:
    for number, title in enumerate(TITLES):
        document = make_document(f"/land-{number}/", title=title, meta_description=f"On {title}")
        bench.cms.publish(document, replacing=None)
        page = bench.visible(document.path)
        assert page is not None
        assert document.title
        assert f"<title>{document.title}</title>" in unescape(page)
        assert f'content="{document.meta_description}"' in unescape(page)
        assert escape(document.title, quote=False).replace("'", "&#39;") in page.replace(
            "&#34;", '"'
        )


def test_pages_below_a_page_are_built_as_well(bench: HugoBench) -> None:
    paths = ["/austria/", "/austria/vienna/", "/austria/vienna/old-town/", "/Land_1~x/y/"]
    for path in paths:
        bench.cms.publish(make_document(path), replacing=None)
    for path in paths:
        assert bench.site.article(path) == make_document(path).body_html


def test_a_page_goes_where_it_says_whatever_the_site_configures(tmp_path: Path) -> None:
    odd = 'uglyURLs = true\nenableEmoji = true\n[permalinks]\ncountries = "/:year/:slug/"\n'
    configuration = HUGO_CONFIGURATION.replace("[security]", f"{odd}[security]")
    site = HugoSite.new(tmp_path / "server", configuration=configuration)
    bench = bench_of(site, tmp_path / "ours.git")
    document = make_document("/countries/austria/", body="At 10:30:45 :tada: https://x.org:8080:")
    bench.cms.publish(document, replacing=None)
    assert bench.visible(document.path) is not None


# --- committed and deployed ---------------------------------------------------------------------


def test_a_page_is_accepted_until_it_is_deployed(bench: HugoBench) -> None:
    bench.site.stop_building()
    document = make_document()
    assert bench.cms.publish(document, replacing=None).status is RemoteStatus.ACCEPTED
    assert seen(bench, document).status is RemoteStatus.ACCEPTED
    bench.site.build()
    assert seen(bench, document).status is RemoteStatus.PUBLISHED


def test_a_newer_revision_is_accepted_while_the_older_one_is_shown(bench: HugoBench) -> None:
    first = bench.cms.publish(make_document(), replacing=None)
    assert first.status is RemoteStatus.PUBLISHED
    bench.site.stop_building()
    newer = make_document(revision=2)
    assert bench.cms.publish(newer, replacing=first).status is RemoteStatus.ACCEPTED
    bench.site.resume_building()
    bench.cms.publish(make_document("/belgium/"), replacing=None)
    assert seen(bench, newer).status is RemoteStatus.PUBLISHED


def test_a_site_that_was_rolled_back_does_not_show_the_page(bench: HugoBench) -> None:
    before = bench.repository.head()
    document = make_document()
    bench.cms.publish(document, replacing=None)
    bench.site.deployed_file.write_text(before)
    assert seen(bench, document).status is RemoteStatus.ACCEPTED


@pytest.mark.parametrize("text", ["", "<html>502</html>", "f" * 40, "HEAD", None])
def test_without_a_word_of_what_is_deployed_nothing_is_proved(
    text: str | None, bench: HugoBench
) -> None:
    document = make_document()
    bench.cms.publish(document, replacing=None)
    if text is None:
        bench.site.deployed_file.unlink()
    else:
        bench.site.deployed_file.write_text(text)
    assert seen(bench, document).status is RemoteStatus.ACCEPTED
    check = bench.cms.check()
    assert check.problems or any("never on the branch" in note for note in check.notes)


def test_anothers_broken_page_keeps_ours_waiting_and_the_check_says_so(bench: HugoBench) -> None:
    broken = "content/broken.md"
    bench.repository.commit({broken: b'---\ntitle: "no end\n---\nText\n'})
    document = make_document()
    page = bench.cms.publish(document, replacing=None)
    assert page.status is RemoteStatus.ACCEPTED
    assert bench.visible(document.path) is None
    check = bench.cms.check()
    assert check.problems == ()
    assert any("2 behind the branch" in note and "failed" in note for note in check.notes)
    bench.repository.commit({broken: None})
    assert seen(bench, document).status is RemoteStatus.PUBLISHED
    assert bench.visible(document.path) is not None
    assert bench.cms.check().notes == ()


def test_a_site_that_refuses_html_content_is_told_beforehand(tmp_path: Path) -> None:
    refusing = HUGO_CONFIGURATION.replace(ALLOWS_HTML, "")
    site = HugoSite.new(tmp_path / "server", configuration=refusing)
    bench = bench_of(site, tmp_path / "ours.git")
    assert any("allowContent" in note for note in bench.cms.check().notes)
    page = bench.cms.publish(make_document(), replacing=None)
    assert page.status is RemoteStatus.ACCEPTED
    assert "allowContent" in site.log()


# --- people -------------------------------------------------------------------------------------


def test_a_page_that_a_person_hides_is_hidden_for_us_and_for_visitors(bench: HugoBench) -> None:
    document = make_document()
    before = bench.cms.publish(document, replacing=None)
    bench.hide(document.path)
    page = seen(bench, document)
    assert page.status is RemoteStatus.HIDDEN
    assert page.fingerprint == before.fingerprint
    assert bench.visible(document.path) is None
    again = bench.cms.publish(document, replacing=page)
    assert again.status is RemoteStatus.PUBLISHED
    assert bench.visible(document.path) is not None


def test_what_people_add_to_the_front_matter_stays(bench: HugoBench) -> None:
    page = bench.cms.publish(make_document(), replacing=None)
    text = bench.repository.read("content/austria.html")
    assert text is not None
    added = b"---\n# ours\nweight: 3\naliases:\n  - /oesterreich/\n"
    bench.repository.commit({"content/austria.html": text.replace(b"---\n", added, 1)})
    newer = make_document(revision=2)
    seen_now = seen(bench, newer)
    assert seen_now.fingerprint == page.fingerprint
    bench.cms.publish(newer, replacing=seen_now)
    assert bench.site.article("/austria/") == newer.body_html
    alias = bench.visible("/oesterreich/")
    assert alias is not None
    assert "/austria/" in alias


def test_a_file_that_a_person_moved_is_replaced_where_it_is(bench: HugoBench) -> None:
    bench.cms.publish(make_document(), replacing=None)
    text = bench.repository.read("content/austria.html")
    moved = "content/europe/at.html"
    bench.repository.commit({"content/austria.html": None, moved: text})
    newer = make_document(revision=2)
    page = seen(bench, newer)
    assert (page.remote_id, page.path) == (moved, "/austria/")
    bench.cms.publish(newer, replacing=page)
    assert bench.repository.names() == [moved]
    assert bench.site.article("/austria/") == newer.body_html
