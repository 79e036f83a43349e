"""Git as a command: run in an environment of its own, within a deadline, and ended as a whole.

What belongs here: starting the program and what it is told by its environment. Nothing of the
user's or the machine's git settings applies, no hook of ours runs, nobody is asked a question, and
a credential is handed over by the environment alone: arguments are for everybody to read.
"""

import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import unquote, urlsplit, urlunsplit

from content_pipeline.core.errors import CallFailed
from content_pipeline.core.failures import Failure, FailureClass

REMOTE = "site"
"""What the remote repository is called in every command."""

GRACE_S = 3.0
"""Time for git to take its lock files away after it was told to end."""

_PASSED_ON = (
    *("PATH", "HOME", "TMPDIR", "SSH_AUTH_SOCK", "SSL_CERT_FILE", "SSL_CERT_DIR"),
    *("http_proxy", "https_proxy", "all_proxy", "no_proxy", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY"),
)
"""What git, ssh and curl need of the process's own environment; no GIT_… variable is among it."""

_USERNAME, _PASSWORD = "CONTENT_PIPELINE_GIT_USERNAME", "CONTENT_PIPELINE_GIT_PASSWORD"
_HELPER = (
    f'!f() {{ test "$1" = get && printf "username=%s\\npassword=%s\\n" '
    f'"${_USERNAME}" "${_PASSWORD}"; }}; f'
)
"""A credential helper that reads the environment; git asks it for this remote only."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GitRemote:
    """Where the repository is and who we are there."""

    url: str
    """Without credentials: it may be shown."""
    username: str = ""
    password: str = field(default="", repr=False)

    @classmethod
    def of(cls, url: str, *, username: str = "", password: str = "") -> "GitRemote":
        """The remote of ``url``, whose own user and password, if any, come first."""
        parts = urlsplit(url) if "://" in url else None
        if parts is None or parts.scheme not in ("http", "https") or "@" not in parts.netloc:
            return cls(url=url, username=username, password=password)
        user, _, secret = parts.netloc.rpartition("@")[0].partition(":")
        bare = urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))
        return cls(
            url=bare, username=unquote(user) or username, password=unquote(secret) or password
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Finished:
    """How a command ended and what it said."""

    status: int
    """The exit status; negative after a signal."""
    output: bytes
    errors: str
    in_time: bool = True
    """False when it was ended at its deadline."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Git:
    """Git commands on one repository ``folder``; ``variables`` are the process's environment."""

    folder: Path
    remote: GitRemote
    variables: Mapping[str, str] = field(repr=False)
    deadline_s: float

    def run(self, *arguments: str, stdin: bytes = b"", held: Sequence[int] = ()) -> Finished:
        """Run ``git arguments`` to its end. Raises CallFailed (not_sent) when git cannot start.

        ``held`` are descriptors that git keeps open, and with them a lock, for as long as it runs:
        it may outlive a worker that is killed.
        """
        command = ["git", f"--git-dir={self.folder}", *arguments]
        try:
            process = subprocess.Popen(  # noqa: S603 - no shell, and no argument starts with a dash
                command,
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                env=self._environment(),
                cwd="/",
                pass_fds=held,
                start_new_session=True,
            )
        except OSError as error:
            raise CallFailed(
                Failure(
                    failure_class=FailureClass.NOT_SENT,
                    message=f"git cannot be started ({error.strerror}); install it and put it on "
                    "the PATH",
                )
            ) from error
        try:
            output, errors = process.communicate(stdin, timeout=self.deadline_s)
        except subprocess.TimeoutExpired:
            output, errors = _ended(process)
            return Finished(
                status=-signal.SIGTERM, output=output, errors=_text(errors), in_time=False
            )
        finally:
            if process.poll() is None:
                _ended(process)
        return Finished(status=process.returncode, output=output, errors=_text(errors))

    def _environment(self) -> dict[str, str]:
        settings = {
            f"remote.{REMOTE}.url": self.remote.url,
            "core.hooksPath": "/dev/null",
            "credential.helper": _HELPER if self.remote.password else "",
            "gc.autoDetach": "false",
            "protocol.ext.allow": "never",
            "http.lowSpeedLimit": "1",
            "http.lowSpeedTime": str(max(1, int(self.deadline_s))),
        }
        passed = {name: self.variables[name] for name in _PASSED_ON if name in self.variables}
        configured = {"GIT_CONFIG_COUNT": str(len(settings))}
        for number, (key, value) in enumerate(settings.items()):
            configured[f"GIT_CONFIG_KEY_{number}"] = key
            configured[f"GIT_CONFIG_VALUE_{number}"] = value
        return (
            passed
            | configured
            | {
                "LC_ALL": "C",
                "GIT_TERMINAL_PROMPT": "0",
                "GIT_ASKPASS": "",
                "SSH_ASKPASS_REQUIRE": "never",
                "GIT_SSH_COMMAND": "ssh -o BatchMode=yes -o ConnectTimeout=15",
                "GIT_CONFIG_NOSYSTEM": "1",
                "GIT_CONFIG_GLOBAL": "/dev/null",
                "GIT_NO_REPLACE_OBJECTS": "1",
                _USERNAME: self.remote.username,
                _PASSWORD: self.remote.password,
            }
        )


def _ended(process: "subprocess.Popen[bytes]") -> tuple[bytes, bytes]:
    """End git with all that it started: a helper left alone would hold the pipes open."""
    for sign in (signal.SIGTERM, signal.SIGKILL):
        with suppress(ProcessLookupError):
            os.killpg(process.pid, sign)
        with suppress(subprocess.TimeoutExpired):
            return process.communicate(timeout=GRACE_S)
    process.wait()
    return b"", b""


def _text(errors: bytes) -> str:
    return errors.decode(errors="replace")
