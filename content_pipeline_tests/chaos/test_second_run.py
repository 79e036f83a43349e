"""What changes between the runs: pages by hand, and the table."""

import csv
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from content_pipeline.chaos.project import Arena, path_of, table_of
from content_pipeline.chaos.second_run import (
    APPENDED,
    change_inputs,
    draw_changes,
    edit_by_hand,
)
from content_pipeline.config import Project
from content_pipeline.sandbox.cms.accounts import PERSON
from content_pipeline.sandbox.cms.client import CMSClient
from content_pipeline_tests.sandbox.cms.wordpress import sandbox_site

NAMES = [f"Harbour {number}" for number in range(10, 30)]
TABLE = 'id,name,sea,berths\na,Harbour 10,North Sea,"1,204"\nb,Harbour 11,Baltic Sea,99\n'


@pytest.fixture
def place(tmp_path: Path, sandbox_cms: CMSClient) -> Arena:
    table = table_of(tmp_path)
    table.parent.mkdir(parents=True)
    table.write_text(TABLE)
    nothing: Any = None
    return Arena(
        project=Project(root=tmp_path),
        names={},
        variables={},
        ledger=nothing,
        sandbox=nothing,
        cms=sandbox_cms,
        late_s=0,
    )


def test_a_seed_always_draws_the_same_pages_and_another_one_others() -> None:
    assert draw_changes(3, NAMES, 4) == draw_changes(3, NAMES, 4)
    assert draw_changes(3, NAMES, 4) != draw_changes(4, NAMES, 4)


@pytest.mark.parametrize(
    ("pages", "edits", "edited"), [(20, 4, 4), (20, 5, 5), (20, 9, 5), (3, 5, 0), (20, 0, 0)]
)
def test_as_many_pages_are_renewed_as_edited_and_most_are_left_alone(
    pages: int, edits: int, edited: int
) -> None:
    changes = draw_changes(1, NAMES[:pages], edits)
    assert len(changes.edited) == len(changes.renewed) == edited
    assert not changes.edited & changes.renewed
    assert changes.all <= set(NAMES[:pages])


def test_a_person_edits_the_pages_that_are_live(place: Arena, sandbox_cms: CMSClient) -> None:
    site = sandbox_site(sandbox_cms)
    for name, status in (("Harbour 10", "publish"), ("Harbour 11", "publish"), ("Q 1", "draft")):
        site.created(title=name, slug=path_of(name).strip("/"), content="<p>T.</p>", status=status)
    edit_by_hand(place, {"Harbour 10", "Q 1"})
    by_hand = [change for change in sandbox_cms.history() if change["by"] == PERSON.id]
    assert [change["path"] for change in by_hand] == ["/harbour-10/"]
    assert APPENDED in site.visit("/harbour-10/").text


def test_the_named_rows_change_and_no_other(place: Arena) -> None:
    change_inputs(place, {"Harbour 10"})
    with table_of(place.project.root).open(newline="") as file:
        rows = list(csv.reader(file))
    assert rows == [
        ["id", "name", "sea", "berths"],
        ["a", "Harbour 10", "North Sea", "1,205"],
        ["b", "Harbour 11", "Baltic Sea", "99"],
    ]


def test_a_folder_has_no_people(place: Arena) -> None:
    with pytest.raises(AssertionError):
        edit_by_hand(replace(place, cms=None), {"Harbour 10"})
