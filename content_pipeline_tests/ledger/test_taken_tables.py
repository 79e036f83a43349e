"""Which table all topics of a site are of: remembered with the intake, or not at all."""

import pytest
from sqlalchemy.exc import IntegrityError

from content_pipeline.ledger import taken_tables
from content_pipeline.ledger.database import Ledger
from content_pipeline_tests.ledger.wanting import wanted
from content_pipeline_tests.operations.small_site import rows_of


def last(ledger: Ledger, site: str) -> str | None:
    with ledger.begin() as connection:
        return taken_tables.last(connection, site)


def test_the_last_table_of_each_site_is_remembered_until_it_is_forgotten(
    ledger: Ledger, site_name: str
) -> None:
    other = f"{site_name}_2"
    for site in (site_name, other):
        wanted(ledger, site, rows_of(1))
        assert last(ledger, site) is None
    with ledger.begin() as connection:
        taken_tables.remember(connection, site_name, "first")
        taken_tables.remember(connection, other, "theirs")
        taken_tables.remember(connection, site_name, "second")
    assert (last(ledger, site_name), last(ledger, other)) == ("second", "theirs")
    with ledger.begin() as connection:
        taken_tables.forget(connection, site_name)
        taken_tables.forget(connection, site_name)
    assert (last(ledger, site_name), last(ledger, other)) == (None, "theirs")


def test_what_is_rolled_back_is_not_remembered(ledger: Ledger, site_name: str) -> None:
    wanted(ledger, site_name, rows_of(1))
    with ledger.rehearsal() as connection:
        taken_tables.remember(connection, site_name, "first")
    assert last(ledger, site_name) is None


def test_a_site_that_was_never_taken_in_has_no_table(ledger: Ledger, site_name: str) -> None:
    with pytest.raises(IntegrityError), ledger.begin() as connection:
        taken_tables.remember(connection, site_name, "first")
