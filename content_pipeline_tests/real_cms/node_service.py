"""A service on Node.js in a process group of its own, for one test session.

What belongs here: starting, waiting for the first answer, asking in JSON, and ending by process id.
"""

import http.client
import json
import os
import signal
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

HOST = "127.0.0.1"
START_S = 120.0
"""Up within 20 s on an idle machine, first migrations included."""
POLL_S = 0.2
ANSWER_S = 60.0


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """One answer."""

    status: int
    headers: Mapping[str, str]
    body: bytes = field(repr=False)

    def json(self) -> Any:
        return json.loads(self.body)


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        port: int = probe.getsockname()[1]
        return port


def ask(
    port: int,
    method: str,
    path: str,
    document: object = None,
    headers: Mapping[str, str] | None = None,
) -> Asked:
    """The answer of a service on this machine."""
    connection = http.client.HTTPConnection(HOST, port, timeout=ANSWER_S)
    try:
        body = None if document is None else json.dumps(document)
        sent = {"Content-Type": "application/json", **(headers or {})}
        connection.request(method, path, body, sent)
        answer = connection.getresponse()
        return Asked(
            status=answer.status,
            headers={name.lower(): value for name, value in answer.getheaders()},
            body=answer.read(),
        )
    finally:
        connection.close()


@contextmanager
def running(
    command: Sequence[str],
    *,
    cwd: Path,
    variables: Mapping[str, str],
    log: Path,
    port: int,
    ready: str,
) -> Iterator[None]:
    """The service, from its first good answer at the path ``ready`` to the end of the block."""
    with log.open("wb") as output:
        process = subprocess.Popen(
            list(command),
            cwd=cwd,
            env=dict(variables),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        _wait(process, port, ready, log)
        yield
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _wait(process: "subprocess.Popen[bytes]", port: int, ready: str, log: Path) -> None:
    deadline = time.monotonic() + START_S
    while process.poll() is None and time.monotonic() < deadline:
        try:
            if ask(port, "GET", ready).status == 200:
                return
        except OSError:
            pass
        time.sleep(POLL_S)
    said = log.read_text(errors="replace")[-2000:]
    raise AssertionError(f"{process.args!r} did not answer; it says:\n{said}")
