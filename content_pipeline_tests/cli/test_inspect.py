"""``status``, ``show`` and ``uncertain``: what people can ask, and that asking changes nothing."""

import json
import re

import pytest

from content_pipeline.sandbox.faults import Fault, FaultKind, FaultPlan, Match, Rule
from content_pipeline_tests.cli.conftest import MakeSite
from content_pipeline_tests.cli.workshop import Finished, TownSite, Workshop, towns

ANSWER_LOST_AND_NOBODY_TO_ASK = FaultPlan(
    rules=(
        Rule(fault=Fault(kind=FaultKind.DROP_AFTER)),
        Rule(fault=Fault(kind=FaultKind.STATUS), match=Match(operation="list")),
    )
)


def show(site: TownSite, page: str) -> Finished:
    return site.workshop.cli("show", page, "--site", site.name)


def test_a_page_is_shown_by_every_name_it_has(make_site: MakeSite, workshop: Workshop) -> None:
    site = make_site(towns(2))
    assert site.run().status == 0
    by_topic = show(site, "t1")
    assert (by_topic.status, by_topic.err) == (0, "")
    assert by_topic.row("state")[0] == "published (succeeded)"
    assert by_topic.row("next")[0] == "nothing: the page is live and proved"
    assert by_topic.row("url")[0] == "https://towns.example/baden-1/"
    assert by_topic.row("live revision")[0] == "1"
    assert by_topic.row("owner")[0] == "town hall"
    ways = re.findall(r"│ (\d+) +│ (\w*) +│ (\w+) +│", by_topic.out)
    assert [to for _, _, to in ways] == [
        "queued",
        "reserved",
        "generating",
        "generated",
        "validating",
        "ready_to_publish",
        "publishing",
        "published",
    ]
    names = [by_topic.row(row)[0] for row in ("path", "url", "page", "page job")]
    assert names[0] == "/baden-1/"
    for name in names:
        shown = workshop.cli("show", name, "--site", site.name)
        assert (shown.status, shown.out) == (0, by_topic.out), name


def test_a_page_that_failed_shows_why_and_what_to_do(make_site: MakeSite) -> None:
    rows = towns(2)
    site = make_site([rows[0], rows[1] | {"people": ""}])
    assert site.run().status == 1
    shown = show(site, "t1")
    assert shown.status == 0
    assert shown.row("state")[0] == "failed_terminal (failed)"
    assert shown.row("next")[0] == "a person corrects the cause, then retries it"
    assert shown.row("failure")[0].startswith("invalid_input: row 2 (t1): column 'people' is empty")
    assert "The source row is unusable; correct it and run again." in shown.out
    assert shown.row("path")[0] == "none: the row cannot become a page"
    assert shown.row("url")[0] == "not published"


def test_what_came_before_is_shown_with_a_page(make_site: MakeSite) -> None:
    rows = towns(1)
    site = make_site(rows)
    assert site.run().status == 0
    site.write([rows[0] | {"river": "Inn"}])
    assert site.run().status == 0
    shown = show(site, "t0")
    assert shown.row("live revision")[0] == "2"
    assert re.search(r"Other page jobs of the topic", shown.out)
    assert re.search(r"│ [0-9a-f]{32} +│ superseded +│ 1 ", shown.out)


@pytest.mark.parametrize("page", ["nobody", "/nowhere/", "https://towns.example/nowhere/", "", "%"])
def test_a_page_nobody_knows_is_status_2(make_site: MakeSite, page: str) -> None:
    site = make_site(towns(1))
    done = show(site, page)
    assert (done.status, done.out) == (2, "")
    assert f"the ledger has no page {page!r}; try `content-pipeline status`" in done.err


def test_the_attempts_of_a_chain_are_shown_with_their_step(make_site: MakeSite) -> None:
    steps = [
        {"name": "outline", "prompt": "prompt.md", "output": "outline.json"},
        {"name": "text", "prompt": "prompt.md"},
    ]
    site = make_site(towns(1), generation__steps=steps)
    outline = {
        "type": "object",
        "properties": {"points": {"type": "array", "items": {"type": "string"}}},
        "required": ["points"],
        "additionalProperties": False,
    }
    (site.folder / "outline.json").write_text(json.dumps(outline))
    assert site.run().status == 0
    found = re.findall(r"│ (generate|publish) +│ (\w+) +│ \d+ +│ succeeded ", show(site, "t0").out)
    assert found == [("generate", "outline"), ("generate", "text"), ("publish", "publish")]


