"""Errors as WordPress's REST API words them: a code, a message and the status once more.

What belongs here: the shape of an error, and those that several endpoints share.
"""

from collections.abc import Mapping
from typing import Any

from content_pipeline.sandbox.cms.accounts import Account


class RestError(Exception):
    """A refusal on its way to the client."""

    def __init__(
        self,
        status: int,
        code: str,
        message: str,
        data: Mapping[str, Any] | None = None,
        **beside: Any,
    ) -> None:
        super().__init__(message)
        self.status = status
        self.code = code
        self.data = data or {}
        self.beside = beside
        """What stands beside ``data`` in the body."""

    @property
    def document(self) -> dict[str, Any]:
        """The body of the answer."""
        data = {"status": self.status, **self.data}
        return {"code": self.code, "message": str(self), "data": data, **self.beside}


def lacking_rights(who: Account | None) -> int:
    """The status of a refusal: 401 for nobody, 403 for somebody without the right."""
    return 401 if who is None else 403


def forbidden(who: Account | None, code: str, message: str) -> RestError:
    """A refusal for lack of rights."""
    return RestError(lacking_rights(who), code, f"Sorry, you are not allowed to {message}.")


def invalid_parameter(name: str, message: str, code: str, data: Any = None) -> RestError:
    """One parameter that is not acceptable; ``data`` goes with its details."""
    details = {name: {"code": code, "message": message, "data": data}}
    return RestError(
        400,
        "rest_invalid_param",
        f"Invalid parameter(s): {name}",
        {"params": {name: message}, "details": details},
    )


def not_in(name: str, place: str, allowed: tuple[str, ...]) -> RestError:
    """A value outside of a closed list; ``place`` names the value inside of the parameter."""
    *first, last = allowed
    comma = "," if len(first) > 1 else ""
    listed = f"{', '.join(first)}{comma} and {last}"
    return invalid_parameter(name, f"{place} is not one of {listed}.", "rest_not_in_enum")


def invalid_id() -> RestError:
    """No page bears the id."""
    return RestError(404, "rest_post_invalid_id", "Invalid post ID.")


def no_route() -> RestError:
    """No endpoint has this address and method."""
    message = "No route was found matching the URL and request method."
    return RestError(404, "rest_no_route", message)
