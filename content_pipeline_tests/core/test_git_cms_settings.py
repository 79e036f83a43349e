from typing import Any

import pytest
from pydantic import TypeAdapter, ValidationError

from content_pipeline.core.cms_settings import (
    RESERVED_FRONT_MATTER,
    CMSSettings,
    GitCMSSettings,
)

SETTINGS: TypeAdapter[Any] = TypeAdapter(CMSSettings)


def settings(**values: object) -> GitCMSSettings:
    found = SETTINGS.validate_python({"kind": "git", **values})
    assert isinstance(found, GitCMSSettings)
    return found


def refusal(**values: object) -> str:
    with pytest.raises(ValidationError) as caught:
        settings(**values)
    (error,) = caught.value.errors()
    return str(error["msg"])


def test_a_repository_needs_nothing_but_its_kind() -> None:
    found = settings()
    assert (found.branch, found.content_folder, found.deployed_url) == ("main", "content", None)
    assert found.remote is None
    assert found.front_matter == {}


@pytest.mark.parametrize(
    "remote",
    [
        "https://git.example.com/team/site.git",
        "ssh://git@git.example.com:2222/team/site.git",
        "git@git.example.com:team/site.git",
        "../site.git",
        "/srv/git/site.git",
    ],
)
def test_whatever_git_clones_from_is_a_remote(remote: str) -> None:
    assert settings(remote=remote).remote == remote


@pytest.mark.parametrize(
    ("remote", "message"),
    [
        ("https://me:pa55word@example.com/x.git", "no credentials"),
        ("https://pa55word@example.com/x.git", "no credentials"),
        ("--upload-pack=pa55word", "as `git clone` takes it"),
        ("ext::sh -c pa55word", "as `git clone` takes it"),
        ("fd::pa55word", "as `git clone` takes it"),
        ("", "as `git clone` takes it"),
        ("a b", "as `git clone` takes it"),
        ("x\n", "as `git clone` takes it"),
    ],
)
def test_what_is_no_remote_is_refused_and_not_repeated(remote: str, message: str) -> None:
    found = refusal(remote=remote)
    assert message in found
    assert "pa55word" not in found


@pytest.mark.parametrize("branch", ["main", "live/site", "v1.2", "gh-pages"])
def test_a_branch_has_a_plain_name(branch: str) -> None:
    assert settings(branch=branch).branch == branch


@pytest.mark.parametrize(
    "branch",
    ["", "-f", "a..b", "a b", "x.lock", "x.lock/y", "a//b", "/a", "a/", "a.", "refs/*", "a:b"],
)
def test_what_git_would_read_otherwise_is_no_branch(branch: str) -> None:
    assert "name a branch" in refusal(branch=branch)


@pytest.mark.parametrize(
    ("folder", "kept"), [("content", "content"), ("/site/content/", "site/content"), ("a.b", "a.b")]
)
def test_pages_lie_in_a_folder_of_the_repository(folder: str, kept: str) -> None:
    assert settings(content_folder=folder).content_folder == kept


@pytest.mark.parametrize(
    "folder", ["", "/", "..", "a/../b", ".git", "a/.git", "a//b", "-x", ":(top)"]
)
def test_a_folder_outside_is_refused(folder: str) -> None:
    assert "inside the repository" in refusal(content_folder=folder)


def test_more_front_matter_is_plain_values() -> None:
    values = {"layout": "country", "weight": 3, "toc": False}
    found = settings(front_matter=values).front_matter
    assert found == values
    assert [type(value) for value in found.values()] == [str, int, bool]


@pytest.mark.parametrize("key", [*sorted(RESERVED_FRONT_MATTER), "Title", "publishDate"])
def test_front_matter_that_a_publish_writes_cannot_be_given(key: str) -> None:
    assert "of its own" in refusal(front_matter={key: "x"})


@pytest.mark.parametrize("key", ["a b", "a:", "", "1", "a\nb", "#"])
def test_a_key_that_is_none_is_refused(key: str) -> None:
    assert "letters, digits" in refusal(front_matter={key: "x"})


@pytest.mark.parametrize("name", ["", "A <b>", "a\nb"])
def test_an_authors_name_cannot_break_a_commit(name: str) -> None:
    with pytest.raises(ValidationError):
        settings(author_name=name)
    with pytest.raises(ValidationError):
        settings(author_email=name)


@pytest.mark.parametrize("name", ["remote_env", "username_env", "password_env"])
def test_a_credential_in_the_place_of_a_variables_name_is_not_repeated(name: str) -> None:
    message = refusal(**{name: "ghp_secret"})
    assert "name an environment variable" in message
    assert "secret" not in message
