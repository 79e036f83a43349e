"""The layers of the package hold: checked on the real imports, not on a promise."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
MODULES = sorted((ROOT / "content_pipeline").rglob("*.py"))
MOST_LINES = 400
"""A module that does not fit into a head has more than one subject."""


def test_imports_point_downwards_and_vendors_stay_in_their_adapters() -> None:
    # In a process of its own: it configures logging for all who come after it.
    checked = subprocess.run(
        [str(Path(sys.executable).with_name("lint-imports")), "--no-cache"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert checked.returncode == 0, checked.stdout + checked.stderr


@pytest.mark.parametrize("module", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_a_module_says_what_belongs_in_it(module: Path) -> None:
    tree = ast.parse(module.read_text(encoding="utf-8"))
    assert ast.get_docstring(tree), f"{module} has no docstring"


@pytest.mark.parametrize(
    "module",
    [path for path in MODULES if "versions" not in path.parts],
    ids=lambda path: str(path.relative_to(ROOT)),
)
def test_a_module_stays_well_below_its_limit(module: Path) -> None:
    assert len(module.read_text(encoding="utf-8").splitlines()) < MOST_LINES


@pytest.mark.parametrize("module", MODULES, ids=lambda path: str(path.relative_to(ROOT)))
def test_no_module_postpones_its_annotations(module: Path) -> None:
    """Dagster cannot load the annotation of a context that is only a string."""
    assert "from __future__ import annotations" not in module.read_text(encoding="utf-8")


def test_sql_stands_in_the_ledger_alone() -> None:
    allowed = {"ledger", "postgres"}
    of_dagster = "components/event_store.py"  # writes into Dagster's own tables
    for module in MODULES:
        within = module.relative_to(ROOT / "content_pipeline")
        if within.as_posix() == of_dagster:
            continue
        place = within.parts[0]
        tree = ast.parse(module.read_text(encoding="utf-8"))
        for node in ast.walk(tree):
            if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
                built = node.func.id in {"select", "insert", "update", "delete"}
                assert place in allowed or not built, f"{module}:{node.lineno} builds SQL"
