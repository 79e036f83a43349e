"""``content-pipeline run`` as a content team meets it; the provider and the folder are judges."""

import contextlib
import os
import pty
import re
import shutil
import signal
import subprocess
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from content_pipeline_tests.cli.conftest import MakeSite
from content_pipeline_tests.cli.workshop import PROGRAM, Row, Workshop, towns
from content_pipeline_tests.operations.small_site import path_of


def changed(rows: list[Row], number: int, **cells: str) -> list[Row]:
    return [row | cells if at == number else row for at, row in enumerate(rows)]


def eventually(holds: Callable[[], bool], within_s: float = 30) -> None:
    """Wait until ``holds``; fails when it does not come true at all."""
    end = time.monotonic() + within_s
    while not holds():
        assert time.monotonic() < end, "it never came true"
        time.sleep(0.02)


# --- the way without trouble --------------------------------------------------------------------


def test_a_table_becomes_proved_pages_and_a_second_run_does_nothing(
    make_site: MakeSite, workshop: Workshop
) -> None:
    site, rows = make_site(), towns()
    paths = sorted(map(path_of, rows))
    before = workshop.requests()

    first = site.run()

    assert (first.status, first.err) == (0, "")
    assert [first.count(name) for name in ("published", "reused", "waiting", "failed")] == [
        6,
        0,
        0,
        0,
    ]
    assert first.row("attempts") == ("12", "6 generate, 6 publish")
    assert first.row("look at")[1] == str(site.public / "index.html")
    assert Path(first.row("sitemap")[1]).is_file()
    assert workshop.requests()["create"] == before.get("create", 0) + 6
    assert site.writes() == [(path, 1) for path in paths]
    assert site.sitemap() == paths
    for row in rows:
        page = site.page(row)
        assert page is not None
        assert row["people"] in page

    asked = workshop.requests()
    second = workshop.program("run", "--site", site.name)

    assert (second.status, second.err) == (0, "")
    assert [second.count(name) for name in ("published", "reused", "attempts")] == [0, 6, 0]
    assert second.row("dollars")[0] == "$0.0000"
    assert first.row("dollars")[0] in second.row("dollars")[1]
    assert workshop.requests() == asked
    assert site.writes() == [(path, 1) for path in paths]


def test_a_site_on_background_responses_becomes_the_same_pages(
    make_site: MakeSite, workshop: Workshop
) -> None:
    rows = towns(4)
    site = make_site(rows, generation__api="responses", generation__background=True)
    before = workshop.requests()

    first = site.run()

    assert (first.status, first.err) == (0, "")
    assert [first.count(name) for name in ("published", "waiting", "failed")] == [4, 0, 0]
    after = workshop.requests()
    assert after["create"] == before.get("create", 0) + 4
    assert after["retrieve"] >= before.get("retrieve", 0) + 4
    assert after.get("list", 0) == before.get("list", 0)
    assert site.writes() == [(path, 1) for path in sorted(map(path_of, rows))]

    site.declare(generation__api="chat")
    second = site.run()
    assert [second.count(name) for name in ("published", "reused", "attempts")] == [0, 4, 0]
    assert workshop.requests()["create"] == after["create"]


def test_only_the_page_whose_facts_changed_is_made_again_and_going_back_is_free(
    make_site: MakeSite, workshop: Workshop
) -> None:
    rows = towns(3)
    site = make_site(rows)
    assert site.run().status == 0
    paid = workshop.requests()["create"]
    first_page = site.page(rows[1])

    site.write(changed(rows, 1, river="Inn"))
    after_change = site.run()

    assert after_change.status == 0
    assert [after_change.count(name) for name in ("published", "reused")] == [1, 2]
    assert workshop.requests()["create"] == paid + 1
    chur = path_of(rows[1])
    assert site.writes() == sorted([(path_of(row), 1) for row in rows] + [(chur, 2)])
    second_page = site.page(rows[1])
    assert second_page is not None
    assert "Inn" in second_page

    site.write(rows)
    back = site.run()

    assert back.status == 0
    assert back.count("published") == 1
    assert back.row("attempts") == ("1", "0 generate, 1 publish")
    assert workshop.requests()["create"] == paid + 1, "the stored draft is used again"
    assert [revision for path, revision in site.writes() if path == chur] == [1, 2, 3]
    body = re.compile(r"<article.*</article>", re.DOTALL)
    again = site.page(rows[1])
    assert first_page is not None
    assert again is not None
    assert body.findall(again) == body.findall(first_page) != body.findall(second_page)


