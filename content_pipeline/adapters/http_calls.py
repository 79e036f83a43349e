"""One HTTP request and its answer: by the wall clock, bounded, and never redirected.

What belongs here: sending, and what it means when no answer came. What an answer means is decided
in the adapter that asked. Nothing of the environment is used: no proxy, no netrc, no credentials.
Nothing is logged: the address of a hook is a secret.
"""

import json
import threading
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any

import httpx2

from content_pipeline.adapters.deadline_transport import DeadlineTransport
from content_pipeline.core.errors import CallFailed
from content_pipeline.core.failures import Failure, FailureClass

USER_AGENT = "content-pipeline"

CONNECT_S = 10.0
"""Seconds for TCP and TLS together; a service that takes longer is not well."""

MAX_CONNECTIONS = 64
"""One per thread that may share a client, and so the most requests at once."""

MAX_SENT_BYTES = 4 * 1024 * 1024
"""A page is about 50 kB. A server that refuses a large body closes while we send, which cannot be
told from a broken connection, so nothing near the usual limits of 8 MB is sent."""

_NEVER_SENT = (
    httpx2.ConnectError,
    httpx2.ConnectTimeout,
    httpx2.PoolTimeout,
    httpx2.ProxyError,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Call:
    """One request, below the service's address."""

    doing: str
    """For people: "publishing /austria/"."""
    method: str
    path: str
    params: Mapping[str, str] = field(default_factory=dict)
    document: Any = field(default=None, repr=False)
    """Sent as JSON; None: no body."""
    content: bytes | None = field(default=None, repr=False)
    """JSON that is sent as it stands, instead of ``document``."""
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    repeatable: bool = False
    """Whether doing it twice does no harm, whatever its method."""

    @property
    def writes(self) -> bool:
        """Whether the request may change something that a second one would change again."""
        return self.method != "GET" and not self.repeatable


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What came back, whatever its status."""

    status: int
    headers: Mapping[str, str]
    """By lower-case name."""
    body: bytes = field(repr=False)

    def document(self) -> Any:
        """The JSON value of the body. Raises ValueError for anything else."""
        try:
            return json.loads(self.body)
        except RecursionError:
            raise ValueError("the JSON is nested too deeply") from None


class HTTPService:
    """Sends requests to one service; safe for many threads."""

    def __init__(
        self,
        base_url: str,
        *,
        name: str,
        headers: Mapping[str, str],
        deadline_s: float,
        at_once: int | None = None,
    ) -> None:
        """``name`` is the service for people; ``deadline_s`` the wall clock of one request.

        ``at_once``: requests beyond so many wait for their turn, before their time begins.
        """
        self.name = name
        self._base_url = base_url
        self._turns = threading.Semaphore(at_once or MAX_CONNECTIONS)
        self._limits = httpx2.Timeout(
            connect=CONNECT_S, pool=CONNECT_S, write=deadline_s, read=deadline_s
        )
        self._transport = DeadlineTransport(max_connections=MAX_CONNECTIONS)
        self._client = httpx2.Client(
            transport=self._transport,
            # identity: the bound on an answer's size counts bytes as they come
            headers={**headers, "User-Agent": USER_AGENT, "Accept-Encoding": "identity"},
            follow_redirects=False,
            trust_env=False,
        )

    def send(self, call: Call) -> Answer:
        """The answer to ``call``. Raises CallFailed when there is none.

        Of class not_sent or request when nothing left; after that uncertain for what may have
        changed something, and transient for a mere question.
        """
        content = call.content
        if call.document is not None:
            content = json.dumps(call.document).encode()
        if content is not None and len(content) > MAX_SENT_BYTES:
            raise self._failed(
                call,
                FailureClass.REQUEST,
                f"what is to be sent is larger than {MAX_SENT_BYTES >> 20} MB, nothing was sent; "
                "shorten it",
            )
        try:
            with self._turns:
                return self._exchange(call, content)
        except _NEVER_SENT:
            words = "it could not be reached, nothing was sent; check its address, DNS and network"
            failed = self._failed(call, FailureClass.NOT_SENT, words)
        except (httpx2.UnsupportedProtocol, httpx2.InvalidURL):
            words = "its address is no http(s) URL, nothing was sent; correct the address"
            failed = self._failed(call, FailureClass.REQUEST, words)
        except httpx2.TimeoutException:
            failed = self._lost(call, "no whole answer came before the deadline")
        except (httpx2.HTTPError, httpx2.StreamError):
            failed = self._lost(call, "the connection broke before a whole answer came")
        raise failed from None

    def close(self) -> None:
        """Close every connection."""
        self._client.close()

    def _exchange(self, call: Call, content: bytes | None) -> Answer:
        headers = dict(call.headers)
        if content is not None:
            headers["Content-Type"] = "application/json"
        request = self._client.build_request(
            call.method,
            self._base_url + call.path,
            params=dict(call.params) or None,
            content=content,
            headers=headers,
            timeout=self._limits,
        )
        # By the transport: the client would log the address.
        with closing(self._transport.handle_request(request)) as answer:
            body = b"".join(answer.iter_raw())
            return Answer(
                status=answer.status_code,
                headers={name.lower(): value for name, value in answer.headers.items()},
                body=body,
            )

    def _lost(self, call: Call, words: str) -> CallFailed:
        if call.writes:
            return self._failed(
                call, FailureClass.UNCERTAIN, f"{words}; it may have taken effect, so it is asked"
            )
        return self._failed(call, FailureClass.TRANSIENT, f"{words}; it is asked again later")

    def _failed(self, call: Call, failure_class: FailureClass, words: str) -> CallFailed:
        message = f"{self.name}, {call.doing}: {words}"
        return CallFailed(Failure(failure_class=failure_class, message=message))