def test_a_page_of_several_sites_is_asked_back(make_site: MakeSite, workshop: Workshop) -> None:
    names = []
    for _ in range(2):
        site = make_site([towns(1)[0] | {"id": "twin"}])
        assert site.run().status == 0
        names.append(site.name)
    unclear = workshop.cli("show", "twin")
    assert (unclear.status, unclear.out) == (2, "")
    assert "'twin' is a page of several sites; choose one with --site" in unclear.err
    assert all(name in unclear.err for name in names)
    assert workshop.cli("show", "twin", "--site", names[1]).status == 0


def test_a_site_at_a_glance(make_site: MakeSite, workshop: Workshop) -> None:
    rows = towns(4)
    site = make_site([rows[0], rows[1], rows[2] | {"people": ""}, rows[3] | {"id": "a,b"}])
    unseen = workshop.cli("status", "--site", site.name)
    assert (unseen.status, unseen.row("topics")[0], unseen.row("live pages")[0]) == (0, "0", "0")
    assert site.run().status == 1
    asked = workshop.requests()

    seen = workshop.cli("status", "--site", site.name)

    assert (seen.status, seen.err) == (0, "")
    assert seen.out.startswith(f"Towns of {site.name} ({site.name})")
    counts = {name: seen.row(name)[0] for name in ("topics", "live pages", "published")}
    assert counts == {"topics": "3", "live pages": "2", "published": "2"}
    assert seen.row("failed terminal")[0] == "1"
    assert seen.row("of class invalid_input")[0] == "1"
    assert seen.row("reserved by calls that are out")[0] == "$0.0000"
    assert seen.row("possible double spend")[0] == "$0.0000 in 0 calls"
    assert seen.row("spent")[0] != "$0.0000"
    assert "t2 invalid_input: row 3 (t2): column 'people' is empty" in seen.out
    assert "row 4: column 'id' holds the id 'a,b'" in seen.out
    assert workshop.requests() == asked


def test_calls_whose_outcome_nobody_knows_are_listed_until_somebody_does(
    make_site: MakeSite, workshop: Workshop
) -> None:
    site = make_site(towns(2), lane__patience_s=0)
    workshop.provider.set_faults(ANSWER_LOST_AND_NOBODY_TO_ASK)
    lost = site.run()
    assert (lost.status, lost.count("uncertain"), lost.count("published")) == (1, 2, 0)
    paid = workshop.requests()["create"]

    listed = workshop.cli("uncertain", "--site", site.name)

    assert (listed.status, listed.err) == (0, "")
    topics = re.findall(r"│ (t\d) +│ 1 \([0-9a-f]{8}\) ", listed.out)
    assert sorted(topics) == ["t0", "t1"]
    assert listed.out.count("generation_uncertain") == 2
    total = re.search(r"2 calls, at most \$(0\.\d{6}) paid for nothing", listed.out)
    assert total is not None
    assert float(total[1]) > 0
    status = workshop.cli("status", "--site", site.name)
    assert "in 2 calls" in status.row("possible double spend")[0]

    workshop.provider.set_faults(FaultPlan())
    site.declare(lane__patience_s=20)
    found = site.run()

    assert (found.status, found.count("published"), found.count("uncertain")) == (0, 2, 0)
    assert workshop.requests()["create"] == paid, "the answers were fetched, not bought again"
    listed = workshop.cli("uncertain", "--site", site.name)
    assert "0 calls, at most $0.000000 paid for nothing" in listed.out
    assert "recovered by asking" in show(site, "t0").out


def test_an_account_that_takes_fewer_calls_than_the_site_allows_is_told(
    make_site: MakeSite, workshop: Workshop
) -> None:
    site = make_site(towns(6))
    before = workshop.cli("status", "--site", site.name)
    assert "calls at once" not in before.out
    too_many = Fault(kind=FaultKind.STATUS, status=429, code="rate_limit_exceeded")
    workshop.provider.set_faults(FaultPlan(rules=(Rule(fault=too_many, times=6),)))
    site.run()
    after = workshop.cli("status", "--site", site.name)
    assert re.search(r"calls at once +│ [1-5] of 64 ", after.out)
