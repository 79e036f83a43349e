"""A table that was taken in as a whole is not read again for some of its pages; all else is."""

import os
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import text
from sqlalchemy.exc import OperationalError

from content_pipeline.core.buckets import Buckets, TopicsOf
from content_pipeline.core.errors import TopicTableError
from content_pipeline.core.failures import FailureClass
from content_pipeline.ledger import jobs
from content_pipeline.ledger.schema import sites, topics
from content_pipeline.operations import submit as operation
from content_pipeline.operations.corrections import fix_input
from content_pipeline.operations.regenerate import regenerate
from content_pipeline.operations.rollback import lift, roll_back
from content_pipeline.operations.submit import submit
from content_pipeline_tests.conftest import MakeBench
from content_pipeline_tests.ledger.wanting import rows_where
from content_pipeline_tests.operations.bench import Bench
from content_pipeline_tests.operations.fakes import ScriptedCMS, ScriptedModel
from content_pipeline_tests.operations.small_site import settings_of, site_of
from content_pipeline_tests.operations.watched_table import WatchedTable

TOWNS = 5
PATIENCE_S = 30

MakeTable = Callable[..., WatchedTable]


@pytest.fixture
def make_table(make_bench: MakeBench, tmp_path: Path) -> MakeTable:
    def make(**changes: Any) -> WatchedTable:
        parts = {"model": ScriptedModel(), "cms": ScriptedCMS()}
        table = WatchedTable(bench=make_bench(TOWNS, **(parts | changes)), folder=tmp_path)
        table.write()
        return table

    return make


@pytest.fixture
def table(make_table: MakeTable) -> WatchedTable:
    """A table that was taken in."""
    table = make_table()
    table.take_in()
    assert table.rows_read() == TOWNS
    return table


def with_prompt(bench: Bench, words: str) -> None:
    """Make the pages of the bench's site by another prompt from now on."""
    prompt = f"{words} {{{{ name }}}}.\n\n{{{{ facts }}}}\n"
    bench.site = site_of(bench.site.settings, prompt=prompt)


def version_of(bench: Bench, topic: str) -> str:
    return bench.report(topic).generation_version


def columns_of(bench: Bench, topic: str = "t0") -> dict[str, str]:
    """What the topic's current page job is made from."""
    with bench.ledger.begin() as connection:
        return dict(jobs.load(connection, bench.report(topic).page_job_id).input_columns)


# --- read or not --------------------------------------------------------------------------------


def test_pages_of_the_table_taken_in_last_are_wanted_without_reading_it(
    table: WatchedTable,
) -> None:
    taken = table.want("t1", "t3", "t99")
    assert table.rows_read() == 0
    assert (sorted(taken.topic_keys), taken.wanted, taken.unchanged) == (["t1", "t3"], 0, 2)


