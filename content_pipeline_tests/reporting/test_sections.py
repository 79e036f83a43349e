"""What the sections of both reports say."""

from dataclasses import replace
from decimal import Decimal

import pytest

from content_pipeline.ledger.health import COUNTED_TO, Queue
from content_pipeline.reporting.content import Section, numbers_of
from content_pipeline.reporting.cost_sections import cost_figures, cost_sections
from content_pipeline.reporting.health_sections import health_figures, health_sections
from content_pipeline.reporting.site_report import SiteReport
from content_pipeline_tests.reporting.samples import COSTS, EMPTY, HEALTH, HOSTILE, REPORT, cost


def rows(title: str, report: SiteReport = REPORT) -> tuple[tuple[str, ...], ...]:
    found = section(title, report)
    assert found.table is not None
    return found.table.rows


def section(title: str, report: SiteReport = REPORT) -> Section:
    both = [*cost_sections(report), *health_sections(report)]
    (found,) = (each for each in both if each.title == title)
    return found


def plotted(title: str) -> tuple[tuple[str, ...], ...]:
    drawn = section(title).drawn
    assert drawn is not None
    return numbers_of(drawn).rows


def test_the_head_of_the_cost_report_says_what_people_ask_first() -> None:
    shown = [(figure.label, figure.value, figure.note) for figure in cost_figures(REPORT)]
    assert shown == [
        ("today", "$0.0500", "1 % of the day's cap"),
        ("10 days", "$0.6500", "all calls"),
        ("published", "30", "page jobs proved on the site"),
        ("a published page", "$0.0217", "expected $0.0200"),
    ]


def test_the_head_of_the_health_report_does_too() -> None:
    shown = [(figure.label, figure.value, figure.note) for figure in health_figures(REPORT)]
    assert shown == [
        ("due", "3", "oldest waits 2 h 2 min"),
        ("uncertain now", "2", "oldest for 1 min 35 s"),
        ("possible double spend", "$0.0600", "4 calls"),
        ("need a person", "2", "1 in the last 24 hours"),
    ]


def test_dollars_by_class_add_up_to_all_dollars_of_the_window() -> None:
    assert rows("Dollars per day by class") == (
        ("ok", "$0.5000", "77 %", "", "50", ""),
        ("bad_output", "$0.1000", "15 %", "", "1", "1"),
        ("uncertain", "$0.0500", "8 %", "$0.0500", "1", "1"),
    )
    assert plotted("Dollars per day by class") == (
        ("2026-03-08", "$0.2000", "", "", "$0.2000"),
        ("2026-03-09", "$0.3000", "$0.1000", "", "$0.4000"),
        ("2026-03-10", "", "", "$0.0500", "$0.0500"),
    )


def test_dollars_by_template_name_the_model_too() -> None:
    assert rows("Dollars per day by template") == (
        ("6d9acd92:article", "gpt-5-mini", "$0.6500", "100 %", "$0.0500", "52", "2"),
    )


def test_a_day_without_published_pages_has_no_cost_per_page() -> None:
    assert plotted("Cost per published page") == (
        ("2026-03-08", "$0.0100"),
        ("2026-03-09", "$0.0400"),
    )


def test_pages_with_very_many_calls_are_counted_together() -> None:
    assert plotted("Paid calls per page") == (("1", "28"), ("2", "2"), ("10 or more", "1"))


def test_retries_say_which_share_of_them_succeeded() -> None:
    assert rows("Retries that paid off") == (
        ("generate", "transient", "2", "8", "6", "75 %", "$0.0400"),
    )
    assert plotted("Retries that paid off") == (("transient 2", "6", "2", "8"),)


def test_the_queue_shows_who_waits_longest() -> None:
    assert rows("Queue") == ((HOSTILE, "failed retryable", "2026-03-10 14:05 UTC", "2 h 2 min"),)
    assert section("Queue").note.startswith("3 pages are due")
    idle = replace(REPORT, health=replace(HEALTH, queue=Queue(due=2, oldest=())))
    assert section("Queue", idle).note == "2 pages are due, and none waits for a worker."


def test_pages_that_wait_for_their_turn_are_told_of() -> None:
    waiting = replace(REPORT, health=replace(HEALTH, in_line=1_234))
    note = section("Queue", waiting).note
    assert note.startswith("1,234 new pages wait for their turn, as the publish rate says. 3 pages")
    assert "turn" not in section("Queue").note


def test_a_count_that_was_cut_says_so() -> None:
    many = replace(HEALTH, queue=replace(HEALTH.queue, due=COUNTED_TO))
    assert "10,000 or more pages" in section("Queue", replace(REPORT, health=many)).note


def test_the_uncertain_is_told_with_what_it_may_cost() -> None:
    assert rows("Uncertain") == (
        ("generation: the provider is asked", "bern", "2", "1 min 35 s", "$0.0200"),
    )
    assert "$0.0600 in 4 calls" in section("Uncertain").note


def test_what_was_written_off_is_told_as_spent() -> None:
    told = "Another $0.0500 in 3 older calls was written off: it is counted as spent."
    assert told in section("Uncertain").note
    assert "written off" not in section("Uncertain", EMPTY).note


def test_failures_stand_by_class_and_by_cause() -> None:
    assert rows("Pages that stopped for a person, per day") == (
        ("dead lettered", "transient", "3"),
    )
    ((fingerprint, of_class, _, what_to_do, pages, newest),) = rows(
        "Pages that need a person now, by cause"
    )
    assert fingerprint.startswith("cause:")
    assert (of_class, pages, newest) == ("policy", "2", "2026-03-10 14:05 UTC")
    assert "asking again is not allowed" in what_to_do


def test_changes_on_the_site_are_told() -> None:
    assert rows("Changed on the site by somebody else") == (
        ("edited", "1", "2026-03-10 14:05 UTC"),
    )


@pytest.mark.parametrize("title", [each.title for each in cost_sections(EMPTY)])
def test_a_site_that_has_spent_nothing_has_nothing_to_draw(title: str) -> None:
    assert section(title, EMPTY).drawn is None


def test_the_template_of_another_version_is_another_template() -> None:
    newer = cost(10, "ok", "0.9")
    newer = replace(newer, keys=(newer.keys[0], "ok", "aaaa0000:article", "gpt-5-mini"))
    both = replace(REPORT, costs=replace(COSTS, history=(*COSTS.history, newer)))
    found = rows("Dollars per day by template", both)
    assert [row[0] for row in found] == ["aaaa0000:article", "6d9acd92:article"]
    assert both.costs.usd == REPORT.costs.usd + Decimal("0.9")
