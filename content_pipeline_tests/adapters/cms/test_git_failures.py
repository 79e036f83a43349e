import pytest

from content_pipeline.adapters.cms.git_command import Finished
from content_pipeline.adapters.cms.git_failures import (
    MOST_SHOWN,
    Refusal,
    failed,
    refusal_of,
    shown,
)
from content_pipeline.core.failures import FailureClass

LOCKED = """\
remote: error: cannot lock ref 'HEAD': Unable to create '/srv/site.git/./HEAD.lock': File exists.
remote:
remote: Another git process seems to be running in this repository, e.g.
"""


def push(status: str, errors: str = "") -> Finished:
    output = f"To /srv/site.git\n!\tabc:refs/heads/main\t{status}\nDone\n".encode()
    return Finished(status=1, output=output, errors=errors)


@pytest.mark.parametrize(
    ("status", "errors", "refusal"),
    [
        ("[rejected] (stale info)", "", Refusal.MOVED),
        ("[rejected] (fetch first)", "", Refusal.MOVED),
        ("[rejected] (non-fast-forward)", "", Refusal.MOVED),
        (
            "[remote rejected] (failed to update ref)",
            "remote: error: cannot lock ref 'refs/heads/main': is at 1a but expected 2b",
            Refusal.MOVED,
        ),
        ("[remote rejected] (cannot lock ref 'x': is at a but expected b)", "", Refusal.MOVED),
        ("[remote rejected] (failed to update ref)", LOCKED, Refusal.LOCKED),
        ("[remote rejected] (unpacker error)", "remote: fatal: write error", Refusal.UNSTORED),
        (
            "[remote rejected] (failed to update ref)",
            "remote: error: No space left on device",
            Refusal.UNSTORED,
        ),
        ("[remote rejected] (pre-receive hook declined)", "remote: no", Refusal.REFUSED),
        ("[remote rejected] (protected branch hook declined)", "", Refusal.FORBIDDEN),
        ("[remote rejected] (deny updating a hidden ref)", "", Refusal.FORBIDDEN),
    ],
)
def test_what_the_remote_makes_of_a_push_is_told_by_its_words(
    status: str, errors: str, refusal: Refusal
) -> None:
    found = refusal_of(push(status, errors))
    assert found is not None
    assert found[0] is refusal
    assert found[1]


def test_a_push_without_a_word_of_the_branch_was_not_refused() -> None:
    lost = Finished(status=128, output=b"", errors="fatal: the remote end hung up unexpectedly")
    assert refusal_of(lost) is None
    assert refusal_of(Finished(status=0, output=b"=\ta:b\t[up to date]\nDone\n", errors="")) is None


@pytest.mark.parametrize(
    ("errors", "expected"),
    [
        ("fatal: unable to access 'https://x/': Could not resolve host: x", FailureClass.NOT_SENT),
        ("fatal: unable to access 'https://x/': Failed to connect to x", FailureClass.NOT_SENT),
        ("ssh: connect to host x port 22: Connection refused\nfatal: Could", FailureClass.NOT_SENT),
        ("fatal: unable to access 'x': SSL certificate problem: expired", FailureClass.NOT_SENT),
        ("remote: Invalid username\nfatal: Authentication failed for 'x'", FailureClass.AUTH),
        ("fatal: could not read Username for 'x': terminal prompts disabled", FailureClass.AUTH),
        ("git@x: Permission denied (publickey).\nfatal: Could not", FailureClass.AUTH),
        ("fatal: unable to access 'x': The requested URL returned error: 403", FailureClass.AUTH),
        ("remote: Repository not found.\nfatal: repository 'x' not found", FailureClass.AUTH),
        ("fatal: '/nowhere' does not appear to be a git repository", FailureClass.AUTH),
        ("fatal: couldn't find remote ref refs/heads/main", FailureClass.REQUEST),
        ("error: unable to write file: No space left on device", FailureClass.STORAGE),
        ("fatal: loose object abc is corrupt", FailureClass.STORAGE),
        ("remote: No space left on device\nfatal: early EOF", FailureClass.TRANSIENT),
        (
            "fatal: unable to access 'x': The requested URL returned error: 500",
            FailureClass.TRANSIENT,
        ),
        ("fatal: the remote end hung up unexpectedly", FailureClass.TRANSIENT),
        ("", FailureClass.TRANSIENT),
    ],
)
def test_a_failure_is_of_the_class_that_its_words_mean(errors: str, expected: FailureClass) -> None:
    finished = Finished(status=128, output=b"", errors=errors)
    failure = failed("fetching", finished, lost=FailureClass.TRANSIENT).failure
    assert failure.failure_class is expected
    assert failure.message.startswith("fetching failed: ")


def test_a_command_that_was_cut_off_is_of_the_class_that_its_caller_says() -> None:
    for lost in (FailureClass.UNCERTAIN, FailureClass.TRANSIENT):
        late = Finished(status=-15, output=b"", errors="fatal: Connection refused", in_time=False)
        assert failed("pushing", late, lost=lost).failure.failure_class is lost


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("no\x1b[31m colour\r\n\tat all", "no [31m colour at all"),
        (
            "see https://user:pa55@host/x and ssh://git@h/y",
            "see https://***@host/x and ssh://***@h/y",
        ),
        ("token ghp_abcdef0123 glpat-xyz!", "token ***@ ***@"),
        ("x" * 500, "x" * MOST_SHOWN),
    ],
)
def test_words_of_others_are_shown_on_one_line_without_secrets(words: str, expected: str) -> None:
    assert shown(words) == expected
