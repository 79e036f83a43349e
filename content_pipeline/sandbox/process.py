"""A sandbox server as a process of its own, whatever service it imitates.

What belongs here: arguments, the data folder's files, signals and detaching. Options are made from
the fields of the settings, so there is one list of them.
"""

import argparse
import asyncio
import contextlib
import os
import signal
import socket
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

from pydantic import BaseModel, ValidationError

from content_pipeline.core.errors import ConfigurationError, LockHeld
from content_pipeline.sandbox.connections import Program, listen, serve
from content_pipeline.sandbox.instance import (
    EXIT_HELD,
    HANDOVER_S,
    LOCK_FILE,
    InstanceRecord,
    locked,
    read_record,
    write_record,
)

Settings = TypeVar("Settings", bound=BaseModel)
Plan = TypeVar("Plan", bound=BaseModel)


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind(Generic[Settings, Plan]):
    """One kind of sandbox server and how it is made."""

    what: str
    """As in "the sandbox provider"."""
    module: str
    """What ``python -m`` runs."""
    description: str
    settings: type[Settings]
    plan: type[Plan]
    base_url: Callable[[int], str]
    """Where clients find the service, given its port."""
    opened: Callable[[Settings, Path | None, Plan | None, contextlib.ExitStack], Program]
    """The program on the journal in the folder, or in memory; closed by the stack."""


def run(kind: Kind[Settings, Plan], argv: Sequence[str] | None = None) -> int:
    """Run a server of ``kind`` until it is stopped or idle; the exit code."""
    arguments = _arguments(kind, argv)
    try:
        with contextlib.ExitStack() as stack:
            _prepared_and_run(kind, arguments, stack)
    except LockHeld as error:
        sys.stderr.write(f"the sandbox {kind.what} cannot run: {error}\n")
        return EXIT_HELD
    except (ConfigurationError, ValidationError, OSError) as error:
        sys.stderr.write(f"the sandbox {kind.what} cannot run: {error}\n")
        return 1
    return 0


def _arguments(kind: Kind[Settings, Plan], argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog=f"python -m {kind.module}", description=kind.description)
    parser.add_argument("--port", type=int, default=0, help="0: last time's, or any free one")
    parser.add_argument("--data", type=Path, help="folder of journal and port.json; none: memory")
    parser.add_argument("--faults", type=Path, help="JSON file with a plan of faults")
    parser.add_argument("--detach", action="store_true", help="go on in the background")
    for name, field in kind.settings.model_fields.items():
        nargs = "*" if isinstance(field.default, tuple) else None
        text = f"{field.description} (default: {field.default!r})".replace("%", "%%")
        parser.add_argument(f"--{name.replace('_', '-')}", nargs=nargs, help=text)
    return parser.parse_args(argv)


def _prepared_and_run(
    kind: Kind[Settings, Plan], arguments: argparse.Namespace, stack: contextlib.ExitStack
) -> None:
    """Open everything, go into the background if asked, and serve.

    All that can fail comes before the fork, so whoever waits for the exit code learns of it. The
    folder's lock goes over to the child with the open file.
    """
    given = {name: getattr(arguments, name) for name in kind.settings.model_fields}
    settings = kind.settings.model_validate({k: v for k, v in given.items() if v is not None})
    plan = arguments.faults and kind.plan.model_validate_json(arguments.faults.read_bytes())
    folder: Path | None = arguments.data
    if folder:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        held = f"another sandbox {kind.what} works on this folder; stop it first"
        stack.enter_context(locked(folder / LOCK_FILE, HANDOVER_S, held))
    program = kind.opened(settings, folder, plan, stack)
    listener = stack.enter_context(_listener(arguments.port, folder))
    if arguments.detach:
        if os.fork():
            return
        os.setsid()
    asyncio.run(_serve(kind, program, listener, folder))


def _listener(port: int, folder: Path | None) -> socket.socket:
    """A socket on ``port``; for 0 on the last instance's, so that its clients find it again."""
    last = read_record(folder) if folder and not port else None
    if last is not None:
        with contextlib.suppress(OSError):
            return listen(last.port)
    return listen(port)


async def _serve(
    kind: Kind[Any, Any], program: Program, listener: socket.socket, folder: Path | None
) -> None:
    for name in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(name, program.stop.set)
    port = listener.getsockname()[1]
    record = InstanceRecord(
        base_url=kind.base_url(port), port=port, pid=os.getpid(), token=program.token
    )
    if folder:
        write_record(folder, record)
    sys.stdout.write(f"{record.base_url}\n")
    sys.stdout.flush()

    def wanted() -> bool:
        # Without its record in the data folder nobody could find this process again: the project
        # is gone, or was made anew.
        return folder is None or read_record(folder) == record

    await serve(program, listener, wanted)
