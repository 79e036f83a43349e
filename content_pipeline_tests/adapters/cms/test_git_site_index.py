import pytest

from content_pipeline.adapters.cms.git_clone import Blob
from content_pipeline.adapters.cms.git_site_index import (
    SiteIndex,
    blob_id_of,
    is_page,
    own_file,
    path_of,
)
from content_pipeline.core.errors import CallFailed
from content_pipeline.core.failures import FailureClass

COMMIT = "c" * 40


def index_of(files: dict[str, str]) -> SiteIndex:
    index = SiteIndex("content")
    index.write(COMMIT, {name: text.encode() for name, text in files.items()})
    return index


def test_a_files_id_is_gits() -> None:
    # As `git hash-object` gives them in either kind of repository.
    assert blob_id_of(b"", like="a" * 40) == "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391"
    assert blob_id_of(b"", like="a" * 64) == (
        "473a0f4c3be8a93681a267e3b1e9a7dcda1185436fe141f7749120a303721813"
    )


@pytest.mark.parametrize(
    ("name", "said", "path"),
    [
        ("austria.html", {}, "/austria/"),
        ("austria/index.md", {}, "/austria/"),
        ("austria/_index.md", {}, "/austria/"),
        ("Europe/New Town.md", {}, "/europe/new-town/"),
        ("_index.md", {}, "/"),
        ("index.html", {}, "/"),
        ("a.md", {"slug": "b"}, "/b/"),
        ("x/a/index.md", {"slug": "b"}, "/x/b/"),
        ("a.md", {"url": "/Far/Away"}, "/Far/Away/"),
        ("a.md", {"url": "/c/", "slug": "b"}, "/c/"),
        ("a.md", {"url": ""}, "/a/"),
    ],
)
def test_an_address_follows_from_the_name_and_what_the_file_says(
    name: str, said: dict[str, str], path: str
) -> None:
    assert path_of(name, said) == path


@pytest.mark.parametrize(
    ("text", "path"),
    [
        ('---\nurl: "/a b\\u00e9/"\n---\n', "/a bé/"),
        ("---\nurl: '/it''s/'\n---\n", "/it's/"),
        ("---\r\nURL: /plain/ \r\n---\r\n", "/plain/"),
        ("+++\nurl = '/toml/'\n+++\n", "/toml/"),
        ('---\nurl: "broken\\"\n---\n', "/broken\\/"),
        ("---\ntitle: x\n---\nurl: /in-the-body/\n", "/file/"),
        ("url: /without-front-matter/\n", "/file/"),
        ("---\nmenu:\n  url: /deeper/\n---\n", "/file/"),
    ],
)
def test_what_a_file_says_of_its_address_is_found(text: str, path: str) -> None:
    index = index_of({"content/file.md": text})
    assert [entry.path for entry in index.standing_at(path)] == [path]


def test_pages_are_found_by_key_and_by_address_and_forgotten_when_they_go() -> None:
    text = '---\nurl: "/a/"\ncp_key: "k1"\n---\n'
    index = index_of({"content/a.html": text, "content/copy.html": text})
    assert [entry.name for entry in index.marked("k1")] == ["content/a.html", "content/copy.html"]
    assert len(index.standing_at("/a/")) == 2
    moved = text.replace("/a/", "/b/").encode()
    index.write("d" * 40, {"content/a.html": None, "content/copy.html": moved})
    assert index.commit == "d" * 40
    assert [entry.name for entry in index.marked("k1")] == ["content/copy.html"]
    assert index.standing_at("/a/") == []
    assert index.named("content/a.html") is None
    assert index.names() == ["content/copy.html"]


def test_a_site_is_read_in_parts() -> None:
    asked: list[int] = []

    def texts(blob_ids: object) -> dict[str, bytes]:
        ids = list(blob_ids)  # type: ignore[call-overload]
        asked.append(len(ids))
        return dict.fromkeys(ids, b"---\n---\n")

    index = SiteIndex("content")
    index.advance(COMMIT, [Blob(f"content/{n}.md", str(n)) for n in range(1201)], texts)
    assert asked == [500, 500, 201]
    assert len(index.names()) == 1201


def test_only_what_a_generator_makes_a_page_of_is_one() -> None:
    index = index_of({"content/a.md": "", "content/a.jpg": "", "content/data.json": ""})
    assert index.names() == ["content/a.md"]
    assert is_page("x/A.HTML")
    assert not is_page("x/README")


def test_the_sites_own_first_page_is_not_listed() -> None:
    assert index_of({"content/_index.md": "", "content/a.md": ""}).names() == ["content/a.md"]


def test_a_page_that_swallows_what_lies_below_it_is_found() -> None:
    index = index_of({"content/at/index.md": "", "content/be/_index.md": ""})
    assert index.bundle_above("content/at/vienna.html") == "content/at/index.md"
    assert index.bundle_above("content/at/x/y.html") == "content/at/index.md"
    assert index.bundle_above("content/be/gent.html") is None
    assert index.bundle_above("content/at/index.md") is None


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("/austria/", "content/austria.html"),
        ("/austria/vienna/", "content/austria+vienna.html"),
        ("/a/index/", "content/a+index.html"),
    ],
)
def test_our_pages_lie_side_by_side(path: str, name: str) -> None:
    assert own_file("content", path) == name


@pytest.mark.parametrize(
    "path", ["/index/", "/_Index/", "/../x/", f"/{'a' * 200}/{'b' * 60}/", "/"]
)
def test_an_address_that_can_be_no_file_is_refused(path: str) -> None:
    with pytest.raises(CallFailed) as refused:
        own_file("content", path)
    assert refused.value.failure.failure_class is FailureClass.INVALID_INPUT
