"""A worker that stops in the middle of a claim: a process that holds the count of an account.

What belongs here: the process, and the way to start it and let it go. It says ``holding`` once its
transaction has counted, and keeps it open until its input ends or it is killed.
"""

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from content_pipeline.ledger import call_limits
from content_pipeline.ledger.database import Ledger, create_ledger_engine

ROOT = Path(__file__).parents[2]


@contextmanager
def stalled_claim(ledger: Ledger, route: str, most_calls: int) -> Iterator[subprocess.Popen[str]]:
    """Another process is in the middle of a claim on ``route`` for as long as this lasts."""
    url = ledger.engine.url.render_as_string(hide_password=False)
    process = subprocess.Popen(
        [sys.executable, "-m", "content_pipeline_tests.ledger.stalled"],
        cwd=ROOT,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    try:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(json.dumps({"url": url, "route": route, "most": most_calls}) + "\n")
        process.stdin.flush()
        assert process.stdout.readline() == "holding\n"
        yield process
    finally:
        process.kill()
        process.communicate()


def main() -> None:
    order = json.loads(sys.stdin.readline())
    ledger = Ledger(create_ledger_engine(order["url"]))
    with ledger.begin() as connection:
        call_limits.capacity(connection, order["route"], most_calls=order["most"])
        sys.stdout.write("holding\n")
        sys.stdout.flush()
        sys.stdin.read()


if __name__ == "__main__":
    main()
