"""Who can log in: accounts, their roles, and who asks by a request's credentials.

What belongs here: the fixed cast of a sandbox. The passwords are no secret: they open nothing but
a server on loopback that holds invented pages.
"""

import base64
import binascii
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from content_pipeline.sandbox.wire import Request


class Role(StrEnum):
    """What an account may do: an author writes posts and may not touch pages."""

    ADMINISTRATOR = "administrator"
    EDITOR = "editor"
    AUTHOR = "author"


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """One account with its application password."""

    id: int
    login: str
    role: Role
    app_password: str = field(repr=False)

    @property
    def edits_pages(self) -> bool:
        """Whether the account may create, change and delete any page."""
        return self.role is not Role.AUTHOR

    @property
    def capabilities(self) -> Mapping[str, bool]:
        """As ``/users/me`` tells them, of those about pages and posts."""
        names = ["read", "edit_posts", "publish_posts", "delete_posts", "upload_files"]
        if self.edits_pages:
            verbs = (
                "edit",
                "publish",
                "delete",
                "edit_others",
                "edit_published",
                "delete_others",
                "delete_published",
            )
            names += [f"{verb}_pages" for verb in verbs]
            names += ["edit_private_pages", "read_private_pages", "unfiltered_html"]
        return dict.fromkeys([*names, self.role.value], True)


def _account(number: int, login: str, role: Role) -> Account:
    # Four letters at a time, as WordPress shows them.
    words = ("sand", "boxx", f"{login:x<8.8}"[:4], f"{login:x<8.8}"[4:], "pass", "word")
    return Account(id=number, login=login, role=role, app_password=" ".join(words))


ADMIN = _account(1, "admin", Role.ADMINISTRATOR)
PIPELINE = _account(2, "pipeline", Role.EDITOR)
AUTHOR = _account(3, "author", Role.AUTHOR)
PERSON = _account(4, "person", Role.EDITOR)
"""Whose name edits by hand bear."""

ACCOUNTS = (ADMIN, PIPELINE, AUTHOR, PERSON)


def asker(request: Request) -> Account | None:
    """Who asks; None for nobody, and for wrong credentials as well.

    So measured: WordPress serves a request with a wrong application password as anybody's.
    """
    scheme, _, encoded = request.headers.get("authorization", "").partition(" ")
    if scheme.lower() != "basic":
        return None
    try:
        given = base64.b64decode(encoded.strip(), validate=True).decode()
    except (binascii.Error, UnicodeDecodeError):
        return None
    login, _, password = given.partition(":")
    for account in ACCOUNTS:
        if account.login == login and _bare(account.app_password) == _bare(password):
            return account
    return None


def _bare(password: str) -> str:
    """Spaces only make an application password readable."""
    return re.sub(r"[^A-Za-z0-9]", "", password)


def account_document(account: Account, home: str, *, for_editing: bool) -> dict[str, Any]:
    """``/users/me``; rights and roles only show in the context ``edit``."""
    api = f"{home}/wp-json/wp/v2/users"
    document: dict[str, Any] = {
        "id": account.id,
        "name": account.login,
        "url": "",
        "description": "",
        "link": f"{home}/author/{account.login}/",
        "slug": account.login,
        "meta": [],
        "_links": {"self": [{"href": f"{api}/{account.id}"}], "collection": [{"href": api}]},
    }
    if for_editing:
        document |= {
            "username": account.login,
            "email": f"{account.login}@example.test",
            "locale": "en_US",
            "roles": [account.role.value],
            "capabilities": dict(account.capabilities),
            "extra_capabilities": {account.role.value: True},
        }
    return document
