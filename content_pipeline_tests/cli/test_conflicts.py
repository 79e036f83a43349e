"""``survey`` and ``conflicts``: what people changed on the site is found, shown and decided."""

import pytest

from content_pipeline_tests.cli.conftest import MakeSite
from content_pipeline_tests.cli.workshop import Finished, TownSite, towns


def edit(site: TownSite, number: int = 0, word: str = "Lovely") -> None:
    name = towns()[number]["name"].lower().replace(" ", "-")
    file = site.public / name / "index.html"
    file.write_text(file.read_text().replace("<h1>", f"<h1>{word} "))


def cli(site: TownSite, *arguments: str) -> Finished:
    return site.workshop.cli(*arguments, "--site", site.name)


def live(make_site: MakeSite, count: int = 2, **changes: object) -> TownSite:
    site = make_site(towns(count), **changes)
    assert site.run().status == 0
    return site


def test_a_survey_of_an_untouched_site_finds_nothing(make_site: MakeSite) -> None:
    site = live(make_site)
    done = cli(site, "survey", "--full")
    assert (done.status, done.err) == (0, "")
    assert "2 pages listed, 0 looked at closely; everything was seen" in done.out
    assert "nothing new was found" in done.out
    assert f"{site.name}: 0 pages to decide about" in cli(site, "conflicts").out


def test_an_edit_is_found_listed_shown_and_kept(make_site: MakeSite) -> None:
    site = live(make_site)
    edit(site)
    found = cli(site, "survey")
    assert found.status == 1
    assert "1 edited" in found.out
    assert f"1 page to decide about: content-pipeline conflicts --site {site.name}" in found.out

    listed = cli(site, "conflicts")
    assert (listed.status, listed.err) == (0, "")
    assert f"{site.name}: 1 page to decide about" in listed.out
    assert "/aarau-0/" in listed.out
    assert "the page was edited on the site since we published revision 1" in listed.out

    shown = cli(site, "conflicts", "show", "/aarau-0/")
    assert (shown.status, shown.err) == (0, "")
    assert "+title: Lovely " in shown.out
    assert "-title: " in shown.out
    assert "change found" in shown.out
    assert "conflicts keep-theirs t0" in shown.out

    kept = cli(site, "conflicts", "keep-theirs", "t0", "--cause", "the editor knows better")
    assert kept.status == 0
    assert "stays as it is on the site" in kept.out
    assert "0 pages to decide about" in cli(site, "conflicts").out
    assert cli(site, "survey", "--full").status == 0
    assert "Lovely" in (site.page(towns()[0]) or "")
    assert "theirs kept" in cli(site, "show", "t0").out


def test_ours_is_published_over_what_was_seen_by_the_next_run(make_site: MakeSite) -> None:
    site = live(make_site)
    edit(site)
    cli(site, "survey")
    told = cli(site, "conflicts", "publish-ours", "t0", "--cause", "the edit was wrong")
    assert told.out == (
        "/aarau-0/ is ready_to_publish; the next run publishes ours over what is on the site now\n"
    )
    done = site.run()
    assert (done.status, done.row("attempts")[1]) == (0, "0 generate, 1 publish")
    assert "Lovely" not in (site.page(towns()[0]) or "")


def test_a_run_tells_of_changes_and_so_does_the_status(make_site: MakeSite) -> None:
    site = live(make_site)
    edit(site)
    cli(site, "survey")
    done = site.run()
    assert done.status == 0, "the page is published; whether the edit stands is a question"
    assert done.count("changed on the site") == 1
    assert f"decide about them: content-pipeline conflicts --site {site.name}" in done.out
    status = cli(site, "status")
    assert status.row("edited on the site")[0] == "1"
    assert "pages changed on the site: content-pipeline conflicts" in status.out
    assert "edited, found" in cli(site, "show", "t0").row("on the site")[0]


def test_a_lost_page_is_put_back_by_the_next_run(make_site: MakeSite) -> None:
    site = live(make_site)
    (site.public / "baden-1" / "index.html").unlink()
    found = cli(site, "survey", "--full")
    assert (found.status, "1 missing" in found.out) == (0, True)
    assert "1 are published again by the next run" in found.out
    assert site.run().status == 0
    assert site.page(towns()[1]) is not None


@pytest.mark.parametrize("decision", ["keep-theirs", "publish-ours"])
def test_a_decision_needs_a_cause(make_site: MakeSite, decision: str) -> None:
    site = live(make_site, 1)
    for options in ([], ["--cause", " "]):
        done = cli(site, "conflicts", decision, "t0", *options)
        assert (done.status, done.out) == (2, "")
        assert "--cause" in done.err


def test_an_unknown_page_is_status_2(make_site: MakeSite) -> None:
    site = live(make_site, 1)
    done = cli(site, "conflicts", "show", "nobody")
    assert (done.status, done.out) == (2, "")
    assert "has no page 'nobody'" in done.err


def test_an_untouched_page_is_shown_as_such(make_site: MakeSite) -> None:
    site = live(make_site, 1)
    done = cli(site, "conflicts", "show", "t0")
    assert done.out == "/aarau-0/: as we left it\nthe texts are the same\n"
