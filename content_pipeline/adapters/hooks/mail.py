"""Mail: tells people what was published and taken off the site.

What belongs here: the message, and sending it by SMTP within a deadline. Its Message-ID is the same
when the very same news is sent again, by which mail programs drop the second one. Nothing that the
server says is quoted: it may repeat the login.
"""

import smtplib
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from email.message import EmailMessage
from email.utils import format_datetime
from urllib.parse import urlsplit

from content_pipeline.core.errors import CallFailed
from content_pipeline.core.failures import Failure, FailureClass
from content_pipeline.core.ports import Announcement, HookTerms, SiteNews

MAX_LISTED = 100
"""Pages named in one mail; more are counted."""

ALL_PAGES = 10_000_000
"""In one mail."""

CONNECT_S = 10.0

READY = 220

_FULL_OR_BUSY = frozenset({421, 450, 451, 452})
_REFUSED_LOGIN = frozenset({530, 534, 535, 538})


@dataclass(frozen=True, slots=True, kw_only=True)
class MailServer:
    """Where mails are handed in."""

    host: str
    port: int
    encryption: str
    """``starttls``, ``tls`` or ``none``."""
    user: str | None = None
    password: str | None = field(default=None, repr=False)
    deadline_s: float = 30.0
    """Wall clock of handing in one mail."""


class Mail:
    """Sends one mail for all that changed."""

    def __init__(
        self,
        server: MailServer,
        *,
        kind: str,
        terms: HookTerms,
        sender: str,
        to: tuple[str, ...],
        clock: Callable[[], datetime],
    ) -> None:
        self.kind = kind
        self.terms = terms
        self._server = server
        self._sender = sender
        self._to = to
        self._clock = clock

    def tell(self, news: SiteNews) -> Announcement:
        """One mail to everybody. Raises CallFailed."""
        message = self._message(news)
        try:
            with _connected(self._server) as smtp:
                refused = smtp.send_message(message)
        except (OSError, ValueError) as error:  # SMTPException is an OSError
            raise CallFailed(_failure(self._server, error)) from None
        location = message["Message-ID"]
        if refused:
            location += f", refused for {len(refused)} of {len(self._to)} addresses"
        return Announcement(location=location, changed=True)

    def close(self) -> None:
        """Nothing is kept open between mails."""

    def _message(self, news: SiteNews) -> EmailMessage:
        message = EmailMessage()
        message["From"] = self._sender
        message["To"] = ", ".join(self._to)
        message["Subject"] = _subject(news)
        message["Date"] = format_datetime(self._clock())
        message["Message-ID"] = f"<{news.delivery_id}@{urlsplit(news.base_url).hostname}>"
        message["Auto-Submitted"] = "auto-generated"
        message.set_content(_text(news))
        return message


def _subject(news: SiteNews) -> str:
    parts = [f"{len(news.changed)} published"] if news.changed else []
    parts += [f"{len(news.withdrawn)} taken off"] if news.withdrawn else []
    title = " ".join(news.site_title.split())
    return f"{title}: {', '.join(parts)}"


def _text(news: SiteNews) -> str:
    published = [f"{' '.join(page.title.split())}\n  {page.url}" for page in news.changed]
    parts = _section("Published", published)
    parts += _section("Taken off the site", [page.url for page in news.withdrawn])
    return "\n".join(parts)


def _section(heading: str, lines: list[str]) -> list[str]:
    if not lines:
        return []
    more = [f"and {len(lines) - MAX_LISTED} more"] if len(lines) > MAX_LISTED else []
    return [f"{heading} ({len(lines)}):", "", *lines[:MAX_LISTED], *more, ""]


@contextmanager
def _connected(server: MailServer) -> Iterator[smtplib.SMTP]:
    """A session after its login; its connection is cut when the deadline has passed."""
    smtp = _unconnected(server)
    timer = threading.Timer(server.deadline_s, _cut, [smtp])
    timer.daemon = True
    timer.start()
    try:
        code, _ = smtp.connect(server.host, server.port)
        if code != READY:
            raise smtplib.SMTPConnectError(code, "")
        with smtp:
            if server.encryption == "starttls":
                smtp.starttls(context=ssl.create_default_context())
            if server.user is not None and server.password is not None:
                smtp.login(server.user, server.password)
            yield smtp
    finally:
        timer.cancel()
        smtp.close()


def _unconnected(server: MailServer) -> smtplib.SMTP:
    # Our own name is given, since looking it up may take longer than any deadline.
    name, timeout_s = socket.gethostname(), min(CONNECT_S, server.deadline_s)
    smtp = (
        smtplib.SMTP_SSL(
            local_hostname=name, timeout=timeout_s, context=ssl.create_default_context()
        )
        if server.encryption == "tls"
        else smtplib.SMTP(local_hostname=name, timeout=timeout_s)
    )
    # The name that its certificate is for. Given to the constructor, it would connect at once, and
    # a greeting that drips could not be cut.
    setattr(smtp, "_host", server.host)  # noqa: B010
    return smtp


def _cut(smtp: smtplib.SMTP) -> None:
    """End what waits for the server: a line that drips would outlast every timeout."""
    connection = smtp.sock
    if connection is not None:
        try:
            socket.socket.shutdown(connection, socket.SHUT_RDWR)
        except OSError:
            return


def _failure(server: MailServer, error: Exception) -> Failure:
    status = getattr(error, "smtp_code", None)
    code = status if isinstance(status, int) else None
    failure_class, words = _meaning(error, code)
    told = f" (answered {code})" if code else ""
    return Failure(
        failure_class=failure_class,
        message=f"The mail server {server.host}{told}: {words}",
        code=str(code) if code else None,
    )


def _meaning(error: Exception, code: int | None) -> tuple[FailureClass, str]:
    if isinstance(error, smtplib.SMTPAuthenticationError) or code in _REFUSED_LOGIN:
        return FailureClass.AUTH, "it refuses the login; correct user and password"
    if isinstance(error, smtplib.SMTPNotSupportedError):
        words = "it does not offer the encryption or login asked for; correct `encryption` and port"
        return FailureClass.REQUEST, words
    if isinstance(error, ssl.SSLCertVerificationError):
        return FailureClass.REQUEST, "its certificate is not valid for its name; correct `host`"
    if isinstance(error, smtplib.SMTPRecipientsRefused):
        codes = {answer[0] for answer in error.recipients.values()}
        if not codes & _FULL_OR_BUSY:
            return FailureClass.REQUEST, "it refuses every recipient; correct `to`"
        return FailureClass.TRANSIENT, "it takes no mail for them now; it is tried again later"
    if code in _FULL_OR_BUSY:
        return FailureClass.TRANSIENT, "it takes no mail now; it is tried again later"
    if code is not None and code >= 500:
        return FailureClass.REQUEST, "it refuses the mail; check `sender`, `to` and its own log"
    if isinstance(error, ConnectionRefusedError | socket.gaierror):
        return FailureClass.NOT_SENT, "it could not be reached; check `host`, `port` and network"
    if isinstance(error, ValueError):
        return FailureClass.REQUEST, "the mail cannot be written; check `sender`, `to` and login"
    return FailureClass.TRANSIENT, "the connection broke or took too long; it is tried again later"
