"""What an intake reads of the ledger: a whole site, or no more than the rows that it takes in."""

from content_pipeline.core.topics import RejectedRow
from content_pipeline.ledger import known_topics
from content_pipeline.ledger.database import Ledger
from content_pipeline_tests.ledger.wanting import topics_in, wanted
from content_pipeline_tests.operations.small_site import path_of, rows_of, settings_of


def test_a_whole_site_is_known_by_key_and_path(ledger: Ledger, site_name: str) -> None:
    rows = rows_of(4)
    wanted(ledger, site_name, rows)
    with ledger.begin() as connection:
        known = known_topics.known(connection, site_name, None)
        owners = known_topics.path_owners(connection, site_name, None)
    assert {key: (row["path"], row["state"]) for key, row in known.items()} == {
        row["id"]: (path_of(row), "queued") for row in rows
    }
    assert owners == {path_of(row): row["id"] for row in rows}


def test_of_some_rows_only_those_are_read_and_refused_ones_too(
    ledger: Ledger, site_name: str
) -> None:
    rows = rows_of(6)
    wanted(ledger, site_name, rows)
    taken = topics_in(settings_of(site_name), rows[:2])
    refused = [
        RejectedRow(row_number=4, key="t3", message="no"),
        RejectedRow(row_number=5, key=None, message="no"),
    ]
    with ledger.begin() as connection:
        known = known_topics.known(connection, site_name, (taken, refused))
        owners = known_topics.path_owners(connection, site_name, taken)
        nobody = known_topics.known(connection, site_name, ([], []))
        nowhere = known_topics.path_owners(connection, site_name, [])
    assert sorted(known) == ["t0", "t1", "t3"]
    assert owners == {path_of(row): row["id"] for row in rows[:2]}
    assert (nobody, nowhere) == ({}, {})


def test_a_path_is_found_under_whoever_has_it(ledger: Ledger, site_name: str) -> None:
    rows = rows_of(1)
    wanted(ledger, site_name, rows)
    taken = topics_in(settings_of(site_name), [rows[0] | {"id": "other"}])
    with ledger.begin() as connection:
        assert known_topics.known(connection, site_name, (taken, [])) == {}
        owners = known_topics.path_owners(connection, site_name, taken)
    assert owners == {path_of(rows[0]): "t0"}


def test_another_sites_topics_are_not_known(ledger: Ledger, site_name: str) -> None:
    wanted(ledger, f"{site_name}_2", rows_of(2))
    with ledger.begin() as connection:
        assert known_topics.known(connection, site_name, None) == {}
        assert known_topics.path_owners(connection, site_name, None) == {}


def test_more_rows_than_a_statement_has_parameters_are_one_question(
    ledger: Ledger, site_name: str
) -> None:
    wanted(ledger, site_name, rows_of(1))
    many = [
        RejectedRow(row_number=number, key=f"t{number}", message="no") for number in range(70_000)
    ]
    with ledger.begin() as connection:
        assert list(known_topics.known(connection, site_name, ([], many))) == ["t0"]