def test_a_bucket_finds_its_topics_in_the_ledger(
    table: WatchedTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    buckets = Buckets(count=2)
    names = [buckets.name_of(row["id"]) for row in table.bench.rows]
    assert len(set(names)) == 2, "the sample has both buckets"
    for name in set(names):
        taken = table.want_bucket(TopicsOf(buckets, frozenset({name})))
        assert sorted(taken.topic_keys) == [
            row["id"] for row, its in zip(table.bench.rows, names, strict=True) if its == name
        ]
    both = table.want_bucket(TopicsOf(buckets, frozenset(names)))
    assert (len(both.topic_keys), both.unchanged, both.retired) == (TOWNS, TOWNS, ())
    assert table.rows_read() == 0


def test_a_table_that_was_never_taken_in_as_a_whole_is_read_each_time(
    make_table: MakeTable,
) -> None:
    table = make_table()
    for _ in range(2):
        table.want("t1")
        assert table.rows_read() == TOWNS
    assert table.bench.states() == {"t1": "queued"}


def test_a_whole_intake_reads_the_table_however_well_it_is_known(table: WatchedTable) -> None:
    assert (table.take_in().unchanged, table.rows_read()) == (TOWNS, TOWNS)


def test_one_edited_row_is_noticed_though_time_and_size_of_the_file_are_as_before(
    table: WatchedTable,
) -> None:
    before = table.file.stat()
    table.edit("t1", river="Singe")
    after = table.file.stat()
    assert (after.st_size, after.st_mtime_ns) == (before.st_size, before.st_mtime_ns)
    taken = table.want("t1")
    assert (taken.wanted, columns_of(table.bench, "t1")["river"]) == (1, "Singe")
    assert table.rows_read() == TOWNS


def test_a_table_put_back_as_it_was_is_read_since_some_topics_are_of_another_one(
    table: WatchedTable,
) -> None:
    original = table.file.read_bytes()
    table.edit("t1", river="Birs")
    table.want("t1")
    table.file.write_bytes(original)
    table.rows_read()
    assert table.want("t1").wanted == 1
    assert (table.rows_read(), columns_of(table.bench, "t1")["river"]) == (TOWNS, "Reuss")
    table.take_in()
    table.rows_read()
    assert (table.want("t1").unchanged, table.rows_read()) == (1, 0)


def test_rows_without_an_identity_are_always_read_and_end_what_was_known(
    table: WatchedTable,
) -> None:
    rows = [dict(row) for row in table.bench.rows]
    submit(table.bench.worker(), rows, requested_by="test", only=["t1"])
    assert not table.is_remembered()
    table.take_in()
    assert table.is_remembered()
    submit(table.bench.worker(), rows, requested_by="test")
    assert not table.is_remembered()


# --- a row that goes ----------------------------------------------------------------------------


def test_a_removed_row_is_noticed_and_then_known_to_be_gone(table: WatchedTable) -> None:
    table.bench.rows.pop(2)
    table.write()
    assert table.want("t2").topic_keys == ()
    assert table.rows_read() == TOWNS - 1
    assert table.take_in().retired == ("t2",)
    table.rows_read()
    taken = table.want("t1", "t2")
    assert (taken.topic_keys, taken.wanted, table.rows_read()) == (("t1",), 0, 0)


def test_a_topic_that_comes_back_is_wanted(table: WatchedTable) -> None:
    original = table.file.read_bytes()
    table.bench.rows.pop(2)
    table.write()
    table.take_in()
    table.file.write_bytes(original)
    assert table.want("t2").wanted == 1


# --- another way of making pages ----------------------------------------------------------------


def test_a_new_prompt_wants_the_pages_asked_for_anew_from_what_the_ledger_holds(
    table: WatchedTable,
) -> None:
    table.bench.run()
    with_prompt(table.bench, "Praise")
    taken = table.want("t1", "t3")
    assert (taken.wanted, table.rows_read()) == (2, 0)
    assert table.bench.states()["t1"] == "queued"
    assert version_of(table.bench, "t1") == table.bench.site.generation_version
    assert version_of(table.bench, "t0") != table.bench.site.generation_version
    assert columns_of(table.bench, "t1") == {
        name: value for name, value in table.bench.rows[1].items() if name != "id"
    }


def test_a_prompt_that_uses_another_column_has_the_table_read(table: WatchedTable) -> None:
    table.bench.rows = [row | {"mayor": f"M{row['id']}"} for row in table.bench.rows]
    table.write()
    table.take_in()
    table.rows_read()
    with_prompt(table.bench, "{{ mayor }} praises")
    assert table.want("t1").wanted == 1
    assert (table.rows_read(), columns_of(table.bench, "t1")["mayor"]) == (TOWNS, "Mt1")


DECIDING: dict[str, dict[str, Any]] = {
    "the path": {"topics": {"path": "/towns/{name}/"}},
    "the name": {"topics": {"name": "canton"}},
    "what must be there": {"article": {"must_state": ("name", "canton")}},
}


@pytest.mark.parametrize("what", DECIDING)
def test_settings_that_decide_what_a_row_means_have_the_table_read(
    what: str, table: WatchedTable
) -> None:
    table.bench.change(**DECIDING[what])
    table.want("t1")
    assert table.rows_read() == TOWNS


def test_other_settings_are_kept_all_the_same(table: WatchedTable) -> None:
    table.bench.change(lane={"page_deadline_s": 12_345.0})
    table.want("t1")
    (row,) = rows_where(table.bench.ledger, sites, site=table.bench.name)
    assert (row["page_deadline_s"], table.rows_read()) == (12_345.0, 0)


def test_a_page_made_anew_on_purpose_stays_the_one_that_is_wanted(table: WatchedTable) -> None:
    table.bench.run()
    site = table.bench.site
    regenerate(
        table.bench.ledger, site.settings, site.generation_version, "t1", cause="dull", by="ann"
    )
    anew = table.bench.report("t1").page_job_id
    assert (table.want("t1").unchanged, table.rows_read()) == (1, 0)
    assert table.bench.report("t1").page_job_id == anew


def test_what_was_rolled_back_is_wanted_again_of_the_tables_own_input_once_it_is_lifted(
    make_table: MakeTable,
) -> None:
    table = make_table()
    bench = table.bench
    table.take_in()
    bench.run()
    with_prompt(bench, "Praise")
    table.edit("t0", river="Inn")
    table.take_in()
    bench.run()
    table.rows_read()
    praised = bench.report().page_job_id
    roll_back(bench.worker(), bench.site.generation_version, cause="it boasts", by="anna")
    assert columns_of(bench)["river"] == "Aare", "the earlier page job is of earlier input"
    taken = table.want("t0")
    assert (taken.rolled_back, taken.wanted) == ("it boasts (anna)", 0)
    lift(bench.worker(), bench.site.generation_version)
    assert (table.want("t0").wanted, table.rows_read()) == (1, 0)
    assert (bench.report().page_job_id, columns_of(bench)["river"]) == (praised, "Inn")


def test_an_intake_that_wants_nothing_because_of_a_rollback_is_none_to_rely_on(
    table: WatchedTable,
) -> None:
    bench = table.bench
    bench.run()
    roll_back(bench.worker(), bench.site.generation_version, cause="it boasts", by="anna")
    table.edit("t1", river="Inn")
    table.take_in()
    assert not table.is_remembered()
    lift(bench.worker(), bench.site.generation_version)
    table.rows_read()
    assert (table.want("t1").wanted, table.rows_read()) == (1, TOWNS)


# --- rows that cannot become a page -------------------------------------------------------------


def test_a_refused_row_stays_refused_for_its_reason_also_under_a_new_prompt(
    make_table: MakeTable,
) -> None:
    table = make_table()
    table.bench.rows[1]["canton"] = ""
    table.bench.rows[2]["name"] = table.bench.rows[0]["name"]
    table.write()
    table.take_in()
    before = {topic: table.bench.report(topic) for topic in ("t1", "t2")}
    with_prompt(table.bench, "Praise")
    table.rows_read()
    taken = table.want("t0", "t1", "t2")
    assert (taken.wanted, sorted(taken.refused), table.rows_read()) == (1, ["t1", "t2"], 0)
    for topic, why in (("t1", FailureClass.INVALID_INPUT), ("t2", FailureClass.TERMINAL)):
        after = table.bench.report(topic)
        assert after.failure_class is why
        assert after.failure_message == before[topic].failure_message
        assert after.name == before[topic].name


def test_a_correction_beside_the_table_has_it_read_once_more(table: WatchedTable) -> None:
    bench = table.bench
    fix_input(
        bench.ledger,
        bench.site.settings,
        bench.site.columns,
        table,
        "t1",
        {"river": "Inn"},
        cause="a typo",
        by="ann",
    )
    table.rows_read()
    assert (table.want("t1").wanted, table.rows_read()) == (1, TOWNS)
    table.take_in()
    table.rows_read()
    assert (table.want("t1").unchanged, table.rows_read()) == (1, 0)
    assert columns_of(bench, "t1")["river"] == "Inn"


# --- interrupted and at once --------------------------------------------------------------------


def end_the_intake(bench: Bench) -> None:
    """Let the connection of the process that takes a table in be gone, as it is when it dies."""
    with bench.ledger.begin() as connection:
        ended = connection.execute(
            text("SELECT pg_terminate_backend(pid) FROM pg_locks WHERE locktype = 'advisory'")
        ).scalars()
        assert list(ended) == [True]


def test_an_intake_that_was_killed_is_not_taken_for_one_that_was_done(
    make_table: MakeTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(operation, "PART", 1)
    table = make_table()
    table.in_the_middle = lambda: end_the_intake(table.bench)
    with pytest.raises(OperationalError):
        table.take_in()
    assert not table.is_remembered()
    assert table.bench.states() == {}
    table.rows_read()
    table.want("t1")
    assert table.rows_read() == TOWNS


def test_after_a_killed_intake_the_table_before_it_is_the_one_taken_in(
    table: WatchedTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(operation, "PART", 1)
    original = table.file.read_bytes()
    table.edit("t0", river="Inn")
    table.in_the_middle = lambda: end_the_intake(table.bench)
    with pytest.raises(OperationalError):
        table.take_in()
    table.rows_read()
    edited = table.file.read_bytes()
    table.file.write_bytes(original)
    assert (table.want("t0").unchanged, table.rows_read()) == (1, 0)
    table.file.write_bytes(edited)
    assert (table.want("t0").wanted, table.rows_read()) == (1, TOWNS)


def test_a_table_that_changes_while_it_is_taken_in_changes_nothing(table: WatchedTable) -> None:
    table.edit("t1", river="Inn")

    def write() -> None:
        table.edit("t4", river="Birs")

    table.in_the_middle = write
    with pytest.raises(TopicTableError, match="changed while it was read; nothing was taken"):
        table.take_in()
    assert columns_of(table.bench, "t1")["river"] == "Reuss"
    assert table.take_in().wanted == 2


def test_a_planned_intake_is_remembered_where_it_is_kept_and_only_there(
    table: WatchedTable,
) -> None:
    worker = table.bench.worker()
    table.edit("t1", river="Inn")
    read = operation.read_table(worker, table)
    with table.bench.ledger.rehearsal() as connection:
        operation.want(connection, worker, read, requested_by="plan")
    table.rows_read()
    assert table.is_remembered(), "a rehearsal changes nothing"
    with table.bench.ledger.begin() as connection:
        operation.want(connection, worker, read, requested_by="schedule")
    assert (table.want("t1").unchanged, table.rows_read()) == (1, 0)
    rows = [dict(row) for row in table.bench.rows]
    with table.bench.ledger.begin() as connection:
        plain = operation.read_table(worker, rows)
        operation.want(connection, worker, plain, requested_by="schedule")
    assert not table.is_remembered()


def test_a_table_that_changes_while_it_is_read_for_some_pages_changes_nothing(
    make_table: MakeTable,
) -> None:
    table = make_table()
    table.in_the_middle = lambda: table.edit("t4", river="Birs")
    with pytest.raises(TopicTableError, match="changed while it was read"):
        table.want("t1")
    assert table.bench.states() == {}


def wait_until_somebody_waits(bench: Bench) -> None:
    until = time.monotonic() + PATIENCE_S
    waiting = text("SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted")
    while time.monotonic() < until:
        with bench.ledger.begin() as connection:
            if connection.execute(waiting).scalar_one():
                return
        time.sleep(0.01)
    raise AssertionError("nobody waits for the intake")


def test_a_run_that_begins_while_the_table_is_taken_in_waits_and_does_not_read_it(
    make_table: MakeTable, tmp_path: Path
) -> None:
    table = make_table()
    other = WatchedTable(bench=table.bench, folder=tmp_path)
    run = threading.Thread(target=lambda: other.want("t1"))

    def let_another_begin() -> None:
        run.start()
        wait_until_somebody_waits(table.bench)

    table.in_the_middle = let_another_begin
    table.take_in()
    run.join(PATIENCE_S)
    assert not run.is_alive()
    assert (table.rows_read(), other.rows_read()) == (TOWNS, 0)
    assert table.is_remembered()


def test_a_run_that_read_the_table_while_it_was_taken_in_leaves_it_known(
    make_table: MakeTable, tmp_path: Path
) -> None:
    table = make_table()
    other = WatchedTable(bench=table.bench, folder=tmp_path)

    def take_it_in() -> None:
        table.take_in()

    other.in_the_middle = take_it_in
    other.want("t1")
    assert other.rows_read() == TOWNS
    assert table.is_remembered()


def test_of_two_intakes_at_once_the_later_one_is_remembered(
    make_table: MakeTable, tmp_path: Path
) -> None:
    table = make_table()
    folder = tmp_path / "other"
    folder.mkdir()
    other = WatchedTable(bench=table.bench, folder=folder)
    other.write([row | {"river": "Inn"} for row in table.bench.rows])
    later = threading.Thread(target=other.take_in)

    def let_the_other_begin() -> None:
        later.start()
        wait_until_somebody_waits(table.bench)

    table.in_the_middle = let_the_other_begin
    table.take_in()
    later.join(PATIENCE_S)
    assert not later.is_alive()
    other.rows_read()
    assert (other.want("t1").unchanged, other.rows_read()) == (1, 0)
    assert {columns_of(table.bench, row["id"])["river"] for row in table.bench.rows} == {"Inn"}
    table.rows_read()
    assert (table.want("t1").wanted, table.rows_read()) == (1, TOWNS)


# --- in parts -----------------------------------------------------------------------------------


def outcome(table: WatchedTable) -> list[Any]:
    """What the ledger holds of the table, but for times and names of workers."""
    kept = sorted(
        (row["topic_key"], row["status"], row["row_number"], row["message"], row["current_job_id"])
        for row in rows_where(table.bench.ledger, topics, site=table.bench.name)
    )
    return [*kept, table.bench.states()]


@pytest.mark.parametrize("part", [1, 2, 3])
def test_a_table_taken_in_by_parts_comes_to_the_same_as_in_one(
    part: int, make_table: MakeTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(operation, "PART", part)
    table = make_table()
    rows = table.bench.rows
    rows[1]["canton"] = ""
    rows[3]["name"] = rows[0]["name"]
    rows[4]["id"] = "t0"
    table.write()
    taken = table.take_in()
    assert (taken.wanted, taken.unchanged, taken.rejected, taken.changed) == (2, 0, 3, 4)
    assert sorted(taken.topic_keys) == ["t0", "t1", "t2", "t3"]
    assert sorted(taken.refused) == ["t1", "t3"]
    assert "'t0' and 't3' both claim" in (table.bench.report("t3").failure_message or "")
    parts = outcome(table)
    monkeypatch.setattr(operation, "PART", 100)
    again = table.take_in()
    assert (again.wanted, again.unchanged, again.rejected, again.changed) == (0, 2, 3, 0)
    assert outcome(table) == parts


def test_a_damaged_end_of_a_table_leaves_the_ledger_as_it_was(
    table: WatchedTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(operation, "PART", 1)
    before = outcome(table)
    table.edit("t0", river="Inn")
    with table.file.open("a") as file:
        file.write('t9,"Thun,Bern\n')
    with pytest.raises(TopicTableError, match="check its quotes"):
        table.take_in()
    assert outcome(table) == before
    os.truncate(table.file, table.file.stat().st_size - len('t9,"Thun,Bern\n'))
    assert table.take_in().wanted == 1


def test_a_table_cut_short_by_parts_takes_no_page_off_the_site(
    make_table: MakeTable, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(operation, "PART", 2)
    few = settings_of("any").topics.most_gone_share
    assert few < 0.5
    table = make_table(topics={"when_gone": "unpublish"})
    rows = [dict(row, id=f"t{n}", name=f"Town {n}") for n, row in enumerate(table.bench.rows * 5)]
    table.write(rows)
    table.take_in()
    # As many new rows as there were would make the loss look small if they were counted.
    new = [row | {"id": f"n{n}", "name": f"New {n}"} for n, row in enumerate(rows * 4)]
    table.write([*rows[:10], *new])
    with pytest.raises(TopicTableError, match="15 of 25 topics are no longer in the table"):
        table.take_in()
    assert set(table.bench.states()) == {row["id"] for row in rows}
