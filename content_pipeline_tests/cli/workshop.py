"""A project with small sites, and its command line: what a content team does and looks at.

What belongs here: writing site files and tables, running commands, and the looks at the other
side's own truth (the provider's journal, the folder's log of writes), never at the ledger.
"""

import csv
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from content_pipeline.config import environment
from content_pipeline.sandbox.client import SandboxClient
from content_pipeline.sandbox.supervisor import ensure_provider_running
from content_pipeline_tests.operations.small_site import page_text, sitemap_paths, writes

REPOSITORY = Path(__file__).parents[2]
PROGRAM = Path(sys.executable).parent / "content-pipeline"
DATABASE = "CONTENT_PIPELINE_DATABASE_URL"
PROMPT = "Write a page about {{ name }}.\n\n{{ facts }}\n"

Row = dict[str, str]
Environment = Mapping[str, str]
NO_VARIABLES: Environment = {}

NAMES = ("Aarau", "Baden", "Chur", "Davos", "Elgg", "Fribourg")


def towns(count: int = 6) -> list[Row]:
    """Rows of a topic table; the column ``note`` is used by no site."""
    return [
        {
            "id": f"t{number}",
            "name": f"{NAMES[number % 6]} {number}",
            "river": ("Aare", "Reuss", "Rhine")[number % 3],
            "people": f"{10_000 + 37 * number:,}",
            "note": "of no use",
        }
        for number in range(count)
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class Finished:
    """A command that ended."""

    status: int
    """The exit status; negative: the signal that ended it."""
    out: str
    err: str

    def row(self, name: str) -> tuple[str, str]:
        """Count and note of the row of the printed table that begins with ``name``."""
        for line in self.out.splitlines():
            cells = [cell.strip() for cell in line.split("│")]
            if len(cells) >= 4 and cells[1] == name:
                return cells[2], cells[3] if len(cells) > 4 else ""
        raise AssertionError(f"no row {name!r} in:\n{self.out}\n{self.err}")

    def count(self, name: str) -> int:
        return int(self.row(name)[0].replace(",", ""))


class Starter:
    """Starts commands by forking one process that has imported everything."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "content_pipeline_tests.cli.preloaded"],
            cwd=REPOSITORY,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def start(self, order: Mapping[str, Any]) -> int:
        """Start a command; its process id."""
        if not self._was_ready:
            assert self._line() == "ready"
            self._was_ready = True
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(order) + "\n")
        self._process.stdin.flush()
        return int(self._line())

    def wait(self) -> int:
        """The exit status of the command that was started last."""
        return int(self._line())

    def end(self) -> None:
        """End the process, which does so by itself when nobody gives orders any more."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait()
        self._process.stdout.close()

    _was_ready = False

    def _line(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline().strip()


@dataclass(frozen=True, slots=True, kw_only=True)
class Workshop:
    """One project and its command line."""

    root: Path
    starter: Starter = field(repr=False)
    environment: Environment = field(repr=False)

    @classmethod
    def in_folder(
        cls, root: Path, starter: Starter, *, database_url: str | None = None
    ) -> "Workshop":
        """A new project; ``database_url`` None: with an embedded database of its own."""
        root.mkdir()
        (root / "dagster.yaml").touch()
        (root / "pyproject.toml").write_text('[tool.dg.project]\nroot_module = "site_pkg"\n')
        around = environment()
        own = {name: around[name] for name in ("PATH", "HOME", "LANG") if name in around}
        own |= {"COLUMNS": "250"} | ({DATABASE: database_url} if database_url else {})
        return cls(root=root, starter=starter, environment=own)

    def site(self, name: str, rows: list[Row] | None = None, **changes: Any) -> "TownSite":
        """A new site of Swiss towns; a change is named by its place, e.g. ``lane__lease_s=1``."""
        site = TownSite(workshop=self, name=name, folder=self.root / "site_pkg" / "defs" / name)
        site.folder.mkdir(parents=True)
        (site.folder / "prompt.md").write_text(PROMPT)
        site.declare(**changes)
        site.write(towns() if rows is None else rows)
        return site

    def cli(
        self, *arguments: str, folder: Path | None = None, environment: Environment = NO_VARIABLES
    ) -> Finished:
        """Run a command to its end, in a process of its own."""
        with self.started(*arguments, folder=folder, environment=environment) as command:
            return command.finished()

    @contextmanager
    def started(
        self,
        *arguments: str,
        folder: Path | None = None,
        terminal: str | None = None,
        environment: Environment = NO_VARIABLES,
    ) -> Iterator["Started"]:
        """A command at work; ``terminal``: the device that is its standard error."""
        with tempfile.TemporaryDirectory() as place:
            output, errors = Path(place) / "output", Path(place) / "errors"
            output.touch()
            errors.touch()
            pid = self.starter.start(
                {
                    "arguments": arguments,
                    "folder": str(folder or self.root),
                    "environment": {**self.environment, **environment},
                    "output": str(output),
                    "errors": terminal or str(errors),
                }
            )
            yield Started(pid=pid, starter=self.starter, output=output, errors=errors)

    def program(self, *arguments: str) -> Finished:
        """Run the installed program itself."""
        done = subprocess.run(
            [PROGRAM, *arguments],
            cwd=self.root,
            env=dict(self.environment),
            capture_output=True,
            text=True,
            check=False,
        )
        return Finished(status=done.returncode, out=done.stdout, err=done.stderr)

    @property
    def provider(self) -> SandboxClient:
        """The project's sandbox provider."""
        return ensure_provider_running(self.root / ".content_pipeline").client()

    def requests(self) -> dict[str, int]:
        """How often the provider was asked for what, by its own count."""
        counted: dict[str, int] = self.provider.truth()["requests_by_operation"]
        return counted


@dataclass(frozen=True, slots=True, kw_only=True)
class Started:
    """A command at work."""

    pid: int
    starter: Starter = field(repr=False)
    output: Path
    errors: Path

    def finished(self) -> Finished:
        """Wait for its end."""
        status = self.starter.wait()
        return Finished(
            status=status,
            out=self.output.read_text(encoding="utf-8"),
            err=self.errors.read_text(encoding="utf-8"),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class TownSite:
    """One site of a workshop."""

    workshop: Workshop = field(repr=False)
    name: str
    folder: Path
    """Where its site file, prompt and table are."""

    @property
    def public(self) -> Path:
        return self.workshop.root / "public" / self.name

    def declare(self, **changes: Any) -> None:
        """Write the site file."""
        attributes: dict[str, Any] = {
            "site": self.name,
            "title": f"Towns of {self.name}",
            "base_url": "https://towns.example",
            "owner": "town hall",
            "topics": {"table": "topics.csv", "id": "id", "name": "name"},
            "article": {
                "facts": {"name": "Name", "river": "River", "people": "Population"},
                "must_state": ["name", "people"],
                "rules": {"min_words": 60},
            },
            "generation": {
                "provider": "sandbox",
                "model": "gpt-5-mini",
                "deadline_s": 10,
                "answer_slack_s": 0.2,
                "in_flight": 4,
                "sandbox": {"latency_median_s": 0},
            },
            "cms": {"folder": f"public/{self.name}"},
            "lane": {"lease_s": 1, "patience_s": 3, "publish_quiet_s": 0.2},
        }
        for place, value in changes.items():
            *sections, key = place.split("__")
            section = attributes
            for part in sections:
                section = section.setdefault(part, {})
            section[key] = value
        document = {"type": "content_pipeline.ContentSite", "attributes": attributes}
        (self.folder / "defs.yaml").write_text(yaml.safe_dump(document, sort_keys=False))

    def write(self, rows: list[Row]) -> None:
        """Write the topic table."""
        with (self.folder / "topics.csv").open("w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, ("id", "name", "river", "people", "note"))
            writer.writeheader()
            writer.writerows(rows)

    def run(self, *options: str, **environment: str) -> Finished:
        return self.workshop.cli("run", "--site", self.name, *options, environment=environment)

    def writes(self) -> list[tuple[str, int]]:
        """Every write of a page by the folder's own log, sorted: path and revision."""
        return sorted(writes(self.public))

    def page(self, row: Row) -> str | None:
        """What a visitor gets for ``row``."""
        return page_text(self.public, row)

    def sitemap(self) -> list[str]:
        return sitemap_paths(self.public)
