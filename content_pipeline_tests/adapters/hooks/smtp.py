"""A small SMTP server on loopback that keeps what it is handed in, and misbehaves on request."""

import base64
import socket
import socketserver
import ssl
import threading
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass, field
from email import message_from_bytes, policy
from email.message import EmailMessage
from pathlib import Path

DRIP_S = 0.02

CERTIFICATE = Path(__file__).with_name("loopback.pem")
"""Of 127.0.0.1, with its key, which is good for nothing else."""


@dataclass(slots=True)
class Mailbox:
    """What one server was handed in, and how it answers."""

    answers: Mapping[str, bytes] = field(default_factory=dict)
    """First word of a command (``DATA`` for the text as well: ``.``) → its answer."""
    drips_at: str | None = None
    """A command whose answer never ends."""
    encryption: str = "none"
    port: int = 0
    sessions: int = 0
    commands: list[str] = field(default_factory=list)
    logins: list[str] = field(default_factory=list)
    messages: list[EmailMessage] = field(default_factory=list)
    stopping: threading.Event = field(default_factory=threading.Event)


class _Session(socketserver.StreamRequestHandler):
    box: Mailbox

    def setup(self) -> None:
        if self.box.encryption == "tls":
            self._encrypt()
        super().setup()

    def _encrypt(self) -> None:
        context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        context.load_cert_chain(CERTIFICATE)
        self.request = context.wrap_socket(self.request, server_side=True)

    def handle(self) -> None:
        self.box.sessions += 1
        self._say("CONNECT", b"220 loopback ready")
        while line := self.rfile.readline():
            command = line.decode().strip()
            word = command.split(" ")[0].upper()
            self.box.commands.append(word)
            match word:
                case "EHLO":
                    offers = b"250-STARTTLS\r\n" if self.box.encryption == "starttls" else b""
                    self._say(word, b"250-loopback\r\n" + offers + b"250 AUTH PLAIN")
                case "STARTTLS":
                    self._say(word, b"220 go on")
                    self._encrypt()
                    super().setup()
                case "AUTH":
                    self.box.logins.append(base64.b64decode(command.split(" ")[2]).decode())
                    self._say(word, b"235 welcome")
                case "DATA":
                    if self._say(word, b"354 go on"):
                        self._take()
                case "QUIT":
                    self._say(word, b"221 bye")
                    return
                case _:
                    self._say(word, b"250 fine")

    def _take(self) -> None:
        lines = []
        for line in iter(self.rfile.readline, b".\r\n"):
            lines.append(line.removeprefix(b".") if line.startswith(b"..") else line)
        parsed = message_from_bytes(b"".join(lines), policy=policy.default)
        self.box.messages.append(parsed)
        self._say(".", b"250 kept")

    def _say(self, word: str, usual: bytes) -> bool:
        """Answer; whether as usual."""
        while word == self.box.drips_at:
            self.wfile.write(b"x")
            if self.box.stopping.wait(DRIP_S):
                return False
        said = self.box.answers.get(word, usual)
        self.wfile.write(said + b"\r\n")
        return said is usual

    def finish(self) -> None:
        with suppress(OSError):  # the client cut the connection
            super().finish()
        with closing(self.request), suppress(OSError):
            self.request.shutdown(socket.SHUT_RDWR)


class _Server(socketserver.ThreadingTCPServer):
    daemon_threads = True
    block_on_close = False

    def handle_error(self, *_: object) -> None:
        """A client that cuts the connection is what is tested."""


@contextmanager
def mail_server(
    answers: Mapping[str, bytes] | None = None,
    *,
    drips_at: str | None = None,
    encryption: str = "none",
) -> Iterator[Mailbox]:
    box = Mailbox(
        answers={} if answers is None else answers, drips_at=drips_at, encryption=encryption
    )
    handler = type("Session", (_Session,), {"box": box})
    with _Server(("127.0.0.1", 0), handler) as server:
        box.port = server.server_address[1]
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield box
        finally:
            box.stopping.set()
            server.shutdown()
            thread.join()
