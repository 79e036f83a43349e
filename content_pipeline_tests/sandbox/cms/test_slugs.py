"""Rules of text: slugs, search terms and filtered HTML, as WordPress was seen to apply them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from content_pipeline.sandbox.cms.filtering import filtered_html
from content_pipeline.sandbox.cms.searching import MOST_TERMS, search_terms
from content_pipeline.sandbox.cms.slugs import LONGEST, sanitised_slug, unique_slug


@pytest.mark.parametrize(
    ("wish", "slug"),
    [
        ("", ""),
        ("Hello World", "hello-world"),
        ("  a  b\tc ", "a-bc"),
        ("Crème brûlée", "creme-brulee"),
        ("Straße", "strase"),
        ("Ærøskøbing", "aeroskobing"),
        ("Łódź", "lodz"),
        ("<b>Bold</b> move", "bold-move"),
        ("Fish &amp; chips", "fish-chips"),
        ("50% off", "50-off"),
        ('it\'s "quoted"', "its-quoted"),
        ("a\u2013b\u2014c", "a-b-c"),
        ("a\u00a0b", "a-b"),
        ("Привет", "%d0%bf%d1%80%d0%b8%d0%b2%d0%b5%d1%82"),
        ("Größe й", "grose-%d0%b9"),
        ("é日", "e%e6%97%a5"),
        ("東京 Tower", "%e6%9d%b1%e4%ba%ac-tower"),
        ("%e6%97%a5", "%e6%97%a5"),
        ("!!!", ""),
        ("town__trashed", "town__trashed"),
    ],
)
def test_a_wish_becomes_a_slug(wish: str, slug: str) -> None:
    assert sanitised_slug(wish) == slug


@given(st.text(max_size=300))
def test_a_slug_is_short_plain_and_stays_as_it_is(wish: str) -> None:
    slug = sanitised_slug(wish)
    assert len(slug) <= LONGEST
    assert slug.isascii()
    assert not set(slug) - set("abcdefghijklmnopqrstuvwxyz0123456789_-%")
    assert sanitised_slug(slug) == slug


@pytest.mark.parametrize(
    ("slug", "taken", "expected"),
    [
        ("a", set(), "a"),
        ("a", {"a"}, "a-2"),
        ("a", {"a", "a-2", "a-3"}, "a-4"),
        ("a", {"a-2"}, "a"),
        ("a-2", {"a-2"}, "a-2-2"),
        ("feed", set(), "feed-2"),
        ("feed", {"feed-2"}, "feed-3"),
        ("rss2", set(), "rss2-2"),
        ("page3", set(), "page3-2"),
        ("2024", set(), "2024-2"),
        ("page", set(), "page"),
        ("", {""}, ""),
        ("x" * 200, {"x" * 200}, "x" * 198 + "-2"),
    ],
)
def test_a_slug_that_is_taken_or_reserved_gets_the_next_number(
    slug: str, taken: set[str], expected: str
) -> None:
    assert unique_slug(slug, taken.__contains__) == expected


@given(st.sets(st.sampled_from([f"a-{n}" for n in range(2, 30)] + ["a"])))
def test_what_comes_out_is_never_taken(taken: set[str]) -> None:
    assert unique_slug("a", taken.__contains__) not in taken


@pytest.mark.parametrize(
    ("text", "wanted", "unwanted"),
    [
        ("", (), ()),
        ("One TWO", ("one", "two"), ()),
        ('"one two" three', ("one two", "three"), ()),
        ("one -two", ("one",), ("two",)),
        ("-", (), ()),
        ("key=k-1", ("key=k-1",), ()),
        (" ".join("abcdefghijk"), ("a b c d e f g h i j k",), ()),
    ],
)
def test_a_search_is_split_into_terms(
    text: str, wanted: tuple[str, ...], unwanted: tuple[str, ...]
) -> None:
    assert search_terms(text) == (wanted, unwanted)
    assert len(wanted) <= MOST_TERMS


@pytest.mark.parametrize(
    ("sent", "kept"),
    [
        ("<p>a <em>b</em></p>", "<p>a <em>b</em></p>"),
        ("A & B", "A &amp; B"),
        ("<!-- cp:key=k rev=1 h=a -->", "<!-- cp:key=k rev=1 h=a -->"),
        ('<script type="application/ld+json">{"a":1}</script>', '{"a":1}'),
        ("<style>p{}</style>", "p{}"),
        ("<iframe src='https://a.test'>x</iframe>", "x"),
        ("<p onclick='x()'>a</p>", "<p>a</p>"),
        ("<a href='javascript:x()'>a</a>", "<a>a</a>"),
        ("<a href='https://a.test/'>a</a>", '<a href="https://a.test/">a</a>'),
        ("<form><input name='a'>b</form>", "b"),
    ],
)
def test_html_of_who_is_not_trusted_loses_its_teeth(sent: str, kept: str) -> None:
    assert filtered_html(sent) == kept
