"""``content-pipeline repair`` and ``cancel``: what an operator types when pages need a person."""

import re

import pytest

from content_pipeline_tests.cli.conftest import MakeSite
from content_pipeline_tests.cli.workshop import TownSite, Workshop, towns

STRICT = {"article__rules": {"min_words": 2_000}}


@pytest.fixture
def broken(make_site: MakeSite) -> TownSite:
    """A site whose pages all break a rule, but for a row that is no page at all."""
    rows = towns(3)
    rows[2]["people"] = ""
    site = make_site(rows, **STRICT)
    assert site.run("--quiet").status == 1
    return site


def fingerprint(workshop: Workshop, site: TownSite, text: str) -> str:
    """The fingerprint that the list shows below the heading with ``text``."""
    listed = workshop.cli("repair", "list", "--site", site.name).out
    found = re.search(rf"^\d+ pages?: [^\n]*{text}[^\n]*\n  (cause:\w+),", listed, re.MULTILINE)
    assert found, listed
    return found[1]


def test_failed_pages_are_listed_by_cause_with_an_example_and_what_to_do(
    broken: TownSite, workshop: Workshop
) -> None:
    done = workshop.cli("repair", "list", "--site", broken.name)
    assert done.status == 0
    lines = done.out.splitlines()
    assert lines[0] == f"{broken.name}: 3 pages need a person"
    assert lines[1] == "2 pages: words: # is outside # to #"
    assert re.fullmatch(r"  cause:\w{8}, invalid_page: The draft breaks a .*", lines[2])
    assert re.fullmatch(r"  e\.g\. t0: words: \d+ is outside 2000 to 3000", lines[3])
    assert lines[4].startswith("  to do: correct prompt")
    assert lines[5] == "1 page: row …: column 'people' is empty, and the page must state it"


def test_a_cause_shows_its_pages_and_the_whole_story_of_the_first(
    broken: TownSite, workshop: Workshop
) -> None:
    cause = fingerprint(workshop, broken, "words")
    done = workshop.cli("repair", "show", cause, "--site", broken.name)
    assert done.status == 0
    for title in (f"Pages of {cause}", "Attempts", "Rejected drafts", "Transitions"):
        assert title in done.out
    assert "the draft breaks a rule" in done.out
    one = workshop.cli("repair", "show", "t2", "--site", broken.name)
    assert "column 'people' is empty" in one.out
    unknown = workshop.cli("repair", "show", "cause:00000000", "--site", broken.name)
    assert (unknown.status, "see `content-pipeline repair list`" in unknown.err) == (2, True)


def test_a_group_is_taken_up_again_once_somebody_says_why(
    broken: TownSite, workshop: Workshop
) -> None:
    cause = fingerprint(workshop, broken, "words")
    silent = workshop.cli("repair", "retry", cause, "--site", broken.name, "--cause", " ")
    assert (silent.status, "--cause must say why" in silent.err) == (2, True)
    assert workshop.cli("repair", "retry", cause, "--site", broken.name).status == 2

    broken.declare()
    done = workshop.cli("repair", "retry", cause, "--site", broken.name, "--cause", "too strict")
    assert done.out.startswith(f"2 of 2 pages of {cause} are taken up again")
    paid = workshop.requests()["create"]
    assert broken.run().count("published") == 2
    assert workshop.requests()["create"] == paid
    story = workshop.cli("show", "t0", "--site", broken.name).out
    assert re.search(r"repaired: too strict \(\S+@\S+\)", story)


def test_a_value_corrected_beside_the_table_brings_its_page_out(
    broken: TownSite, workshop: Workshop
) -> None:
    broken.declare()
    fix = ("repair", "fix-input", "t2", "--site", broken.name, "--cause", "asked the town hall")
    assert workshop.cli(*fix, "--set", "people").status == 2
    assert workshop.cli(*fix, "--set", "mayor=Ann").status == 2
    done = workshop.cli(*fix, "--set", "people=12,345")
    assert done.out.startswith("t2 is corrected in people until the table itself changes there")
    assert broken.run().count("published") == 1
    page = broken.page(towns(3)[2])
    assert page is not None
    assert "12,345" in page
    assert "asked the town hall" in workshop.cli("show", "t2", "--site", broken.name).out


def test_a_page_is_made_anew_only_on_purpose_and_pays_again(
    make_site: MakeSite, workshop: Workshop
) -> None:
    site = make_site(towns(1))
    assert site.run().status == 0
    paid = workshop.requests()["create"]
    done = workshop.cli("repair", "regenerate", "t0", "--site", site.name, "--cause", "dull")
    assert "This pays for it again" in done.out
    assert site.run().count("published") == 1
    assert site.run().count("reused") == 1
    assert workshop.requests()["create"] == paid + 1
    assert [revision for _, revision in site.writes()] == [1, 2]


def test_a_cancelled_page_stays_away_and_the_exit_status_tells_what_came_of_it(
    make_site: MakeSite, workshop: Workshop
) -> None:
    site = make_site(towns(2))
    # Both wait for a new day's budget.
    assert site.run("--quiet", CONTENT_PIPELINE_DAY_USD="0").status == 1
    cancel = ("cancel", "t0", "--site", site.name, "--reason", "not wanted")
    done = workshop.cli(*cancel)
    assert (done.status, done.out) == (0, "t0 is cancelled and will not be published\n")
    assert workshop.cli("cancel", "t0", "--site", site.name, "--reason", "").status == 2
    retried = workshop.cli("repair", "retry", "t1", "--site", site.name, "--cause", "x")
    assert "nothing to repair" in retried.out
    story = workshop.cli("show", "t0", "--site", site.name).out
    assert re.search(r"asked for by \S+@\S+: not wanted", story)


def test_a_live_page_cannot_be_cancelled(make_site: MakeSite, workshop: Workshop) -> None:
    site = make_site(towns(1))
    site.run("--quiet")
    done = workshop.cli("cancel", "t0", "--site", site.name, "--reason", "late")
    assert (done.status, done.out) == (1, "t0 is published: there is nothing to cancel\n")
    unknown = workshop.cli("cancel", "nobody", "--site", site.name, "--reason", "x")
    assert unknown.status == 2
