"""How many calls may be out on an account: counted over all workers, one claimer at a time."""

import threading

import pytest
from sqlalchemy import text
from sqlalchemy.exc import OperationalError

from content_pipeline.core.failures import Failure, FailureClass
from content_pipeline.core.states import PageJobState
from content_pipeline.core.throttling import CUT, SUPPOSED_BACKGROUND, CallLimit
from content_pipeline.ledger import call_limits, intake
from content_pipeline.ledger.database import Ledger
from content_pipeline.ledger.intake import Request
from content_pipeline_tests.ledger.stalled import stalled_claim
from content_pipeline_tests.ledger.wanting import leased, move_once, topics_in
from content_pipeline_tests.operations.small_site import rows_of, settings_of

MOST = 64
BUSY = Failure(failure_class=FailureClass.THROTTLED, message="the account is told to slow down")


def wanted_on_route(ledger: Ledger, site: str, towns: int, most_calls: int = MOST) -> str:
    """Pages of a site that has an account of its own; the account's route."""
    settings, route = settings_of(site), f"account of {site}"
    request = Request(site=settings, generation_version="v1", model_route=route, requested_by="me")
    with ledger.begin() as connection:
        intake.take_in(connection, request, topics_in(settings, rows_of(towns)), [])
        assert free(ledger, route, most_calls) == most_calls
    return route


def free(ledger: Ledger, route: str, most_calls: int = MOST) -> int:
    with ledger.begin() as connection:
        return call_limits.capacity(connection, route, most_calls=most_calls).free


def known(ledger: Ledger, route: str) -> CallLimit:
    with ledger.begin() as connection:
        found = call_limits.read(connection, route)
    assert found is not None
    return found


def begin(ledger: Ledger, route: str, calls: int, most_calls: int = MOST) -> None:
    with ledger.begin() as connection:
        found = call_limits.capacity(connection, route, most_calls=most_calls)
        call_limits.begin(connection, found, calls)


def reject(ledger: Ledger, site: str, route: str, topics: range) -> None:
    """The calls about these topics are out together, and are rejected one after the other."""
    out = [leased(ledger, site, f"t{number}") for number in topics]
    for job, lease in out:
        with ledger.fenced(lease) as connection:
            state = PageJobState.FAILED_RETRYABLE
            move_once(connection, job, lease, state, failure=BUSY, wait_s=3600)
            call_limits.rejected(connection, route)


def test_an_account_begins_with_all_calls_that_somebody_allows(
    ledger: Ledger, site_name: str
) -> None:
    route = wanted_on_route(ledger, site_name, 1)
    assert known(ledger, route) == CallLimit(limit=MOST, most=MOST)
    assert known(ledger, route).background == SUPPOSED_BACKGROUND


def test_an_account_that_nobody_has_called_is_not_known(ledger: Ledger, site_name: str) -> None:
    with ledger.begin() as connection:
        call_limits.rejected(connection, f"nobody's {site_name}")
        assert call_limits.read(connection, f"nobody's {site_name}") is None


def test_pages_at_work_take_up_calls(ledger: Ledger, site_name: str) -> None:
    route = wanted_on_route(ledger, site_name, 4)
    for number in range(3):
        leased(ledger, site_name, f"t{number}")
    assert free(ledger, route) == MOST - 3
    assert free(ledger, route, most_calls=2) == 0


def test_calls_that_begin_are_written_down(ledger: Ledger, site_name: str) -> None:
    route = wanted_on_route(ledger, site_name, 1)
    begin(ledger, route, 0)
    assert known(ledger, route).background == SUPPOSED_BACKGROUND
    begin(ledger, route, 40)
    assert known(ledger, route) == CallLimit(limit=MOST, most=MOST).after_calls(40, unused=24)


def test_a_few_rejections_leave_the_limit(ledger: Ledger, site_name: str) -> None:
    route = wanted_on_route(ledger, site_name, 3)
    reject(ledger, site_name, route, range(3))
    assert (known(ledger, route).limit, known(ledger, route).suspicion) == (MOST, 3)


def test_a_rejected_call_counts_among_those_that_were_out(ledger: Ledger, site_name: str) -> None:
    """5 wait for their answers while 6 others are rejected: 6 were out at the last of these."""
    route = wanted_on_route(ledger, site_name, 11, most_calls=11)
    for number in range(5):
        leased(ledger, site_name, f"t{number}")
    reject(ledger, site_name, route, range(5, 11))
    found = known(ledger, route)
    assert found.limit == int(CUT * 6)
    assert found.suspicion == 0


def test_another_most_holds_from_the_next_claim_on(ledger: Ledger, site_name: str) -> None:
    route = wanted_on_route(ledger, site_name, 1)
    begin(ledger, route, 1, most_calls=8)
    assert known(ledger, route).limit == 8
    begin(ledger, route, 1, most_calls=16)
    assert known(ledger, route).limit == 16


def test_two_claimers_never_count_at_once(ledger: Ledger, site_name: str) -> None:
    route = wanted_on_route(ledger, site_name, 4, most_calls=4)
    seen: list[int] = []
    with ledger.begin() as connection:
        assert call_limits.capacity(connection, route, most_calls=4).free == 4
        other = threading.Thread(target=lambda: seen.append(free(ledger, route, 4)))
        other.start()
        for number in range(3):
            leased(ledger, site_name, f"t{number}")
        assert seen == []
    other.join()
    assert seen == [1]


def test_a_claimer_that_dies_holds_nobody_up(ledger: Ledger, site_name: str) -> None:
    route = wanted_on_route(ledger, site_name, 1)
    with stalled_claim(ledger, route, MOST) as process:
        with pytest.raises(OperationalError, match="lock timeout"), ledger.begin() as connection:
            connection.execute(text("SET LOCAL lock_timeout = '50ms'"))
            call_limits.capacity(connection, route, most_calls=MOST)
        process.kill()
        assert free(ledger, route) == MOST
