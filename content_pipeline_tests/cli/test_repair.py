"""``content-pipeline repair``: a person takes a page up again, and says why."""

import pytest

from content_pipeline.sandbox.faults import Fault, FaultKind, FaultPlan, Match, Rule
from content_pipeline_tests.cli.conftest import MakeSite
from content_pipeline_tests.cli.workshop import Finished, TownSite, Workshop, towns


def retry(site: TownSite, page: str, cause: str = "the subject was cleared") -> Finished:
    return site.workshop.cli("repair", "retry", page, "--site", site.name, "--cause", cause)


def test_a_refused_page_is_taken_up_again_with_a_cause_and_no_other(
    make_site: MakeSite, workshop: Workshop
) -> None:
    site = make_site(towns(2))
    refusal = Rule(fault=Fault(kind=FaultKind.REFUSAL), match=Match(prompt_contains="Baden"))
    workshop.provider.set_faults(FaultPlan(rules=(refusal,)))
    refused = site.run()
    assert (refused.status, refused.count("published"), refused.count("failed")) == (1, 1, 1)
    assert refused.row("failed")[1] == "policy 1"
    assert "The model declines this subject; a person must decide about the page." in refused.out
    workshop.provider.set_faults(FaultPlan())
    asked = workshop.requests()
    again = site.run()
    assert (again.status, again.count("failed")) == (1, 1)
    assert workshop.requests() == asked, "nothing is asked again before a person decided"

    woken = retry(site, "/baden-1/")

    assert (woken.status, woken.err) == (0, "")
    assert woken.out == "t1 is queued again; the next run goes on with it\n"
    done = site.run()
    assert (done.status, done.count("published"), done.count("reused")) == (0, 1, 1)
    history = workshop.cli("show", "t1", "--site", site.name).out
    assert "repaired: the subject was cleared" in history


def test_a_paid_draft_is_kept_when_its_rules_are_corrected(
    make_site: MakeSite, workshop: Workshop
) -> None:
    site = make_site(towns(1), article__rules__min_words=2500)
    broken = site.run()
    assert (broken.status, broken.row("failed")[1]) == (1, "invalid_page 1")
    assert "is outside 2500 to 3000" in broken.out
    paid = workshop.requests()["create"]

    site.declare(article__rules__min_words=60)
    assert site.run().count("failed") == 1, "other rules alone wake nothing"
    woken = retry(site, "t0", "the limit was a mistake")
    assert woken.out == "t0 is generated again; the next run goes on with it\n"
    done = site.run()

    assert (done.status, done.count("published")) == (0, 1)
    assert done.row("attempts")[1] == "0 generate, 1 publish"
    assert workshop.requests()["create"] == paid


def test_what_needs_no_repair_says_so(make_site: MakeSite) -> None:
    rows = towns(2)
    site = make_site([rows[0], rows[1] | {"people": ""}])
    assert site.run().status == 1
    for page, answer in (
        ("t0", "t0 is published: revision 1 is live and proved, nothing is done\n"),
        ("t1", "t1 has no usable row: correct the table and run again\n"),
    ):
        done = retry(site, page)
        assert (done.status, done.out) == (0, answer)


def test_an_unknown_page_is_status_2(make_site: MakeSite) -> None:
    site = make_site(towns(1))
    done = retry(site, "nobody")
    assert (done.status, done.out) == (2, "")
    assert f"site '{site.name}' has no page 'nobody'" in done.err


@pytest.mark.parametrize("options", [[], ["--cause"], ["--cause", ""], ["--cause", " \t"]], ids=str)
def test_a_repair_without_a_cause_is_refused(make_site: MakeSite, options: list[str]) -> None:
    site = make_site(towns(1))
    done = site.workshop.cli("repair", "retry", "t0", "--site", site.name, *options)
    assert (done.status, done.out) == (2, "")
    assert "--cause" in done.err
