"""How many calls may be out on an account: counted over all workers, one claimer at a time."""

import threading

import pytest
from sqlalchemy import text
from sqlalchemy.exc import OperationalError

from content_pipeline.core.throttling import START, CallLimit, Outcome
from content_pipeline.ledger import call_limits, intake
from content_pipeline.ledger.call_limits import Capacity
from content_pipeline.ledger.database import Ledger
from content_pipeline.ledger.intake import Part
from content_pipeline.ledger.wishes import Request
from content_pipeline_tests.ledger.stalled import stalled_claim
from content_pipeline_tests.ledger.wanting import leased, topics_in
from content_pipeline_tests.operations.small_site import rows_of, settings_of

MOST = 64


def wanted_on_route(ledger: Ledger, site: str, towns: int) -> str:
    """Pages of a site that has an account of its own; the account's route."""
    settings, route = settings_of(site), f"account of {site}"
    request = Request(site=settings, generation_version="v1", model_route=route, requested_by="me")
    with ledger.begin() as connection:
        part = Part(topics=topics_in(settings, rows_of(towns)))
        intake.take_in(connection, request, [part])
    return route


def free(ledger: Ledger, route: str, most_calls: int = MOST) -> int:
    with ledger.begin() as connection:
        return call_limits.capacity(connection, route, most_calls=most_calls).free


def known(ledger: Ledger, route: str) -> CallLimit | None:
    with ledger.begin() as connection:
        return call_limits.read(connection, route)


def hand_over(ledger: Ledger, route: str, *outcomes: Outcome) -> CallLimit:
    with ledger.begin() as connection:
        return call_limits.learn(connection, route, outcomes)


def went_well(out: int, times: int = 1) -> list[Outcome]:
    return [Outcome(out=out, rejected=False)] * times


def rejected(out: int, times: int = 1) -> list[Outcome]:
    return [Outcome(out=out, rejected=True)] * times


def test_an_account_that_nobody_has_called_is_not_known(ledger: Ledger, site_name: str) -> None:
    assert known(ledger, f"nobody's {site_name}") is None


def test_an_account_begins_with_few_calls(ledger: Ledger, site_name: str) -> None:
    route = wanted_on_route(ledger, site_name, 1)
    assert free(ledger, route) == START
    assert known(ledger, route) == CallLimit()


def test_pages_at_work_take_up_calls(ledger: Ledger, site_name: str) -> None:
    route = wanted_on_route(ledger, site_name, 4)
    for number in range(3):
        leased(ledger, site_name, f"t{number}")
    with ledger.begin() as connection:
        found = call_limits.capacity(connection, route, most_calls=MOST)
    assert found == Capacity(out=3, free=START - 3)
    assert free(ledger, route, most_calls=2) == 0


def test_what_becomes_of_calls_is_kept(ledger: Ledger, site_name: str) -> None:
    route = wanted_on_route(ledger, site_name, 1)
    hand_over(ledger, route, *went_well(8, 6))
    hand_over(ledger, route, *rejected(20, 2))
    found = known(ledger, route)
    assert found is not None
    assert sum(found.calls) == pytest.approx(8, abs=0.1)
    assert sum(found.rejections) == pytest.approx(2)
    assert found.limit == START + 6


def test_the_count_knows_what_is_handed_over_with_it(ledger: Ledger, site_name: str) -> None:
    route = wanted_on_route(ledger, site_name, 1)
    with ledger.begin() as connection:
        found = call_limits.capacity(
            connection, route, most_calls=MOST, outcomes=went_well(START, 3)
        )
    assert found.free == START + 3
    assert free(ledger, route) == START + 3


def test_calls_that_are_rejected_are_free_no_more(ledger: Ledger, site_name: str) -> None:
    route = wanted_on_route(ledger, site_name, 1)
    hand_over(ledger, route, *went_well(5, 30), *rejected(6, 5))
    assert free(ledger, route) == 5


def test_a_count_without_news_writes_nothing(ledger: Ledger, site_name: str) -> None:
    """Else every look at an idle account would make the next one believe that it was just used."""
    route = wanted_on_route(ledger, site_name, 1)
    free(ledger, route)
    version = text("SELECT xmin FROM content_pipeline.call_limits WHERE route = :route FOR UPDATE")
    seen = []
    for _ in range(2):
        free(ledger, route)
        with ledger.begin() as connection:
            seen.append(connection.execute(version, {"route": route}).scalar_one())
    assert seen[0] == seen[1]


def test_what_was_learned_is_forgotten_with_time(ledger: Ledger, site_name: str) -> None:
    route = wanted_on_route(ledger, site_name, 1)
    hand_over(ledger, route, *went_well(5, 30), *rejected(6, 5))
    assert hand_over(ledger, route, *went_well(5)).limit == 5
    earlier = text(
        "UPDATE content_pipeline.call_limits SET updated_at = updated_at - interval '1 day' "
        "WHERE route = :route"
    )
    with ledger.begin() as connection:
        connection.execute(earlier, {"route": route})
    assert free(ledger, route) == 5
    assert hand_over(ledger, route, *went_well(5)).limit == 6


def test_sites_of_one_account_share_what_is_learned_and_each_keeps_its_own_most(
    ledger: Ledger, site_name: str
) -> None:
    route = wanted_on_route(ledger, site_name, 1)
    hand_over(ledger, route, *went_well(START, 12))
    assert free(ledger, route, most_calls=4) == 4
    assert free(ledger, route, most_calls=16) == 16
    assert free(ledger, route, most_calls=64) == START + 12
    assert free(ledger, route, most_calls=4) == 4


def test_two_claimers_never_count_at_once(ledger: Ledger, site_name: str) -> None:
    route = wanted_on_route(ledger, site_name, 4)
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
        assert free(ledger, route) == START
