"""``content-pipeline plan`` as people and programs read it."""

import json
from decimal import Decimal
from typing import Any

from content_pipeline_tests.cli.conftest import MakeSite
from content_pipeline_tests.cli.workshop import TownSite, Workshop, towns


def planned(site: TownSite) -> dict[str, Any]:
    done = site.workshop.cli("plan", "--site", site.name, "--json")
    assert done.status == 0, done.err
    (document,) = json.loads(done.out)
    assert isinstance(document, dict)
    return document


def test_a_plan_tells_what_the_run_then_does(make_site: MakeSite, workshop: Workshop) -> None:
    site = make_site(towns(4))
    before = workshop.requests()
    table = workshop.cli("plan", "--site", site.name)
    assert table.status == 0
    assert table.row("pages") == ("4", "all that are due")
    assert table.row("new") == ("4", "t0, t1, t2, t3")
    assert "an assumption: 50% of max_output_tokens" in table.row("expected")[1]
    assert table.row("budget")[0] == "fits"
    assert (workshop.requests(), site.writes()) == (before, [])

    assert site.run().status == 0
    again = workshop.cli("plan", "--site", site.name)
    assert again.row("pages")[0] == "0"
    assert again.row("unchanged and published")[0] == "4"
    assert again.row("expected") == ("$0.0000", "nothing is to be paid")


def test_the_document_names_every_page_with_its_reason_and_dollars(make_site: MakeSite) -> None:
    site = make_site(towns(3))
    site.run()
    rows = towns(5)
    rows[1]["river"] = "Elbe"
    rows[4]["id"] = "not an id"
    site.write(rows)
    document = planned(site)
    assert [(page["topic"], page["reason"]) for page in document["pages"]] == [
        ("t1", "changed input"),
        ("t3", "new"),
    ]
    assert {(page["topic"], page["reason"]) for page in document["skipped"]} == {
        ("t0", "unchanged and published"),
        ("t2", "unchanged and published"),
        ("row 5", "rejected row"),
    }
    assert (document["due"], document["calls"], document["verdict"]) == (2, 2, "fits")
    assert document["rests_on"] == "history"
    expected = [Decimal(page["expected_usd"]) for page in document["pages"]]
    assert Decimal(document["expected_usd"]) <= sum(expected) < Decimal(document["worst_usd"])
    assert document["duration_s"] >= 0


def test_too_little_money_is_said_before_it_is_spent(make_site: MakeSite) -> None:
    site = make_site(towns(6), budgets__site_day_usd=0.012)
    table = site.workshop.cli("plan", "--site", site.name)
    verdict, note = table.row("budget")
    assert verdict == "fits partly"
    assert note.startswith("$0.01 may still be spent today: ")
    assert note.endswith("of 6 pages")
    assert int(table.row("no room in the budget today")[0]) + table.count("pages") == 6


def test_a_plan_needs_no_key(make_site: MakeSite) -> None:
    site = make_site(towns(2), generation__provider="openai")
    assert planned(site)["due"] == 2
    assert site.run().status == 2


def test_new_pages_that_wait_for_their_turn_are_seen_and_not_lost(make_site: MakeSite) -> None:
    site = make_site(towns(5), schedule={"new_pages_per_day": 2})
    assert planned(site)["due"] == 5
    assert len(planned(site)["pages"]) == 2
    done = site.run()
    assert "for their turn (2 new pages a day) 3" in " ".join(done.row("waiting"))
    assert len(site.writes()) == 2
    status = site.workshop.cli("status", "--site", site.name)
    assert status.row("wait for their turn") == (
        "0 drafts, 3 to be paid for (2 new pages a day)",
        "",
    )
    waiting = [page["topic"] for page in planned(site)["skipped"] if "rate" in page["reason"]]
    story = site.workshop.cli("show", waiting[0], "--site", site.name)
    assert "waits for its turn: the site publishes at most 2 new pages a day" in story.out

    site.declare(schedule={"new_pages_per_day": 4})
    resumed = site.workshop.cli("resume", "--site", site.name)
    assert "2 new pages whose draft waited for its turn are due now" in resumed.out
    site.run()
    assert len(site.writes()) == 4
    site.declare()
    assert site.run().status == 0
    assert len(site.writes()) == 5
