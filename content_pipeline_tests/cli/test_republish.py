"""``republish``, ``rollback`` and topics that leave the table, from the command line."""

import shutil

import pytest

from content_pipeline_tests.cli.conftest import MakeSite
from content_pipeline_tests.cli.workshop import Finished, TownSite, Workshop, towns

CAUSE = ("--cause", "a backup was restored")


def cli(site: TownSite, *arguments: str) -> Finished:
    return site.workshop.cli(*arguments, "--site", site.name)


def live(make_site: MakeSite, count: int = 2, **changes: object) -> TownSite:
    site = make_site(towns(count), **changes)
    assert site.run().status == 0
    return site


def version_of(site: TownSite, page: str = "t0") -> str:
    return cli(site, "show", page).row("generation version")[0]


def test_pages_that_the_site_lost_are_put_back_by_the_next_run(
    make_site: MakeSite, workshop: Workshop
) -> None:
    site = live(make_site)
    shutil.rmtree(site.public)
    paid = workshop.requests()["create"]
    told = cli(site, "republish", "--all", *CAUSE)
    assert (told.status, told.out) == (0, "2 pages taken up; the next run goes on\n")
    done = site.run()
    assert (done.status, done.count("published")) == (0, 2)
    assert site.page(towns()[0]) is not None
    assert workshop.requests()["create"] == paid


def test_with_now_it_is_done_at_once(make_site: MakeSite) -> None:
    site = live(make_site)
    shutil.rmtree(site.public)
    told = cli(site, "republish", "t0", "--now", *CAUSE)
    assert (told.status, told.out) == (0, "1 page taken up\n1 page published\n")
    assert site.page(towns()[0]) is not None
    assert site.page(towns()[1]) is None


def test_a_page_that_is_not_published_is_named(make_site: MakeSite) -> None:
    rows = towns(2)
    site = make_site([rows[0], rows[1] | {"people": ""}])
    site.run()
    told = cli(site, "republish", "t0", "t1", *CAUSE)
    assert told.status == 1
    assert told.out == (
        "1 page taken up; the next run goes on\nt1 is left alone: it is failed_terminal\n"
    )


@pytest.mark.parametrize(
    "arguments", [("--cause", "x"), ("--all", "t0", "--cause", "x"), ("--all",), ("nobody", *CAUSE)]
)
def test_what_is_not_clear_is_refused(make_site: MakeSite, arguments: tuple[str, ...]) -> None:
    site = live(make_site, 1)
    done = cli(site, "republish", *arguments)
    assert (done.status, done.out) == (2, "")


def test_a_way_of_making_pages_is_taken_back_and_lifted(
    make_site: MakeSite, workshop: Workshop
) -> None:
    site = live(make_site)
    first = site.page(towns()[0])
    (site.folder / "prompt.md").write_text("Praise {{ name }}.\n\n{{ facts }}\n")
    assert site.run().count("published") == 2
    version = version_of(site)
    paid = workshop.requests()["create"]

    back = cli(site, "rollback", "--generation-version", version, "--cause", "it boasts")
    assert (back.status, back.err) == (0, "")
    assert back.out == (
        f"nothing is made by {version} any more\n2 pages go back; the next run publishes them\n"
    )
    done = site.run()
    assert (done.status, done.count("published")) == (1, 2)
    assert "this way of making pages was rolled back: it boasts (" in done.out
    assert (site.page(towns()[0]) or "").replace(" rev=3 ", " rev=1 ") == first
    assert cli(site, "status").row("rolled back")[0].startswith(f"{version}: it boasts (")
    assert cli(site, "doctor").status == 1

    again = cli(site, "rollback", "--generation-version", version, "--cause", "it boasts")
    assert "0 pages go back" in again.out
    lifted = cli(site, "rollback", "--generation-version", version, "--lift")
    assert lifted.out == f"{version} may be used again; the next run makes what is missing\n"
    done = site.run()
    assert (done.status, done.count("published")) == (0, 2)
    assert workshop.requests()["create"] == paid
    unlifted = cli(site, "rollback", "--generation-version", version, "--lift")
    assert unlifted.out == f"{version} was not rolled back\n"


def test_pages_without_an_earlier_version_are_listed(make_site: MakeSite) -> None:
    site = live(make_site)
    back = cli(site, "rollback", "--generation-version", version_of(site), "--cause", "x")
    assert "2 pages never showed anything else and stay as they are: t0, t1" in back.out


@pytest.mark.parametrize(
    ("options", "said"), [(["--cause", "x"], "never made a page"), ([], "--cause must say why")]
)
def test_a_rollback_of_nothing_is_refused(
    make_site: MakeSite, options: list[str], said: str
) -> None:
    site = live(make_site, 1)
    done = cli(site, "rollback", "--generation-version", "v0", *options)
    assert (done.status, done.out) == (2, "")
    assert said in done.err


@pytest.mark.parametrize(("when_gone", "stays"), [("keep", True), ("unpublish", False)])
def test_a_run_tells_which_topics_left_the_table(
    make_site: MakeSite, when_gone: str, stays: bool
) -> None:
    site = live(make_site, topics__when_gone=when_gone)
    site.write(towns(1))
    done = site.run()
    assert (done.status, done.count("retired")) == (0, 1)
    fate = "their pages stay on the site" if stays else "their pages are taken off the site"
    assert f"left the table: t1; {fate}" in done.out
    assert (site.page(towns()[1]) is not None) is stays
    assert ("/baden-1/" in site.sitemap()) is stays
    again = site.run()
    assert (again.status, again.count("reused"), again.count("retired")) == (0, 1, 1)
    assert "left the table" not in again.out
    status = cli(site, "status")
    assert status.row("topics")[0] == "1"
    assert status.row("topics that left the table")[0] == "1"
    shown = cli(site, "show", "t1")
    assert shown.row("topic")[0] == "no longer in the table"
    assert ("taken off the site" in shown.out) is not stays


def test_a_table_that_was_cut_short_changes_nothing(make_site: MakeSite) -> None:
    site = live(make_site, 12, topics__when_gone="unpublish")
    site.write(towns(1))
    done = site.run()
    assert done.status == 2
    assert "11 of 12 topics are no longer in the table" in done.err
    site.write(towns(12))
    assert site.run().count("reused") == 12
