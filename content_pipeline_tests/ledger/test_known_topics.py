"""What an intake reads of the ledger: no more than the rows that it takes in at once."""

from content_pipeline.ledger import known_topics
from content_pipeline.ledger.database import Ledger
from content_pipeline_tests.ledger.wanting import wanted
from content_pipeline_tests.operations.small_site import path_of, rows_of


def test_topics_are_known_by_key_with_their_page_job(ledger: Ledger, site_name: str) -> None:
    rows = rows_of(6)
    wanted(ledger, site_name, rows)
    with ledger.begin() as connection:
        known = known_topics.known(connection, site_name, ["t0", "t1", "t3", "t99"])
        nobody = known_topics.known(connection, site_name, [])
    assert {key: (row["path"], row["state"]) for key, row in known.items()} == {
        rows[number]["id"]: (path_of(rows[number]), "queued") for number in (0, 1, 3)
    }
    assert nobody == {}


def test_a_path_is_found_under_whoever_has_it(ledger: Ledger, site_name: str) -> None:
    rows = rows_of(3)
    wanted(ledger, site_name, rows)
    asked = [path_of(rows[0]), path_of(rows[2]), "/nowhere/"]
    with ledger.begin() as connection:
        owners = known_topics.path_owners(connection, site_name, asked)
        nowhere = known_topics.path_owners(connection, site_name, [])
    assert owners == {path_of(rows[0]): "t0", path_of(rows[2]): "t2"}
    assert nowhere == {}


def test_another_sites_topics_are_not_known(ledger: Ledger, site_name: str) -> None:
    rows = rows_of(2)
    wanted(ledger, f"{site_name}_2", rows)
    with ledger.begin() as connection:
        assert known_topics.known(connection, site_name, ["t0", "t1"]) == {}
        assert known_topics.path_owners(connection, site_name, [path_of(rows[0])]) == {}


def test_more_rows_than_a_statement_has_parameters_are_one_question(
    ledger: Ledger, site_name: str
) -> None:
    wanted(ledger, site_name, rows_of(1))
    many = [f"t{number}" for number in range(70_000)]
    with ledger.begin() as connection:
        assert list(known_topics.known(connection, site_name, many)) == ["t0"]
