"""What the documents say is what the code does."""

import re
import runpy
from pathlib import Path

import pytest
from click import Command, Group

from content_pipeline.cli import main
from content_pipeline.core.states import MOVES, PageJobState

ROOT = Path(__file__).parent.parent.parent


def read(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def test_the_page_of_states_is_drawn_from_the_code() -> None:
    draw = runpy.run_path(str(ROOT / "scripts/draw_states.py"))
    assert read("docs/states.md") == draw["render"]()


def test_the_page_of_states_names_every_move() -> None:
    page = read("docs/states.md")
    rows = re.findall(r"^\| `(\w+)` \| `(\w+)` \|", page, flags=re.MULTILINE)
    assert {(PageJobState(source), PageJobState(to)) for source, to in rows} == set(MOVES)


def every_command(group: Group, prefix: str = "content-pipeline") -> list[str]:
    names: list[str] = []
    for name, command in group.commands.items():
        path = f"{prefix} {name}"
        assert isinstance(command, Command)
        names += every_command(command, path) if isinstance(command, Group) else [path]
    return names


@pytest.mark.parametrize("command", every_command(main))
def test_the_readme_names_every_command(command: str) -> None:
    assert command in read("README.md")


@pytest.mark.parametrize("command", sorted(set(re.findall(r"`?make ([a-z]+)", read("README.md")))))
def test_every_make_target_of_the_readme_exists(command: str) -> None:
    assert re.search(rf"^{command}:", read("Makefile"), flags=re.MULTILINE)


@pytest.mark.parametrize(
    "page", ["README.md", "CONTRIBUTING.md", *map(str, Path("docs").glob("*.md"))]
)
def test_every_link_between_documents_leads_somewhere(page: str) -> None:
    base = (ROOT / page).parent
    for target in re.findall(r"\]\(([^)#:]+)(?:#[^)]*)?\)", read(page)):
        assert (base / target).exists(), f"{page} links to {target}, which does not exist"


def test_the_glossary_explains_every_noun_of_the_ledger() -> None:
    glossary = read("docs/glossary.md").lower()
    for noun in (
        "site",
        "topic",
        "page",
        "page job",
        "draft revision",
        "attempt",
        "effect",
        "lease",
        "fencing token",
        "spend",
        "generation version",
        "checkpoint",
        "uncertain",
        "superseded",
        "site change",
        "survey",
        "conflict",
        "twin",
        "rollback",
        "retired",
        "withdrawn",
    ):
        assert f"**{noun}**" in glossary, f"the glossary does not explain {noun!r}"
