"""Real processes of ``content-pipeline`` that need not import everything anew.

Most of a command's 1.5 s of processor time are imports. Here one process makes them once and then
becomes the command by a fork, so each test has a process of its own with its own arguments,
environment, folder, output, exit status and signals. What only the installed program itself can
show (its entry point, its start) is tested with the program.
"""

import gc
import json
import os
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import TypedDict

IMPORTED_LATE = (
    "alembic.command",
    "content_pipeline.adapters.llm.openai_model",
    "content_pipeline.adapters.llm.prices",
    "content_pipeline.adapters.tables",
    "content_pipeline.cli",
    "genai_prices.data",
    "openai.resources.chat.completions",
    "pandas",
    "psycopg",
    "rich.progress",
)
"""What commands import, some of it only when they need it."""


class Order(TypedDict):
    """One command to become."""

    arguments: Sequence[str]
    folder: str
    environment: dict[str, str]
    output: str
    errors: str
    """Where standard output and standard error go: files, or a terminal."""


def say(word: object) -> None:
    """Tell whoever gives the orders."""
    sys.stdout.write(f"{word}\n")
    sys.stdout.flush()


def take_orders() -> Order | None:
    """Serve orders from standard input; returns in the child, and at the end of all orders."""
    while line := sys.stdin.readline():
        order: Order = json.loads(line)
        pid = os.fork()
        if pid == 0:
            return order
        say(pid)
        _, status = os.waitpid(pid, 0)
        say(os.waitstatus_to_exitcode(status))
    return None


def become(order: Order) -> None:
    """Be the command of ``order``; ends the process."""
    from content_pipeline.cli import main

    os.chdir(order["folder"])
    own = os.environ  # noqa: TID251 - a command gets an environment of its own
    own.clear()
    own.update(order["environment"])
    for descriptor, place in ((0, os.devnull), (1, order["output"]), (2, order["errors"])):
        opened = os.open(place, os.O_RDWR | os.O_NOCTTY)
        os.dup2(opened, descriptor)
        os.close(opened)
    main(args=list(order["arguments"]), prog_name="content-pipeline")


if __name__ == "__main__":
    for name in IMPORTED_LATE:
        import_module(name)
    gc.freeze()  # else every child's collector walks, and copies, all that was imported
    say("ready")
    if (taken := take_orders()) is not None:
        become(taken)
