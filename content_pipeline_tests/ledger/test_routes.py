"""Announced waits and closed circuits: known to everybody as soon as one worker heard of them."""

import pytest
from sqlalchemy import text

from content_pipeline.core.failures import Failure, FailureClass
from content_pipeline.core.retries import LONGEST_WAIT_S
from content_pipeline.ledger import routes
from content_pipeline.ledger.database import Ledger
from content_pipeline_tests.ledger.stalled import stalled_claim

NO_CREDIT = Failure(failure_class=FailureClass.QUOTA, message="no credit left")


def wait(seconds: float | None) -> Failure:
    return Failure(failure_class=FailureClass.THROTTLED, message="slow down", retry_after_s=seconds)


@pytest.fixture
def route(site_name: str) -> str:
    return f"account of {site_name}"


def announce(ledger: Ledger, route: str, failure: Failure) -> None:
    with ledger.begin() as connection:
        connection.execute(text("SET LOCAL lock_timeout = '2s'"))
        act = routes.open_circuit if failure is NO_CREDIT else routes.pause
        act(connection, route, failure)


def wait_s(ledger: Ledger, route: str) -> float:
    with ledger.begin() as connection:
        return routes.wait_s(connection, route)


def test_an_announced_wait_holds_for_its_route_alone(ledger: Ledger, route: str) -> None:
    announce(ledger, route, wait(60))
    assert 50 < wait_s(ledger, route) <= 60
    with ledger.begin() as connection:
        assert routes.closed(connection, [route, f"other {route}"]) == {route}


def test_a_shorter_wait_does_not_end_a_longer_one(ledger: Ledger, route: str) -> None:
    announce(ledger, route, wait(60))
    announce(ledger, route, wait(1))
    assert wait_s(ledger, route) > 50


def test_nobody_waits_for_ever_because_a_service_says_so(ledger: Ledger, route: str) -> None:
    announce(ledger, route, wait(1e8))
    assert wait_s(ledger, route) <= LONGEST_WAIT_S


@pytest.mark.parametrize("seconds", [None, 0.0])
def test_no_wait_is_announced_by_silence(seconds: float | None, ledger: Ledger, route: str) -> None:
    announce(ledger, route, wait(seconds))
    assert wait_s(ledger, route) == 0
    with ledger.begin() as connection:
        assert routes.report(connection, route) is None


@pytest.mark.parametrize("failure", [wait(60), NO_CREDIT])
def test_a_claim_under_way_does_not_keep_a_wait_from_being_known(
    failure: Failure, ledger: Ledger, route: str
) -> None:
    """A worker that stood still in its claim once let others call for a second and more."""
    with stalled_claim(ledger, route, 8):
        announce(ledger, route, failure)
        assert wait_s(ledger, route) > 50


def test_a_person_opens_a_route_again(ledger: Ledger, route: str) -> None:
    announce(ledger, route, NO_CREDIT)
    announce(ledger, route, wait(60))
    with ledger.begin() as connection:
        found = routes.report(connection, route)
        assert found is not None
        assert (found.is_closed, found.reason) == (True, "quota: no credit left")
        assert routes.close_circuit(connection, route)
        assert not routes.close_circuit(connection, route)
    assert wait_s(ledger, route) == 0
