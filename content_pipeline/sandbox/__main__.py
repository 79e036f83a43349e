"""``python -m content_pipeline.sandbox``: the provider as a process of its own.

What belongs here: arguments, the data folder's files, signals and detaching. Options are made from
the fields of the settings, so there is one list of them.
"""

import argparse
import asyncio
import contextlib
import os
import secrets
import signal
import socket
import sys
from collections.abc import Sequence
from pathlib import Path

from pydantic import ValidationError

from content_pipeline.core.errors import ConfigurationError, LockHeld
from content_pipeline.sandbox.client import SandboxClient
from content_pipeline.sandbox.controls import Controls
from content_pipeline.sandbox.faults import FaultPlan
from content_pipeline.sandbox.instance import (
    EXIT_HELD,
    HANDOVER_S,
    LOCK_FILE,
    InstanceRecord,
    locked,
    read_record,
    write_record,
)
from content_pipeline.sandbox.journal import Journal
from content_pipeline.sandbox.provider import Provider
from content_pipeline.sandbox.server import listen, serve
from content_pipeline.sandbox.settings import ProviderSettings

HELD = "another sandbox provider works on this folder; stop it first"


def _arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m content_pipeline.sandbox",
        description="An OpenAI-compatible provider on loopback that writes articles from facts.",
    )
    parser.add_argument("--port", type=int, default=0, help="0: last time's, or any free one")
    parser.add_argument("--data", type=Path, help="folder of journal and port.json; none: memory")
    parser.add_argument("--faults", type=Path, help="JSON file with a plan of faults")
    parser.add_argument("--detach", action="store_true", help="go on in the background")
    for name, field in ProviderSettings.model_fields.items():
        nargs = "*" if name == "models" else None
        text = f"{field.description} (default: {field.default!r})"
        parser.add_argument(f"--{name.replace('_', '-')}", nargs=nargs, help=text)
    return parser.parse_args(argv)


def _listener(port: int, folder: Path | None) -> socket.socket:
    """A socket on ``port``; for 0 on the last instance's, so that its clients find it again."""
    last = read_record(folder) if folder and not port else None
    if last is not None:
        with contextlib.suppress(OSError):
            return listen(last.port)
    return listen(port)


async def _run(provider: Provider, listener: socket.socket, folder: Path | None) -> None:
    controls = Controls(provider, secrets.token_hex(16))
    for name in (signal.SIGINT, signal.SIGTERM):
        asyncio.get_running_loop().add_signal_handler(name, controls.stop.set)
    port = listener.getsockname()[1]
    record = InstanceRecord(
        base_url=SandboxClient(port).base_url, port=port, pid=os.getpid(), token=controls.token
    )
    if folder:
        write_record(folder, record)
    sys.stdout.write(f"{record.base_url}\n")
    sys.stdout.flush()

    def wanted() -> bool:
        # Without its record in the data folder nobody could find this process again: the project
        # is gone, or was made anew.
        return folder is None or read_record(folder) == record

    await serve(controls, listener, wanted)


def _prepared_and_run(arguments: argparse.Namespace, stack: contextlib.ExitStack) -> None:
    """Open everything, go into the background if asked, and serve.

    All that can fail comes before the fork, so whoever waits for the exit code learns of it. The
    folder's lock goes over to the child with the open file.
    """
    given = {name: getattr(arguments, name) for name in ProviderSettings.model_fields}
    settings = ProviderSettings.model_validate({k: v for k, v in given.items() if v is not None})
    plan = arguments.faults and FaultPlan.model_validate_json(arguments.faults.read_bytes())
    folder: Path | None = arguments.data
    if folder:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        stack.enter_context(locked(folder / LOCK_FILE, HANDOVER_S, HELD))
    journal = Journal.in_folder(folder) if folder else Journal.in_memory()
    stack.callback(journal.close)
    listener = stack.enter_context(_listener(arguments.port, folder))
    if arguments.detach:
        if os.fork():
            return
        os.setsid()
    asyncio.run(_run(Provider(settings, journal, plan), listener, folder))


def main(argv: Sequence[str] | None = None) -> int:
    """Run the provider until it is stopped or idle; the exit code."""
    arguments = _arguments(argv)
    try:
        with contextlib.ExitStack() as stack:
            _prepared_and_run(arguments, stack)
    except LockHeld as error:
        sys.stderr.write(f"the sandbox provider cannot run: {error}\n")
        return EXIT_HELD
    except (ConfigurationError, ValidationError, OSError) as error:
        sys.stderr.write(f"the sandbox provider cannot run: {error}\n")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