def test_a_column_that_no_page_uses_and_the_order_of_rows_change_nothing(
    make_site: MakeSite, workshop: Workshop
) -> None:
    rows = towns(3)
    site = make_site(rows)
    assert site.run().status == 0
    asked, written = workshop.requests(), site.writes()
    site.write([row | {"note": "other"} for row in reversed(rows)])
    done = site.run()
    assert (done.status, done.count("reused")) == (0, 3)
    assert (workshop.requests(), site.writes()) == (asked, written)


def test_another_prompt_makes_every_page_anew_and_another_title_none(
    make_site: MakeSite, workshop: Workshop
) -> None:
    site = make_site(towns(2))
    assert site.run().status == 0
    paid = workshop.requests()["create"]
    site.declare(title="Other towns", budgets__page_usd=2)
    assert site.run().count("reused") == 2
    assert workshop.requests()["create"] == paid
    (site.folder / "prompt.md").write_text("Praise {{ name }}.\n\n{{ facts }}\n")
    assert site.run().count("published") == 2
    assert workshop.requests()["create"] == paid + 2
    assert [revision for _, revision in site.writes()] == [1, 2, 1, 2]


def test_a_site_file_elsewhere_can_be_named(make_site: MakeSite, workshop: Workshop) -> None:
    site = make_site(towns(1))
    elsewhere = workshop.root / "elsewhere"
    shutil.move(site.folder, elsewhere)
    done = workshop.cli("run", "--file", str(elsewhere / "defs.yaml"))
    assert (done.status, done.count("published")) == (0, 1)


# --- what is printed ----------------------------------------------------------------------------


def test_quiet_prints_nothing_whatever_happens(make_site: MakeSite) -> None:
    rows = towns(2)
    site = make_site(changed(rows, 1, people=""))
    done = site.run("--quiet")
    assert (done.status, done.out, done.err) == (1, "", "")
    site.write(rows)
    done = site.run("--quiet")
    assert (done.status, done.out, done.err) == (0, "", "")


def test_a_terminal_is_shown_progress_and_a_file_is_not(make_site: MakeSite) -> None:
    site = make_site(towns(2), title="Towns [of] :cat: world")
    reading, writing = pty.openpty()
    try:
        with site.workshop.started(
            "run", "--site", site.name, terminal=os.ttyname(writing)
        ) as command:
            done = command.finished()
        shown = os.read(reading, 100_000).decode()
    finally:
        os.close(reading)
        os.close(writing)
    assert (done.status, done.err) == (0, "")
    assert "2/2" in shown
    assert "Towns [of] :cat: world" in shown
    assert done.out.startswith("Towns [of] :cat: world ")
    assert "\x1b" not in done.out


def test_the_worst_of_many_failures_is_not_a_flood(make_site: MakeSite) -> None:
    site = make_site([row | {"people": ""} for row in towns(14)])
    done = site.run()
    assert (done.status, done.count("failed")) == (1, 14)
    assert done.out.count("is empty, and the page must state it") == 10
    assert f"and 4 more: content-pipeline status --site {site.name}" in done.out


# --- tables that are partly or wholly wrong -----------------------------------------------------


