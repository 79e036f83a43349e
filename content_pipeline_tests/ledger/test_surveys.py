"""How far the search for changes has come is one row per site that every machine shares."""

from content_pipeline.ledger import surveys
from content_pipeline.ledger.database import Ledger
from content_pipeline.ledger.surveys import Survey
from content_pipeline_tests.ledger.wanting import wanted
from content_pipeline_tests.operations.small_site import rows_of

NOTHING = Survey(point=None, next_slice=None, sweep_began_at=None, swept_at=None)


def stand(ledger: Ledger, site: str) -> Survey:
    with ledger.begin() as connection:
        return surveys.load(connection, site)


def test_a_site_that_nobody_looked_at_has_nothing_to_go_on_from(
    ledger: Ledger, site_name: str
) -> None:
    wanted(ledger, site_name, rows_of(1))
    assert stand(ledger, site_name) == NOTHING
    assert stand(ledger, site_name) == NOTHING


def test_the_point_is_kept_as_the_cms_gave_it(ledger: Ledger, site_name: str) -> None:
    wanted(ledger, site_name, rows_of(1))
    for point in ("2026-01-01T00:00:00", "next"):
        stand(ledger, site_name)
        with ledger.begin() as connection:
            surveys.note_point(connection, site_name, point)
        assert stand(ledger, site_name).point == point


def test_a_sweep_begins_goes_on_and_ends(ledger: Ledger, site_name: str) -> None:
    wanted(ledger, site_name, rows_of(1))
    stand(ledger, site_name)
    with ledger.begin() as connection:
        surveys.begin_sweep(connection, site_name)
        began = surveys.load(connection, site_name)
        surveys.advance(connection, site_name, next_slice="/m/")
    assert began.sweep_began_at is not None
    under_way = stand(ledger, site_name)
    assert (under_way.next_slice, under_way.sweep_began_at) == ("/m/", began.sweep_began_at)
    with ledger.begin() as connection:
        surveys.end_sweep(connection, site_name)
    ended = stand(ledger, site_name)
    assert (ended.next_slice, ended.sweep_began_at) == (None, None)
    assert ended.swept_at == began.sweep_began_at, "what was published since was not looked at"


def test_a_sweep_that_is_under_way_does_not_begin_again(ledger: Ledger, site_name: str) -> None:
    wanted(ledger, site_name, rows_of(1))
    stand(ledger, site_name)
    with ledger.begin() as connection:
        surveys.begin_sweep(connection, site_name)
        surveys.advance(connection, site_name, next_slice="/m/")
    before = stand(ledger, site_name)
    with ledger.begin() as connection:
        surveys.begin_sweep(connection, site_name)
    assert stand(ledger, site_name) == before


def test_sites_do_not_share_a_survey(ledger: Ledger, site_name: str) -> None:
    other = f"{site_name}_other"
    for site in (site_name, other):
        wanted(ledger, site, rows_of(1))
        stand(ledger, site)
    with ledger.begin() as connection:
        surveys.note_point(connection, site_name, "here")
        surveys.begin_sweep(connection, site_name)
    assert stand(ledger, other) == NOTHING
