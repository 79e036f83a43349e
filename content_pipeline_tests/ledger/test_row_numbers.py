"""Where rows stand: people see topics in the order of the table as it is now."""

from content_pipeline.ledger import intake, reports, row_numbers
from content_pipeline.ledger.database import Ledger
from content_pipeline.ledger.schema import page_jobs, topics
from content_pipeline.ledger.wishes import Request
from content_pipeline_tests.ledger.wanting import rows_where, take_in, topics_in
from content_pipeline_tests.operations.small_site import rows_of, settings_of


def numbers(ledger: Ledger, site: str) -> dict[str, int]:
    return {row["topic_key"]: row["row_number"] for row in rows_where(ledger, topics, site=site)}


def shown(ledger: Ledger, site: str) -> list[str]:
    """The topics in the order in which people see them."""
    with ledger.begin() as connection:
        pages = reports.page_reports(connection, site)
        assert intake.topic_keys(connection, site) == [page.topic_key for page in pages]
    return [page.topic_key for page in pages]


def test_rows_in_another_order_are_shown_in_it_and_nothing_else_changes(
    ledger: Ledger, site_name: str
) -> None:
    rows = rows_of(3)
    take_in(ledger, settings_of(site_name), rows)
    before = rows_where(ledger, topics, site=site_name)
    jobs_before = rows_where(ledger, page_jobs, site=site_name)
    taken = take_in(ledger, settings_of(site_name), list(reversed(rows)))
    assert (taken.wanted, taken.unchanged) == (0, 3)
    assert numbers(ledger, site_name) == {"t2": 1, "t1": 2, "t0": 3}
    assert shown(ledger, site_name) == ["t2", "t1", "t0"]
    after = sorted(rows_where(ledger, topics, site=site_name), key=lambda row: row["topic_key"])
    for old, new in zip(sorted(before, key=lambda row: row["topic_key"]), after, strict=True):
        assert {**old, "row_number": 0} == {**new, "row_number": 0}
    assert rows_where(ledger, page_jobs, site=site_name) == jobs_before


def test_a_row_put_in_at_the_top_moves_the_others(ledger: Ledger, site_name: str) -> None:
    rows = rows_of(4)
    take_in(ledger, settings_of(site_name), rows[1:])
    taken = take_in(ledger, settings_of(site_name), rows)
    assert (taken.wanted, taken.unchanged) == (1, 3)
    assert shown(ledger, site_name) == ["t0", "t1", "t2", "t3"]


def test_a_refused_row_is_shown_where_it_stands_now(ledger: Ledger, site_name: str) -> None:
    rows = rows_of(2)
    twin = {**rows[0], "id": "twin"}
    take_in(ledger, settings_of(site_name), [*rows, twin])
    assert take_in(ledger, settings_of(site_name), [rows[1], rows[0], twin]).wanted == 0
    assert shown(ledger, site_name) == ["t1", "t0", "twin"]
    assert take_in(ledger, settings_of(site_name), [rows[0], twin, rows[1]]).wanted == 0
    assert numbers(ledger, site_name) == {"t0": 1, "twin": 2, "t1": 3}


def test_only_what_is_asked_for_alone_is_touched(ledger: Ledger, site_name: str) -> None:
    site, rows = settings_of(site_name), rows_of(3)
    take_in(ledger, site, rows)
    request = Request(
        site=site, generation_version="v1", model_route="scripted", requested_by="test"
    )
    with ledger.begin() as connection:
        again = topics_in(site, reversed(rows))
        intake.take_in_some(connection, request, intake.Part(topics=again), ["t0"])
    assert numbers(ledger, site_name) == {"t0": 3, "t1": 2, "t2": 3}


def test_the_same_key_of_another_site_and_a_new_one_are_left_alone(
    ledger: Ledger, site_name: str
) -> None:
    for site in (site_name, f"{site_name}_b"):
        take_in(ledger, settings_of(site), rows_of(2))
    known = {row["topic_key"]: row for row in rows_where(ledger, topics, site=site_name)}
    with ledger.begin() as connection:
        row_numbers.keep(connection, site_name, {"t0": 9, "t1": 2, "new": 3}, known)
        row_numbers.keep(connection, site_name, {}, known)
    assert numbers(ledger, site_name) == {"t0": 9, "t1": 2}
    assert numbers(ledger, f"{site_name}_b") == {"t0": 1, "t1": 2}