def test_bad_rows_fail_alone_with_their_reason_and_are_gone_once_corrected(
    make_site: MakeSite, workshop: Workshop
) -> None:
    rows = towns()
    bad = changed(rows, 1, id="a,b")
    bad = changed(bad, 2, people=" ")
    bad = changed(bad, 3, name=rows[0]["name"])
    bad = changed(bad, 4, id="t0")
    site = make_site(bad)
    paid = workshop.requests().get("create", 0)

    done = site.run()

    assert done.status == 1
    assert [done.count(name) for name in ("published", "failed")] == [2, 4]
    assert done.row("failed")[1] == "invalid_input 3, terminal 1"
    assert "row 2: column 'id' holds the id 'a,b'; only letters, digits" in done.out
    assert "t2: row 3 (t2): column 'people' is empty, and the page must state it" in done.out
    assert "t3: topics 't0' and 't3' both claim /aarau-0/; it belongs to 't0'" in done.out
    assert "row 5 repeats the id 't0' of row 1, which is the one that is used" in done.out
    assert workshop.requests()["create"] == paid + 2
    assert site.writes() == [(path_of(rows[0]), 1), (path_of(rows[5]), 1)]

    site.write(rows)
    corrected = site.run()

    assert corrected.status == 0
    assert [corrected.count(name) for name in ("published", "reused", "failed")] == [4, 2, 0]
    assert sorted(path for path, _ in site.writes()) == sorted(map(path_of, rows))


def test_a_row_that_turns_bad_leaves_its_page_alone(make_site: MakeSite) -> None:
    rows = towns(2)
    site = make_site(rows)
    assert site.run().status == 0
    written, page = site.writes(), site.page(rows[1])
    site.write(changed(rows, 1, people="10\x00037"))
    done = site.run()
    assert (done.status, done.count("failed"), done.count("reused")) == (1, 1, 1)
    assert r"holds the control character '\x00'; remove it" in done.out
    assert (site.writes(), site.page(rows[1])) == (written, page)
    assert path_of(rows[1]) in site.sitemap(), "the page is still there for visitors"
    site.write(rows)
    assert site.run().count("reused") == 2


def test_a_page_does_not_move_because_its_name_changed(make_site: MakeSite) -> None:
    rows = towns(2)
    site = make_site(rows)
    assert site.run().status == 0
    site.write(changed(rows, 1, name="Basel"))
    done = site.run()
    assert (done.status, done.count("failed")) == (1, 1)
    assert "topic 't1' is published under /baden-1/ and its row now asks for /basel/" in done.out
    assert site.page(rows[1]) is not None


def test_a_name_is_shown_as_it_is_and_never_as_markup(make_site: MakeSite) -> None:
    rows = [row | {"name": f"[/red] :cat: {row['id']} [bold]"} for row in towns(2)]
    site = make_site(changed(rows, 1, people=""), owner="team [b]")
    done = site.run()
    assert (done.status, done.count("published"), done.count("failed")) == (1, 1, 1)
    shown = site.workshop.cli("show", "t0", "--site", site.name)
    assert shown.status == 0
    assert f"[/red] :cat: t0 [bold] ({site.name}/t0)" in shown.out
    assert "team [b]" in shown.out


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (None, "there is no topic table at "),
        ("", "is empty; it needs a header and at least one row"),
        ("id,name,river,people\n", "has a header and no rows; add at least one topic"),
        ("id,name\nt0,Aarau\n", "has no column 'people', 'river'; it has 'id', 'name'"),
        ('id,name,river,people\nt0,"Aarau,Aare,1\n', "in the row that begins at line 2"),
    ],
)
def test_a_table_that_cannot_be_read_stops_before_anything_is_asked(
    make_site: MakeSite, workshop: Workshop, content: str | None, message: str
) -> None:
    site = make_site()
    table = site.folder / "topics.csv"
    table.unlink() if content is None else table.write_text(content)
    asked = workshop.requests()
    done = site.run()
    assert (done.status, done.out) == (2, "")
    assert message in done.err
    assert workshop.requests() == asked
    assert not site.public.exists()


# --- settings that cannot work ------------------------------------------------------------------


def test_a_model_without_a_price_is_refused_before_anything_is_sent(
    make_site: MakeSite, workshop: Workshop
) -> None:
    site = make_site(generation__model="gpt-99-imaginary")
    asked = workshop.requests()
    done = site.run()
    assert (done.status, done.out) == (2, "")
    assert "gpt-99-imaginary" in done.err
    assert "price" in done.err
    assert workshop.requests() == asked


