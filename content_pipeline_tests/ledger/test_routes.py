"""How many calls may be out on a route after some were rejected."""

import pytest

from content_pipeline.core.failures import Failure, FailureClass
from content_pipeline.core.states import PageJobState
from content_pipeline.core.throttling import CUT
from content_pipeline.ledger import intake, routes
from content_pipeline.ledger.database import Ledger
from content_pipeline.ledger.intake import Request
from content_pipeline_tests.ledger.wanting import leased, move_once, topics_in
from content_pipeline_tests.operations.small_site import rows_of, settings_of

MOST = 64
BUSY = Failure(failure_class=FailureClass.THROTTLED, message="the account is told to slow down")


def wanted_on_route(ledger: Ledger, site: str, towns: int) -> str:
    """Pages of a site that has an account of its own; the account's route."""
    settings, route = settings_of(site), f"account of {site}"
    request = Request(site=settings, generation_version="v1", model_route=route, requested_by="me")
    with ledger.begin() as connection:
        intake.take_in(connection, request, topics_in(settings, rows_of(towns)), [])
        assert routes.free_calls(connection, route, most_calls=MOST) == MOST
    return route


def reject(ledger: Ledger, site: str, route: str, *, out: int) -> None:
    """``out`` calls are out together and the first of them is rejected."""
    (job, lease), *_ = [leased(ledger, site, f"t{number}") for number in range(out)]
    with ledger.fenced(lease) as connection:
        move_once(connection, job, lease, PageJobState.FAILED_RETRYABLE, failure=BUSY, wait_s=3600)
        routes.rejected(connection, route, BUSY)


@pytest.mark.parametrize("out", [2, 4, 10])
def test_a_rejected_call_counts_among_those_that_were_out(
    out: int, ledger: Ledger, site_name: str
) -> None:
    route = wanted_on_route(ledger, site_name, out)
    reject(ledger, site_name, route, out=out)
    with ledger.begin() as connection:
        found = routes.report(connection, route)
    assert found is not None
    assert found.call_limit == int(CUT * out)


def test_calls_rejected_together_cut_the_limit_once(ledger: Ledger, site_name: str) -> None:
    route = wanted_on_route(ledger, site_name, 10)
    reject(ledger, site_name, route, out=10)
    with ledger.begin() as connection:
        routes.rejected(connection, route, BUSY)
        found = routes.report(connection, route)
    assert found is not None
    assert found.call_limit == int(CUT * 10)
