import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest

from content_pipeline.adapters.cms.git_command import Git, GitRemote
from content_pipeline.core.errors import CallFailed
from content_pipeline.core.failures import FailureClass

SECRET = "hunter2-s3cret"


def a_git(folder: Path, script: str, *, deadline_s: float = 30.0, **variables: str) -> Git:
    """Git commands where ``git`` is a script of ours."""
    program = folder / "bin" / "git"
    program.parent.mkdir()
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    path = f"{program.parent}:{os.environ['PATH']}"  # noqa: TID251 - the shell's own tools
    return Git(
        folder=folder / "copy.git",
        remote=GitRemote(url="https://example.com/x.git", username="me", password=SECRET),
        variables={"PATH": path, **variables},
        deadline_s=deadline_s,
    )


def test_git_gets_its_arguments_its_input_and_gives_its_words(tmp_path: Path) -> None:
    git = a_git(tmp_path, 'echo "$@"; cat; echo oops >&2; exit 3')
    done = git.run("fetch", "site", stdin=b"hello")
    assert done.output == f"--git-dir={git.folder} fetch site\nhello".encode()
    assert (done.status, done.errors, done.in_time) == (3, "oops\n", True)


def test_a_credential_stands_in_the_environment_and_in_no_argument(tmp_path: Path) -> None:
    git = a_git(tmp_path, "ps -o args= -p $$; env")
    arguments, _, environment = git.run("push").output.decode().partition("\n")
    assert SECRET not in arguments
    holders = [line.partition("=")[0] for line in environment.splitlines() if SECRET in line]
    assert holders == ["CONTENT_PIPELINE_GIT_PASSWORD"]
    assert SECRET not in repr(git)


def test_real_git_takes_the_credential_from_its_helper(tmp_path: Path) -> None:
    path = os.environ["PATH"]  # noqa: TID251 - git is somewhere on it
    remote = GitRemote(url="https://example.com/x.git", username="me", password=SECRET)
    git = Git(folder=tmp_path, remote=remote, variables={"PATH": path}, deadline_s=30)
    done = git.run("credential", "fill", stdin=b"protocol=https\nhost=example.com\n\n")
    assert f"username=me\npassword={SECRET}\n" in done.output.decode()


def test_nothing_of_the_users_settings_applies(tmp_path: Path) -> None:
    (tmp_path / ".gitconfig").write_text("[user]\nname = Somebody\n[core]\nhooksPath = /evil\n")
    path = os.environ["PATH"]  # noqa: TID251 - git is somewhere on it
    hostile = {
        "PATH": path,
        "HOME": str(tmp_path),
        "GIT_DIR": "/elsewhere",
        "GIT_CONFIG_PARAMETERS": "'user.name=Somebody'",
        "GIT_SSH_COMMAND": "evil",
        "GIT_ASKPASS": "evil",
    }
    git = Git(folder=tmp_path, remote=GitRemote(url="x"), variables=hostile, deadline_s=30)
    settings = git.run("config", "--list").output.decode().lower()
    assert "somebody" not in settings
    assert "evil" not in settings
    assert "core.hookspath=/dev/null" in settings


def test_a_command_that_takes_too_long_is_ended_with_all_that_it_started(tmp_path: Path) -> None:
    script = f'sleep 300 & echo $! > "{tmp_path}/helper"; sleep 300'
    done = a_git(tmp_path, script, deadline_s=0.5).run("push")
    assert not done.in_time
    assert done.status == -signal.SIGTERM
    assert is_gone(int((tmp_path / "helper").read_text()))


def is_gone(pid: int) -> bool:
    try:
        psutil.Process(pid).wait(timeout=10)
    except psutil.NoSuchProcess:
        return True
    except psutil.TimeoutExpired:
        return False
    return True


def test_a_command_that_will_not_end_is_killed(tmp_path: Path) -> None:
    script = 'trap "" TERM; while true; do sleep 0.1; done'
    done = a_git(tmp_path, script, deadline_s=0.2).run("push")
    assert not done.in_time


def test_without_git_nothing_was_sent(tmp_path: Path) -> None:
    empty = {"PATH": str(tmp_path)}
    git = Git(folder=tmp_path, remote=GitRemote(url="x"), variables=empty, deadline_s=30)
    with pytest.raises(CallFailed, match="install it") as failed:
        git.run("version")
    assert failed.value.failure.failure_class is FailureClass.NOT_SENT


def test_git_outlives_a_worker_that_is_killed_and_keeps_the_lock(tmp_path: Path) -> None:
    """A push under way is finished, and nobody else begins before."""
    script = (
        "import os, sys; from pathlib import Path\n"
        "from content_pipeline_tests.adapters.cms.test_git_command import a_git\n"
        "folder = Path(sys.argv[1])\n"
        "lock = os.open(folder / 'lock', os.O_RDWR | os.O_CREAT)\n"
        "git = a_git(folder, f'echo go > {folder}/started; read line < {folder}/go; '\n"
        "            f'(test -e /dev/fd/{lock} && echo yes || echo no) > {folder}/held')\n"
        "git.run('push', held=[lock])\n"
    )
    os.mkfifo(tmp_path / "go")
    worker = subprocess.Popen([sys.executable, "-c", script, str(tmp_path)])
    while not (tmp_path / "started").exists():
        assert worker.poll() is None
        time.sleep(0.01)
    worker.kill()
    worker.wait()
    (tmp_path / "go").write_text("go\n")
    held = tmp_path / "held"
    while not (held.exists() and held.read_text()):
        time.sleep(0.01)
    assert held.read_text() == "yes\n"


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        ("https://u:p%40w@h/x", ("https://h/x", "u", "p@w")),
        ("https://u@h:8443/x", ("https://h:8443/x", "u", "given")),
        ("https://h/x", ("https://h/x", "me", "given")),
        ("ssh://git@h/x", ("ssh://git@h/x", "me", "given")),
        ("git@h:x.git", ("git@h:x.git", "me", "given")),
        ("/srv/x.git", ("/srv/x.git", "me", "given")),
    ],
)
def test_credentials_are_taken_out_of_an_address(url: str, expected: tuple[str, str, str]) -> None:
    remote = GitRemote.of(url, username="me", password="given")
    assert (remote.url, remote.username, remote.password) == expected
    assert "given" not in repr(remote)
