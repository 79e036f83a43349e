"""The table and the document say the same as the numbers."""

import io
import json
from dataclasses import fields, replace
from typing import Any

from rich.console import Console

from content_pipeline.chaos.project import ArenaPlan, Target
from content_pipeline.chaos.report import ChaosReport, print_report
from content_pipeline.chaos.site_truth import SiteNumbers
from content_pipeline.chaos.truth import Numbers, judge
from content_pipeline.chaos.workers import Campaign
from content_pipeline_tests.chaos.records import at, cms, good


def report(**changes: Any) -> ChaosReport:
    made = ChaosReport(
        where=ArenaPlan(pages=4, seed=9, target=Target.FOLDER),
        campaign=Campaign(kills=(at(5),), killed=2, started=5, wall_s=12.0),
        numbers=judge(good()),
        bound_s=4.0,
    )
    return replace(made, **changes)


def printed(what: ChaosReport) -> str:
    output = io.StringIO()
    print_report(what, Console(file=output, width=160))
    return output.getvalue()


def test_the_document_holds_every_number_and_is_json() -> None:
    document = json.loads(json.dumps(report().document()))
    counted = {each.name for each in (*fields(Numbers), *fields(SiteNumbers))} - {"site"}
    assert counted < document.keys()
    assert (document["pages"], document["seed"], document["workers_killed"]) == (4, 9, 2)
    assert (document["cms"], document["late"]) == ("folder", False)
    assert document["kills"] == ["2026-01-01T00:00:05+00:00"]
    assert document["wall_by_bound"] == 3
    assert document["billed_usd"] == "0.006"
    assert document["broken_promises"] == []


def test_the_table_shows_what_was_paid_and_that_all_was_kept() -> None:
    text = printed(report())
    assert "chaos: 4 pages, seed 9, folder" in text
    assert "1.000 per live page; the plan forces 3" in text
    assert "3.0 times the bound of 4.0" in text
    assert "2 killed at 1 moments" in text
    assert "every promise was kept" in text
    assert "kept at" not in text


def test_each_broken_promise_is_a_line_of_its_own() -> None:
    good_numbers = judge(good())
    site = replace(good_numbers.site, missing=2, stale_overwrites=1)
    numbers = replace(good_numbers, site=site)
    broken = report(numbers=numbers)
    text = printed(broken)
    assert "broken: a page is missing" in text
    assert "broken: an older revision was written over a newer one" in text
    assert "every promise was kept" not in text
    assert broken.document()["broken_promises"] == numbers.broken_promises()


def on_the_cms(*, late: bool, **changes: Any) -> ChaosReport:
    numbers = judge(good(site=cms(**changes)))
    return report(where=ArenaPlan(pages=4, seed=9, late=late), numbers=numbers)


def test_the_table_of_a_cms_shows_what_its_truth_counts() -> None:
    text = printed(on_the_cms(late=True, public_doubles=1, pages_by_key={"a": 3}))
    assert "chaos: 4 pages, seed 9, sandbox, late writes" in text
    assert "1 pages doubled before visitors at any instant, 2 of any kind left in the end" in text
    assert "4.0 requests of all kinds per live page" in text
    assert "sitemap" not in text, "a CMS lists its pages itself"


def test_a_folder_is_asked_nothing_about_people_and_requests() -> None:
    text = printed(report())
    assert "sitemap" in text
    assert "edits" not in text
    assert "CMS" not in text


def test_a_cms_run_is_told_apart_in_the_document() -> None:
    document = on_the_cms(late=False).document()
    assert (document["cms"], document["late"], document["cms_requests_per_page"]) == (
        "sandbox",
        False,
        4,
    )


def test_a_kept_project_is_named() -> None:
    assert "kept at /somewhere/cp-chaos-1" in printed(report(kept_at="/somewhere/cp-chaos-1"))


def test_a_plan_without_a_bound_is_no_division_by_zero() -> None:
    assert report(bound_s=0.0).wall_by_bound == 0
