"""Input fixes: one in force per column, all of them kept."""

import pytest
from sqlalchemy.exc import IntegrityError

from content_pipeline.ledger import input_fixes
from content_pipeline.ledger.database import Ledger
from content_pipeline.ledger.input_fixes import CORRECTED_AGAIN, NEWER_IN_TABLE, InputFix
from content_pipeline_tests.ledger.wanting import wanted
from content_pipeline_tests.operations.small_site import rows_of


@pytest.fixture
def site(ledger: Ledger, site_name: str) -> str:
    wanted(ledger, site_name, rows_of(2))
    return site_name


def fix(ledger: Ledger, site: str, topic: str = "t0", **values: tuple[str, str]) -> None:
    with ledger.begin() as connection:
        input_fixes.add(connection, site, topic, values, cause="a typo", fixed_by="ann")


def in_force(ledger: Ledger, site: str) -> dict[str, dict[str, str]]:
    with ledger.begin() as connection:
        found = input_fixes.in_force(connection, site)
    return {
        topic: {column: item.value for column, item in fixes.items()}
        for topic, fixes in found.items()
    }


def all_of(ledger: Ledger, site: str, topic: str = "t0") -> list[InputFix]:
    with ledger.begin() as connection:
        return input_fixes.of_topic(connection, site, topic)


def test_corrections_are_in_force_by_topic_and_column(ledger: Ledger, site: str) -> None:
    assert in_force(ledger, site) == {}
    fix(ledger, site, river=("Aare", "Inn"), name=("Aaro", "Aarau"))
    fix(ledger, site, "t1", river=("Reuss", "Rhine"))
    assert in_force(ledger, site) == {
        "t0": {"river": "Inn", "name": "Aarau"},
        "t1": {"river": "Rhine"},
    }
    (first, *_) = all_of(ledger, site)
    assert (first.cause, first.fixed_by, first.retired_because) == ("a typo", "ann", None)


def test_a_second_correction_of_a_column_replaces_the_first(ledger: Ledger, site: str) -> None:
    fix(ledger, site, river=("Aare", "Inn"))
    fix(ledger, site, river=("Aare", "Rhine"))
    assert in_force(ledger, site) == {"t0": {"river": "Rhine"}}
    assert [(item.value, item.retired_because) for item in all_of(ledger, site)] == [
        ("Inn", CORRECTED_AGAIN),
        ("Rhine", None),
    ]


def test_one_that_the_table_outdated_is_kept_and_no_longer_holds(ledger: Ledger, site: str) -> None:
    fix(ledger, site, river=("Aare", "Inn"), name=("Aaro", "Aarau"))
    (river,) = (item for item in all_of(ledger, site) if item.column == "river")
    with ledger.begin() as connection:
        input_fixes.retire(connection, site, [river])
    assert in_force(ledger, site) == {"t0": {"name": "Aarau"}}
    retired = {item.column: item.retired_because for item in all_of(ledger, site)}
    assert retired == {"river": NEWER_IN_TABLE, "name": None}


def test_an_intake_that_read_an_older_one_does_not_end_what_came_meanwhile(
    ledger: Ledger, site: str
) -> None:
    fix(ledger, site, river=("Aare", "Inn"))
    (old,) = all_of(ledger, site)
    fix(ledger, site, river=("Aare", "Rhine"))
    with ledger.begin() as connection:
        input_fixes.retire(connection, site, [old])
    assert in_force(ledger, site) == {"t0": {"river": "Rhine"}}


def test_a_topic_nobody_knows_cannot_be_corrected(ledger: Ledger, site: str) -> None:
    with pytest.raises(IntegrityError):
        fix(ledger, site, "t99", river=("Aare", "Inn"))
