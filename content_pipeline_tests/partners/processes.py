"""Programs as processes of their own: started on a free port, waited for, ended with the test.

What belongs here: what is the same for every partner. Only processes started here are ended.
"""

import http.client
import json
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from content_pipeline.config import environment

HOST = "127.0.0.1"
START_S = 60.0
"""A partner answers within a second; on a machine with every core busy ten times that is seen."""
POLL_S = 0.02
CONTROL_S = 20.0
"""llmock's control answers wait up to two seconds for calls in flight."""


@contextmanager
def running(
    command: Sequence[object], *, folder: Path, answers: Callable[[], object]
) -> Iterator[None]:
    """The program of ``command`` in ``folder``, from its first answer to the end of the block."""
    log = folder / "output.log"
    with log.open("w") as output:
        process = subprocess.Popen(
            [str(part) for part in command],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            cwd=folder,
            # Nothing of a developer's settings: several partners read their options there.
            env={"PATH": environment().get("PATH", ""), "HOME": str(folder)},
        )
    try:
        _wait_for(process, answers, log)
        yield
    finally:
        process.kill()
        process.wait()


def _wait_for(process: "subprocess.Popen[bytes]", answers: Callable[[], object], log: Path) -> None:
    deadline = time.monotonic() + START_S
    while process.poll() is None and time.monotonic() < deadline:
        try:
            answers()
        except OSError:
            time.sleep(POLL_S)
        else:
            return
    raise AssertionError(f"{process.args!r} did not answer; it says:\n{log.read_text()[-2000:]}")


def ask(port: int, method: str, path: str, document: object = None) -> Any:
    """The JSON that a partner's control endpoint answers; anything but success fails the test."""
    connection = http.client.HTTPConnection(HOST, port, timeout=CONTROL_S)
    try:
        body = None if document is None else json.dumps(document)
        connection.request(method, path, body, {"Content-Type": "application/json"})
        answer = connection.getresponse()
        text = answer.read()
    finally:
        connection.close()
    assert answer.status < 300, f"{method} {path} is answered {answer.status}: {text!r}"
    return json.loads(text)