def test_a_provider_without_its_key_names_the_variable(make_site: MakeSite) -> None:
    site = make_site(generation__provider="openai", generation__api_key_env="TOWNS_API_KEY")
    done = site.run()
    assert (done.status, done.out) == (2, "")
    assert "provider 'openai' needs a key in the environment variable TOWNS_API_KEY" in done.err
    assert site.run(TOWNS_API_KEY="   ").status == 2


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("postgresql://me:hush@127.0.0.1:1/towns", "127.0.0.1"),
        ("postgresql://me:hush@127.0.0.1:1", "it names no database"),
        ("mysql://me:hush@127.0.0.1/towns", "it starts with mysql://"),
        ("postgresql://me:hu@sh@127.0.0.1/towns", "write %40 for it"),
    ],
)
def test_a_database_that_cannot_be_used_is_named_without_its_password(
    make_site: MakeSite, url: str, message: str
) -> None:
    done = make_site().run(CONTENT_PIPELINE_DATABASE_URL=url)
    assert (done.status, done.out) == (2, "")
    assert done.err.startswith("Error: ")
    assert message in done.err
    assert "sh@127" not in done.err
    assert "hush" not in done.err
    assert "Traceback" not in done.err


# --- a target that cannot be written ------------------------------------------------------------


def test_pages_wait_with_their_drafts_while_the_folder_cannot_be_written(
    make_site: MakeSite, workshop: Workshop
) -> None:
    patient = {"storage": {"attempts": 50, "first_wait_s": 2, "max_wait_s": 2}}
    site = make_site(towns(2), lane__patience_s=0, retries=patient)
    site.public.parent.mkdir(exist_ok=True)
    site.public.write_text("a file stands where the folder should be")
    paid = workshop.requests().get("create", 0)

    blocked = site.run()

    assert blocked.status == 1
    assert [blocked.count(name) for name in ("published", "waiting", "failed")] == [0, 2, 0]
    assert blocked.row("waiting")[1].endswith(" UTC storage 2")
    assert "a file or a symbolic link" in workshop.cli("show", "t0", "--site", site.name).out
    assert workshop.requests()["create"] == paid + 2

    site.public.unlink()
    site.declare(lane__patience_s=20, retries=patient)
    freed = site.run()

    assert (freed.status, freed.count("published")) == (0, 2)
    assert freed.row("attempts")[1].startswith("0 generate, ")
    assert workshop.requests()["create"] == paid + 2, "the drafts were kept"
    assert [path for path, _ in site.writes()] == sorted(map(path_of, towns(2)))


def test_a_topic_that_left_the_table_is_not_worked_on(make_site: MakeSite) -> None:
    patient = {"storage": {"attempts": 50, "first_wait_s": 2, "max_wait_s": 2}}
    site = make_site(towns(2), lane__patience_s=0, retries=patient)
    site.public.parent.mkdir(exist_ok=True)
    site.public.write_text("a file stands where the folder should be")
    assert site.run().count("waiting") == 2

    site.public.unlink()
    site.declare(lane__patience_s=20, retries=patient)
    site.write(towns(1))
    done = site.run()

    assert (done.status, done.count("published")) == (0, 1)
    assert [path for path, _ in site.writes()] == [path_of(towns(1)[0])]


def test_an_announcement_that_fails_is_told_and_made_up_for(make_site: MakeSite) -> None:
    often = {"attempts": 50, "first_wait_s": 0.1, "max_wait_s": 0.1}
    site = make_site(towns(1), retries={"storage": often})
    (site.public / "sitemap.xml" / "x").mkdir(parents=True)

    blocked = site.run()
    assert (blocked.status, blocked.count("published"), blocked.count("untold")) == (1, 1, 1)
    assert "a folder stands where a file should; move it away" in blocked.row("sitemap")[1]
    assert blocked.row("index page")[1].endswith("index.html")

    shutil.rmtree(site.public / "sitemap.xml")
    freed = site.run()
    assert (freed.status, freed.count("reused")) == (0, 1)
    assert site.sitemap() == ["/aarau-0/"]


