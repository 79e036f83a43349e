from hypothesis import given
from hypothesis import strategies as st

from content_pipeline.sandbox.cms.words import MANY, WordIndex

TEXTS = {1: "<p>some words</p>\n<!-- key=k-1 -->", 2: "other words", 3: "key=k-12 some\tother"}


def index(texts: dict[int, str]) -> WordIndex:
    made = WordIndex()
    for page_id, text in texts.items():
        made.put(page_id, text)
    return made


def test_a_part_of_a_word_leads_to_its_pages() -> None:
    words = index(TEXTS)
    assert words.candidates("key=k-1") == {1, 3}
    assert words.candidates("key=k-12") == {3}
    assert words.candidates("ord") == {1, 2}
    assert words.candidates("nowhere") == set()


def test_a_phrase_is_looked_up_by_its_longest_word() -> None:
    assert index(TEXTS).candidates("some words") == {1, 2}
    assert index(TEXTS).candidates("") == {1, 2, 3}


def test_a_new_text_replaces_the_old_one() -> None:
    words = index(TEXTS)
    words.put(2, "fresh")
    assert words.candidates("words") == {1}
    assert words.candidates("fresh") == {2}
    words.remove(2)
    words.remove(99)
    assert words.candidates("fresh") == set()


def test_of_a_word_of_many_pages_none_is_remembered() -> None:
    words = index(dict.fromkeys(range(MANY + 1), "common"))
    assert words.candidates("common") is None
    words.put(5, "rare")
    assert words.candidates("rare") == {5}
    assert words.candidates("comm") is None


texts = st.dictionaries(st.integers(1, 5), st.text(alphabet="ab \n\u2028-", max_size=12))


@given(texts, texts, st.text(alphabet="ab -", max_size=4))
def test_no_page_that_holds_the_term_is_ever_left_out(
    first: dict[int, str], second: dict[int, str], term: str
) -> None:
    words = index(first)
    for page_id, text in second.items():
        words.put(page_id, text)
    held = {**first, **second}
    holding = {page_id for page_id, text in held.items() if term.strip() and term in text}
    found = words.candidates(term)
    assert found is not None
    assert holding <= found
