from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from content_pipeline.adapters.cms.git_page_file import read_page_file, write_page_file
from content_pipeline.core.cms import Document
from content_pipeline.core.errors import CallFailed
from content_pipeline.core.failures import FailureClass
from content_pipeline.core.identity import content_hash
from content_pipeline_tests.adapters.cms.documents import make_document

NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
LATER = NOW + timedelta(days=40)


def written(document: Document, *, over: bytes | None = None, **extra: str | int | bool) -> bytes:
    held = None if over is None else read_page_file(over)
    return write_page_file(document, over=held, extra=extra, now=NOW if over is None else LATER)


def marked(title: str, description: str, body: str) -> Document:
    """A document that nobody sanitised."""
    document = make_document()
    mark = replace(document.marker, content_hash=content_hash(title, description, body))
    return replace(document, marker=mark, title=title, meta_description=description, body_html=body)


def front_matter(data: bytes) -> dict[str, object]:
    found: dict[str, object] = yaml.safe_load(data.decode().split("---\n")[1])
    return found


def test_a_page_is_front_matter_and_the_body_as_it_is() -> None:
    document = make_document()
    data = written(document, layout="country")
    assert front_matter(data) == {
        "title": "Austria",
        "description": document.meta_description,
        "url": "/austria/",
        "date": NOW,
        "lastmod": NOW,
        "json_ld": front_matter(data)["json_ld"],
        "cp_key": document.marker.page_id,
        "cp_rev": 1,
        "cp_hash": document.marker.content_hash,
        "layout": "country",
    }
    assert data.decode().split("---\n", 2)[2] == document.body_html + "\n"


def test_what_was_written_reads_back() -> None:
    document = make_document()
    page = read_page_file(written(document))
    assert page.marker == document.marker
    assert page.intact
    assert page.content.body_html == document.body_html
    assert not page.is_hidden(NOW)


def test_the_same_page_at_the_same_time_is_the_same_file() -> None:
    assert written(make_document()) == written(make_document())


@given(title=st.text(max_size=40), description=st.text(max_size=40), body=st.text(max_size=80))
def test_any_text_reads_back_to_the_letter_or_is_refused(
    title: str, description: str, body: str
) -> None:
    document = marked(title, description, body)
    try:
        data = written(document)
    except (CallFailed, UnicodeEncodeError):
        return
    content = read_page_file(data).content
    assert (content.title, content.meta_description, content.body_html) == (
        title,
        description,
        body,
    )
    assert "\n---\n" not in data.decode().split("---\n", 2)[1]


@pytest.mark.parametrize(
    "body", ["a<!--more-->b", "it says &#123; itself"], ids=["a cut", "our own escape"]
)
def test_a_text_that_a_generator_would_alter_is_refused(body: str) -> None:
    with pytest.raises(CallFailed) as refused:
        written(marked("Austria", "Mountains", body))
    assert refused.value.failure.failure_class is FailureClass.INVALID_INPUT
    assert "more" not in str(refused.value)


def test_nothing_in_the_body_opens_a_template() -> None:
    data = written(marked("T", "D", "{{< x >}} {% y %} {# z #} {{{ } { a"))
    body = data.decode().split("---\n", 2)[2]
    assert not any(opening in body for opening in ("{{", "{%", "{#"))
    assert body.endswith("{ } { a\n")  # a brace alone is left alone


# --- replacing ----------------------------------------------------------------------------------


def test_the_day_of_the_first_publish_stays_and_the_last_change_moves() -> None:
    newer = written(make_document(revision=2), over=written(make_document()))
    assert front_matter(newer)["date"] == NOW
    assert front_matter(newer)["lastmod"] == LATER


def test_what_a_person_added_stays_to_the_letter() -> None:
    added = '# mine\ntags: [alps,   "x"]\nmenu:\n  main:\n    weight: 3\n'
    held = written(make_document()).decode().replace("---\n", f"---\n{added}", 1).encode()
    newer = written(make_document(revision=2), over=held).decode()
    assert added in newer
    assert newer.count("title:") == 1
    assert written(make_document(revision=3), over=newer.encode()).decode().count(added) == 1


