"""Costs: however they are grouped, they add up to the dollars of the spend rows."""

from collections.abc import Iterator
from decimal import Decimal
from itertools import combinations

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from content_pipeline.ledger import reports, spend
from content_pipeline.ledger.costs import NOT_CALLED, OK, Cost, Dimension, costs, total
from content_pipeline.ledger.database import Ledger
from content_pipeline_tests.ledger.paying import Call, make
from content_pipeline_tests.ledger.wanting import take_in, wanted
from content_pipeline_tests.operations.small_site import rows_of, settings_of

USD = Decimal
D = Dimension
GROUPINGS = [dimensions for count in range(len(D) + 1) for dimensions in combinations(D, count)]
"""Every set of dimensions, none and all of them included."""


def grouped(
    ledger: Ledger, *dimensions: Dimension, site: str | None
) -> dict[tuple[str, ...], Cost]:
    with ledger.begin() as connection:
        found = costs(connection, dimensions, site=site)
    assert len({cost.keys for cost in found}) == len(found)
    return {cost.keys: cost for cost in found}


@pytest.fixture
def site(ledger: Ledger, site_name: str) -> str:
    """A site with one page of each kind of trouble."""
    wanted(ledger, site_name, rows_of(3))
    make(ledger, site_name, "t0", [Call(end="throttled"), Call(end="bad_output"), Call(end="ok")])
    make(
        ledger,
        site_name,
        "t1",
        [
            Call(end="ok", step="outline", model="gpt-5-nano", cost_usd="0.01", tokens=7),
            Call(end="uncertain", worst_usd="0.4"),
            Call(end="open", worst_usd="0.3"),
        ],
    )
    make(ledger, site_name, "t2", [Call(end="maybe", worst_usd="0.6"), Call(end="uncalled")])
    return site_name


def test_by_class_the_good_calls_stand_beside_each_kind_of_failure(
    ledger: Ledger, site: str
) -> None:
    found = grouped(ledger, D.CLASS, site=site)
    assert {keys[0]: (cost.settled_usd, cost.uncertain_usd, cost.reserved_usd, cost.attempts)
            for keys, cost in found.items()} == {
        OK: (USD("0.21"), 0, 0, 2),
        "open": (0, 0, USD("0.3"), 1),
        NOT_CALLED: (0, 0, USD("0.5"), 0),
        "bad_output": (USD("0.2"), 0, 0, 1),
        "throttled": (0, 0, 0, 1),
        "transient": (0, USD("0.6"), 0, 1),
        "uncertain": (0, USD("0.4"), 0, 1),
    }  # fmt: skip


def test_by_step_and_model_dollars_and_tokens_go_together(ledger: Ledger, site: str) -> None:
    found = grouped(ledger, D.STEP, D.MODEL, site=site)
    outline = found["outline", "gpt-5-nano"]
    assert (outline.usd, outline.input_tokens, outline.output_tokens) == (USD("0.01"), 7, 14)
    article = found["article", "gpt-5-mini"]
    assert (article.attempts, article.failed_attempts) == (6, 4)
    assert article.failed_usd == USD("0.2") + USD("0.4") + USD("0.6")
    assert found[NOT_CALLED, NOT_CALLED].usd == USD("0.5")
    assert set(found) == {
        ("outline", "gpt-5-nano"),
        ("article", "gpt-5-mini"),
        (NOT_CALLED, NOT_CALLED),
    }


def test_a_template_is_a_prompt_of_one_way_of_making_pages(ledger: Ledger, site_name: str) -> None:
    for version, row in zip(("first version", "second version"), rows_of(2), strict=True):
        take_in(ledger, settings_of(site_name), [row], version=version)
        make(ledger, site_name, row["id"], [Call(end="ok"), Call(end="ok", step="meta")])
    found = grouped(ledger, D.TEMPLATE, site=site_name)
    assert {keys[0] for keys in found} == {
        "first ve:article",
        "first ve:meta",
        "second v:article",
        "second v:meta",
    }


def test_the_dollars_of_a_page_are_those_that_people_are_shown_of_it(
    ledger: Ledger, site: str
) -> None:
    with ledger.begin() as connection:
        pages = reports.page_reports(connection, site)
        (all_of_it,) = costs(connection, (), site=site)
    attempted = sum((page.usd for page in pages), USD(0))
    assert attempted == all_of_it.usd - USD("0.5")  # set aside for a call that has no attempt yet
    assert sum(page.uncertain_usd for page in pages) == all_of_it.usd - all_of_it.settled_usd - USD(
        "0.5"
    )


def test_a_site_without_spending_costs_nothing(ledger: Ledger, site_name: str) -> None:
    wanted(ledger, site_name, rows_of(1))
    assert grouped(ledger, D.MODEL, site=site_name) == {}
    assert total([]).usd == 0
    (everything,) = grouped(ledger, site=site_name).values()
    assert everything.keys == ()
    assert everything.usd == everything.attempts == 0


def test_all_sites_are_the_sum_of_each(ledger: Ledger, site: str) -> None:
    every = grouped(ledger, D.SITE, D.DAY, site=None)
    own = grouped(ledger, D.SITE, D.DAY, site=site)
    assert {keys: cost for keys, cost in every.items() if keys[0] == site} == own
    assert total(list(every.values())).usd == total(list(grouped(ledger, site=None).values())).usd


CALLS = st.builds(
    Call,
    end=st.sampled_from(["ok", "bad_output", "throttled", "not_sent", "uncertain", "maybe"]),
    step=st.sampled_from(["outline", "article", "meta"]),
    model=st.sampled_from(["gpt-5-mini", "gpt-5-nano"]),
    worst_usd=st.decimals(0, 2, places=8, allow_nan=False).map(str),
    cost_usd=st.decimals(0, 2, places=8, allow_nan=False).map(str),
    tokens=st.integers(0, 5_000),
)
LAST = st.builds(Call, end=st.sampled_from(["ok", "open", "uncalled"]))


@settings(
    max_examples=15,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(pages=st.lists(st.tuples(st.lists(CALLS, max_size=4), LAST), min_size=1, max_size=3))
def test_grouped_by_anything_they_sum_to_the_totals(
    pages: list[tuple[list[Call], Call]], ledger: Ledger, site_numbers: Iterator[int]
) -> None:
    site = f"towns_{next(site_numbers)}"
    wanted(ledger, site, rows_of(len(pages)))
    for number, (calls, last) in enumerate(pages):
        make(ledger, site, f"t{number}", [*calls, last])
    with ledger.begin() as connection:
        totals = spend.totals(connection, site)
        for dimensions in GROUPINGS:
            summed = total(costs(connection, dimensions, site=site))
            assert summed.settled_usd == totals.settled_usd, dimensions
            assert summed.uncertain_usd == totals.uncertain_usd, dimensions
            assert summed.reserved_usd == totals.reserved_usd, dimensions
        made = [call for calls, last in pages for call in (*calls, last)]
        (everything,) = costs(connection, (), site=site)
    called = [call for call in made if call.end != "uncalled"]
    answered = [call for call in made if call.end in ("ok", "bad_output")]
    assert everything.attempts == len(called)
    assert everything.input_tokens == sum(call.tokens for call in answered)
    assert everything.output_tokens == 2 * everything.input_tokens
    assert everything.failed_usd <= everything.usd