def test_an_announcement_that_was_given_up_is_tried_again_by_the_next_run(
    make_site: MakeSite, workshop: Workshop
) -> None:
    site = make_site(towns(1), retries={"storage": {"attempts": 1}})
    (site.public / "sitemap.xml" / "x").mkdir(parents=True)
    for _ in range(2):
        blocked = site.run()
        assert (blocked.status, blocked.row("sitemap")[1][:8]) == (1, "failed: ")
    told = workshop.cli("status", "--site", site.name).out
    assert re.search(r"announcements failed\W+1\W", told)

    shutil.rmtree(site.public / "sitemap.xml")
    assert site.run().status == 0
    assert site.sitemap() == ["/aarau-0/"]
    assert "announcements failed" not in workshop.cli("status", "--site", site.name).out


def test_an_announcement_that_waits_keeps_the_run_from_being_done(make_site: MakeSite) -> None:
    day_s = 86_400
    site = make_site(
        towns(1),
        retries={"storage": {"attempts": 50, "first_wait_s": day_s, "max_wait_s": day_s}},
    )
    (site.public / "sitemap.xml" / "x").mkdir(parents=True)
    assert site.run().status == 1
    later = site.run()
    assert (later.status, later.count("reused"), later.count("untold")) == (1, 1, 1)


# --- being stopped ------------------------------------------------------------------------------


def creates(workshop: Workshop, since: int) -> int:
    return workshop.requests().get("create", 0) - since


def test_one_interrupt_finishes_the_pages_at_work_and_the_next_run_goes_on(
    make_site: MakeSite, workshop: Workshop
) -> None:
    rows = towns(12)
    site = make_site(rows, generation__in_flight=2, generation__sandbox__latency_median_s=0.3)
    before = workshop.requests().get("create", 0)

    with workshop.started("run", "--site", site.name) as command:
        eventually(lambda: creates(workshop, before) >= 2)
        os.kill(command.pid, signal.SIGINT)
        stopped = command.finished()

    assert stopped.status == 1
    made = stopped.count("published")
    assert stopped.count("waiting") == 12 - made > 0
    assert stopped.row("waiting")[1] == "the run was stopped; the same command goes on"
    assert stopped.count("failed") == stopped.count("uncertain") == 0
    assert creates(workshop, before) == made == len(site.writes()) == len(site.sitemap())

    site.declare(generation__in_flight=4)
    rest = site.run()

    assert (rest.status, rest.count("published"), rest.count("reused")) == (0, 12 - made, made)
    assert creates(workshop, before) == 12
    assert site.writes() == sorted((path_of(row), 1) for row in rows)


def test_a_second_interrupt_ends_at_once_and_nothing_is_paid_twice(
    make_site: MakeSite, workshop: Workshop
) -> None:
    rows = towns(4)
    site = make_site(
        rows,
        lane__patience_s=20,
        generation__in_flight=4,
        generation__sandbox__latency_median_s=2,
        generation__sandbox__latency_sigma=0,
    )
    before = workshop.requests().get("create", 0)

    with workshop.started("run", "--site", site.name) as command:
        eventually(lambda: creates(workshop, before) == 4)
        with contextlib.suppress(ProcessLookupError):  # once it is gone
            while True:
                os.kill(command.pid, signal.SIGINT)
                time.sleep(0.1)
        killed = command.finished()

    assert killed.status == 128 + signal.SIGINT
    assert site.writes() == []

    rest = site.run()

    assert (rest.status, rest.count("published")) == (0, 4)
    assert creates(workshop, before) == 4, "the provider was asked for the answers it had"
    assert site.writes() == sorted((path_of(row), 1) for row in rows)


def test_the_installed_program_takes_an_interrupt_too(
    make_site: MakeSite, workshop: Workshop
) -> None:
    site = make_site(towns(8), generation__in_flight=1, generation__sandbox__latency_median_s=0.4)
    before = workshop.requests().get("create", 0)
    process = subprocess.Popen(
        [PROGRAM, "run", "--site", site.name],
        cwd=workshop.root,
        env=dict(workshop.environment),
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    eventually(lambda: creates(workshop, before) >= 1)
    process.send_signal(signal.SIGTERM)
    out, err = process.communicate()
    assert (process.returncode, err) == (1, "")
    assert "the run was stopped; the same command goes on" in out
    assert creates(workshop, before) == len(site.writes()) < 8