@pytest.mark.parametrize(
    "hiding",
    ["draft: true", "publishDate: 2999-01-01", "expiryDate: 2000-01-01", "build: {render: never}"],
)
def test_what_hides_a_page_is_read_and_taken_off_by_a_publish(hiding: str) -> None:
    held = written(make_document()).decode().replace("---\n", f"---\n{hiding}\n", 1).encode()
    assert read_page_file(held).is_hidden(NOW)
    newer = written(make_document(revision=2), over=held)
    assert not read_page_file(newer).is_hidden(LATER)
    assert hiding not in newer.decode()


def test_front_matter_that_cannot_be_kept_is_a_conflict() -> None:
    held = written(make_document()).decode().replace("---\n", "---\n'title': \"Theirs\"\n", 1)
    assert read_page_file(held.encode()).marker is not None
    with pytest.raises(CallFailed) as refused:
        written(make_document(revision=2), over=held.encode())
    assert refused.value.failure.failure_class is FailureClass.CONFLICT


def test_of_a_strangers_page_nothing_is_kept() -> None:
    stranger = b"---\ntitle: Mine\ndate: 1999-01-01\nlayout: odd\n---\nText\n"
    newer = written(make_document(), over=stranger)
    assert "layout" not in newer.decode()
    assert front_matter(newer)["date"] == LATER


# --- reading what people leave ------------------------------------------------------------------


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"no front matter",
        b'---\ntitle: "open\n---\nText',
        b"---\n- a\n- list\n---\nText",
        b"---\ndate: 2026-02-30\n---\nText",
        b"---\n&a [*a, *a]\n---\n",
        b"+++\ntitle = \n+++\nText",
        b"---\ntitle: x\n",
        b"---\n" + b"a: b\n" * 20_000 + b"---\n",
        b"\xff\xfe\x00",
        b"---\ncp_key: 1\ncp_rev: two\n---\n",
        b"---\n{{ template }}\n---\n",
        b"---\n" + b"[" * 5000 + b"\n---\n",
    ],
)
def test_what_is_no_page_of_ours_has_no_mark_and_breaks_nothing(data: bytes) -> None:
    page = read_page_file(data)
    assert page.marker is None
    assert not page.intact
    assert page.fingerprint


def test_toml_front_matter_is_read() -> None:
    page = read_page_file(b"+++\nTitle = 'Mine'\ndraft = true\n+++\nText\n")
    assert page.content.title == "Mine"
    assert page.is_hidden(NOW)


@pytest.mark.parametrize(
    ("line", "hidden"),
    [
        ("date: 2026-01-02T03:04:05Z", False),
        ("date: 2026-01-02T03:04:06Z", True),
        ("date: 2999-01-01\npublishDate: 2000-01-01", False),
        ("date: '2999-01-01'", True),
        ("date: someday", False),
        ("expiryDate: 2026-01-02T03:04:05Z", True),
        ("draft: false", False),
        ("draft: 'true'", False),
        ("_build: {render: link}", True),
        ("build: {list: never}", False),
    ],
)
def test_a_page_is_hidden_when_a_generator_leaves_it_out(line: str, hidden: bool) -> None:
    assert read_page_file(f"---\n{line}\n---\n".encode()).is_hidden(NOW) is hidden


def test_an_edit_of_the_text_shows_in_the_fingerprint_and_nothing_else_does() -> None:
    data = written(make_document())
    same = read_page_file(data.replace(b"---\n", b"---\nweight: 3\n", 1))
    assert same.fingerprint == read_page_file(data).fingerprint
    assert same.intact
    for old, new in ((b'"Austria"', b'"Osterreich"'), (b"Mountains", b"Hills"), (b"lies", b"is")):
        edited = read_page_file(data.replace(old, new, 1))
        assert edited.fingerprint != same.fingerprint
        assert not edited.intact


def test_a_body_without_a_last_line_break_is_whole() -> None:
    document = make_document()
    assert read_page_file(written(document).removesuffix(b"\n")).intact
