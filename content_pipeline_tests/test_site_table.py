"""A site's topic table has an identity that changes with whatever changes what its rows mean."""

import os
import sqlite3
from collections.abc import Callable, Iterator
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

from content_pipeline import site_table
from content_pipeline.bootstrap import topic_rows
from content_pipeline.core.errors import TopicTableError
from content_pipeline.core.ports import TopicTable
from content_pipeline.site_files import Site
from content_pipeline.site_table import SiteTable
from content_pipeline_tests.operations.small_site import FACTS, settings_of, site_of

HEADER = "id,name,canton,population,river\n"
ROW = "t0,Aarau,Aargau,20000,Aare\n"


@pytest.fixture
def site(tmp_path: Path) -> Site:
    (tmp_path / "towns.csv").write_text(HEADER + ROW)
    return of(tmp_path)


def of(folder: Path, **changes: Any) -> Site:
    """The site whose table lies in ``folder``."""
    prompt = changes.pop("prompt", "{{ name }} {{ facts }}")
    return replace(
        site_of(settings_of("towns", **changes), prompt=prompt), file=folder / "towns.yaml"
    )


def identity(site: Site) -> str | None:
    return SiteTable(site=site).identity()


def test_the_rows_of_a_site_are_a_table_that_can_be_read_again(site: Site) -> None:
    table = topic_rows(site)
    assert isinstance(table, TopicTable)
    assert list(table) == list(table)
    assert [row["name"] for row in table] == ["Aarau"]
    assert set(next(iter(table))) == {"id", *FACTS}


def test_an_identity_is_the_same_for_the_same_bytes_wherever_and_whenever_they_lie(
    site: Site, tmp_path: Path
) -> None:
    before = identity(site)
    assert site.table is not None
    os.utime(site.table, ns=(1, 1))
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "towns.csv").write_bytes(site.table.read_bytes())
    assert before is not None
    assert identity(site) == before == identity(of(elsewhere))


def with_a_row(folder: Path) -> Site:
    (folder / "towns.csv").write_text(HEADER + ROW + ROW.replace("t0", "t1"))
    return of(folder)


def with_one_letter(folder: Path) -> Site:
    file = folder / "towns.csv"
    before = file.stat()
    file.write_text(HEADER + ROW.replace("Aare", "Aara"))
    os.utime(file, ns=(before.st_atime_ns, before.st_mtime_ns))
    return of(folder)


def with_another_ending(folder: Path) -> Site:
    (folder / "towns.parquet").write_bytes((folder / "towns.csv").read_bytes())
    return of(folder, topics={"table": "towns.parquet"})


OTHERS: dict[str, Callable[[Path], Site]] = {
    "a row more": with_a_row,
    "another letter": with_one_letter,
    "another kind of file": with_another_ending,
    "another id": lambda folder: of(folder, topics={"id": "name"}),
    "another name": lambda folder: of(folder, topics={"name": "canton"}),
    "another path": lambda folder: of(folder, topics={"path": "/towns/{name}/"}),
    "another column in the prompt": lambda folder: of(folder, prompt="{{ name }} {{ mayor }}"),
    "another fact": lambda folder: of(folder, article={"facts": FACTS | {"mayor": "Mayor"}}),
    "less that must be there": lambda folder: of(folder, article={"must_state": ["name"]}),
}


@pytest.mark.parametrize("what", OTHERS)
def test_what_can_change_a_topic_changes_the_identity(
    what: str, site: Site, tmp_path: Path
) -> None:
    before = identity(site)
    assert identity(OTHERS[what](tmp_path)) != before


ALIKE: dict[str, dict[str, Any]] = {
    "another prompt": {"prompt": "Praise {{ name }} for {{ facts }}"},
    "another label of a fact": {"article": {"facts": FACTS | {"river": "Stream"}}},
    "another model": {"generation": {"model": "gpt-5"}},
    "another title": {"title": "Cities"},
}


@pytest.mark.parametrize("what", ALIKE)
def test_what_only_changes_how_pages_are_made_does_not(
    what: str, site: Site, tmp_path: Path
) -> None:
    assert identity(of(tmp_path, **ALIKE[what])) == identity(site)


@pytest.fixture
def rules_anew() -> Iterator[None]:
    site_table._rules.cache_clear()
    yield
    site_table._rules.cache_clear()


@pytest.mark.parametrize("constant", ["DECIDING", "DECIDING_PACKAGES"])
@pytest.mark.usefixtures("rules_anew")
def test_other_code_is_another_identity(
    constant: str, site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = identity(site)
    site_table._rules.cache_clear()
    monkeypatch.setattr(site_table, constant, getattr(site_table, constant)[:-2])
    assert identity(site) != before


def test_the_modules_that_decide_are_there() -> None:
    assert all(find_spec(name) for name in site_table.DECIDING)


@pytest.mark.usefixtures("rules_anew")
def test_a_package_that_is_not_installed_is_no_version(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(site_table, "DECIDING_PACKAGES", ("no-such-package-at-all",))
    assert identity(site) is not None


def test_a_file_that_is_not_there_says_so(site: Site) -> None:
    assert site.table is not None
    site.table.unlink()
    assert identity(site) is None
    with pytest.raises(TopicTableError, match="there is no topic table at"):
        list(SiteTable(site=site))


def test_a_query_has_no_identity_and_needs_its_database(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    query = {
        "table": None,
        "query": "SELECT 't0' id, 'Aarau' name, 'AG' canton, 20000 population, 'Aare' river",
        "database_env": "TOWNS_DATABASE",
    }
    site = of(tmp_path, topics=query)
    assert identity(site) is None
    monkeypatch.delenv("TOWNS_DATABASE", raising=False)
    with pytest.raises(TopicTableError, match="needs a database URL in the environment variable"):
        list(SiteTable(site=site))
    with sqlite3.connect(tmp_path / "towns.sqlite"):
        monkeypatch.setenv("TOWNS_DATABASE", f"sqlite:///{tmp_path / 'towns.sqlite'}")
    assert [row["population"] for row in SiteTable(site=site)] == ["20000"]
