"""News: a hook is told of each change once, in batches, whatever happens in between."""

from collections.abc import Callable
from typing import Any

import pytest
from sqlalchemy import update

from content_pipeline.core.failures import Failure, FailureClass
from content_pipeline.core.ports import Announcement
from content_pipeline.ledger import announcements
from content_pipeline.ledger.announcements import HookStanding
from content_pipeline.ledger.schema import EffectState, effects
from content_pipeline_tests.conftest import MakeBench
from content_pipeline_tests.ledger.wanting import rows_where
from content_pipeline_tests.operations.bench import Bench
from content_pipeline_tests.operations.fakes import (
    ScriptedCMS,
    ScriptedModel,
    ScriptedNewsHook,
    failed,
)
from content_pipeline_tests.operations.small_site import path_of

FIVE = ["/aarau-0/", "/baden-1/", "/chur-2/", "/davos-3/", "/elgg-4/"]


class Stopped(BaseException):
    """The worker is gone."""


def live(
    make_bench: MakeBench, towns: int = 5, hook: ScriptedNewsHook | None = None, **more: Any
) -> tuple[Bench, ScriptedNewsHook]:
    """A bench whose pages are live and not announced yet."""
    hook = hook or ScriptedNewsHook()
    parts: dict[str, Any] = {"model": ScriptedModel(), "cms": ScriptedCMS(), "hooks": (hook,)}
    bench = make_bench(towns=towns, **{**parts, **more})
    bench.submit_and_run()
    assert set(bench.states().values()) == {"published"}
    return bench, hook


def standing(bench: Bench, kind: str = "indexnow") -> HookStanding:
    with bench.ledger.begin() as connection:
        found = announcements.standings(connection, bench.name)
    (one,) = [each for each in found if each.kind == kind]
    return one


def outcomes(bench: Bench) -> list[tuple[str, str | None, int | None]]:
    rows = rows_where(bench.ledger, effects, site=bench.name, page_id=None)
    ordered = sorted(rows, key=lambda row: row["created_at"])
    return [(row["state"], row["outcome"], row["pages_told"]) for row in ordered]


def dies_at_call(bench: Bench, number: int) -> None:
    """Let the worker be gone right after so many calls were answered."""
    calls = [0]

    def stop(checkpoint: str) -> None:
        calls[0] += checkpoint == "announced"
        if checkpoint == "announced" and calls[0] == number:
            raise Stopped

    bench.on_checkpoint = stop


def raises(failure_class: FailureClass, **more: Any) -> Callable[[], None]:
    def script() -> None:
        error = failed(failure_class)
        error.failure = Failure(failure_class=failure_class, message="no", **more)
        raise error

    return script


def change(bench: Bench, number: int, river: str = "Rhine") -> None:
    """Let one town's page hold another text."""
    bench.rows[number]["river"] = river
    bench.submit_and_run()


def test_all_new_pages_are_told_at_once_and_none_again(make_bench: MakeBench) -> None:
    bench, hook = live(make_bench)
    assert bench.announce() == {"indexnow": Announcement(location="call 1", changed=True)}
    assert hook.paths() == FIVE
    bench.want_announcements("indexnow")
    assert bench.announce() == {}, "nothing is news"
    assert len(hook.told) == 1
    assert outcomes(bench) == [("done", "told", 5), ("done", "nothing_new", None)]


def test_news_says_what_a_visitor_finds_where(make_bench: MakeBench) -> None:
    bench, hook = live(make_bench, 1)
    bench.announce()
    (news,) = hook.told
    assert (news.site, news.site_title, news.base_url) == (
        bench.name,
        "Towns",
        "https://towns.example",
    )
    (page,) = news.changed
    assert (page.url, page.title) == ("https://towns.example/aarau-0/", "A town")
    assert news.withdrawn == ()


def test_only_the_page_that_changed_is_told_of(make_bench: MakeBench) -> None:
    bench, hook = live(make_bench)
    bench.announce()
    change(bench, 2)
    bench.announce()
    assert hook.paths() == [*FIVE, "/chur-2/"]
    assert hook.told[1].changed[0].modified_at > hook.told[0].changed[2].modified_at


def test_a_page_that_changed_and_changed_back_before_it_was_told_is_no_news(
    make_bench: MakeBench,
) -> None:
    bench, hook = live(make_bench, 1)
    bench.announce()
    before = bench.rows[0]["river"]
    change(bench, 0)
    change(bench, 0, before)
    bench.announce()
    assert hook.paths() == ["/aarau-0/"]
    assert outcomes(bench)[-1][1] == "nothing_new"


def test_a_page_taken_off_the_site_is_told_of_once_and_its_return_too(
    make_bench: MakeBench,
) -> None:
    topics = {"when_gone": "unpublish", "most_gone_share": 1}
    bench, hook = live(make_bench, 3, topics=topics)
    bench.announce()
    gone = bench.rows.pop(1)
    bench.submit_and_run()
    bench.announce()
    assert (hook.gone(), len(hook.paths())) == (["/baden-1/"], 3)
    bench.want_announcements("indexnow")
    bench.announce()
    assert hook.gone() == ["/baden-1/"]
    bench.rows.insert(1, gone)
    bench.submit_and_run()
    bench.announce()
    assert hook.paths()[3:] == ["/baden-1/"]


def test_a_page_that_no_visitor_saw_leaves_without_a_word(make_bench: MakeBench) -> None:
    topics = {"when_gone": "unpublish", "most_gone_share": 1}
    bench, hook = live(make_bench, 2, topics=topics)
    bench.rows.pop()
    bench.submit_and_run()
    bench.announce()
    assert (hook.paths(), hook.gone()) == (["/aarau-0/"], [])


# --- a hook that is added later -----------------------------------------------------------------


@pytest.mark.parametrize(
    ("tells_existing", "first"), [(False, ["/aarau-0/"]), (True, ["/aarau-0/", "/baden-1/"])]
)
def test_pages_from_before_a_hook_are_news_only_if_it_wants_them(
    make_bench: MakeBench, *, tells_existing: bool, first: list[str]
) -> None:
    bench, _ = live(make_bench, 2)
    added = ScriptedNewsHook(kind="webhook", tells_existing=tells_existing)
    bench.hooks = (added,)
    change(bench, 0)
    bench.announce()
    assert added.paths() == first


def test_a_hook_that_is_met_when_it_is_told_is_told_of_nothing_from_before(
    make_bench: MakeBench,
) -> None:
    bench, _ = live(make_bench, 2)
    added = ScriptedNewsHook(kind="webhook")
    bench.hooks = (added,)
    bench.want_announcements("webhook")
    assert bench.announce() == {}
    assert added.told == []


def test_a_hook_that_comes_back_is_told_what_changed_meanwhile(make_bench: MakeBench) -> None:
    bench, hook = live(make_bench, 2)
    bench.announce()
    bench.hooks = ()
    change(bench, 1)
    bench.hooks = (hook,)
    bench.want_announcements("indexnow")
    bench.announce()
    assert hook.paths()[2:] == ["/baden-1/"]


def test_each_hook_is_told_for_itself(make_bench: MakeBench) -> None:
    one, other = ScriptedNewsHook(), ScriptedNewsHook(kind="webhook")
    bench, _ = live(make_bench, 2, hooks=(one, other))
    other.on_tell.append(raises(FailureClass.REQUEST))
    told = bench.announce()
    assert isinstance(told["webhook"], Failure)
    assert (one.paths(), other.paths()) == (FIVE[:2], [])
    change(bench, 0)
    bench.announce()
    assert one.paths()[2:] == ["/aarau-0/"]
    assert other.paths() == FIVE[:2], "what it was not told is still news to it"


# --- batches ------------------------------------------------------------------------------------


def test_a_batch_holds_no_more_than_its_hook_takes(make_bench: MakeBench) -> None:
    bench, hook = live(make_bench, hook=ScriptedNewsHook(batch=2))
    bench.announce()
    assert [len(news.changed) for news in hook.told] == [2, 2, 1]
    assert hook.paths() == FIVE
    assert outcomes(bench) == [("done", "told", 5)]
    assert len({news.delivery_id for news in hook.told}) == 3


def test_what_was_told_before_a_failure_is_not_told_again(make_bench: MakeBench) -> None:
    bench, hook = live(make_bench, hook=ScriptedNewsHook(batch=2))
    wait = {"throttled": {"attempts": 3, "first_wait_s": 0}}
    bench.change(retries=wait)
    hook.on_tell.extend([lambda: None, raises(FailureClass.THROTTLED, retry_after_s=60.0)])
    assert isinstance(bench.announce()["indexnow"], Failure)
    assert hook.paths() == FIVE[:2]
    assert (standing(bench).state, standing(bench).failure_class) == ("pending", "throttled")
    assert 50 < (standing(bench).wait_s or 0) <= 60
    assert bench.announce() == {}, "the announced wait is kept"
    bench.make_due()
    bench.announce()
    assert hook.paths() == FIVE
    assert outcomes(bench) == [("done", "told", 5)]


@pytest.mark.parametrize("dies_after", [1, 2, 3])
def test_a_worker_that_dies_between_batches_repeats_the_one_under_way_alone(
    make_bench: MakeBench, dies_after: int
) -> None:
    hook = ScriptedNewsHook(batch=2)
    bench, _ = live(make_bench, hook=hook, lane={"lease_s": 0.5})
    dies_at_call(bench, dies_after)
    with pytest.raises(Stopped):
        bench.announce()
    bench.on_checkpoint = None
    before = len(hook.told)
    assert before == dies_after
    bench.announce()
    assert hook.told[before] == hook.told[before - 1], "to the letter, with the same id"
    del hook.told[before]
    assert hook.paths() == FIVE


def test_a_repeated_call_with_other_contents_has_another_id(make_bench: MakeBench) -> None:
    """A receiver that drops what it knows must not drop the newer text of a page."""
    bench, hook = live(make_bench, 1, lane={"lease_s": 0.5})
    dies_at_call(bench, 1)
    with pytest.raises(Stopped):
        bench.announce()
    bench.on_checkpoint = None
    change(bench, 0)
    bench.announce()
    ids = [news.delivery_id for news in hook.told]
    assert len(ids) == len(set(ids)) == 2


def test_a_dispatcher_that_was_taken_over_tells_no_more(make_bench: MakeBench) -> None:
    hook = ScriptedNewsHook(batch=2)
    bench, _ = live(make_bench, hook=hook)

    def taken_over() -> None:
        with bench.ledger.begin() as connection:
            connection.execute(
                update(effects)
                .where(effects.c.site == bench.name, effects.c.state == EffectState.IN_PROGRESS)
                .values(attempts=effects.c.attempts + 1, state=EffectState.PENDING)
            )

    hook.on_tell.append(taken_over)
    bench.announce()
    assert hook.paths() == FIVE
    assert [len(news.changed) for news in hook.told] == [2, 2, 1]


# --- when ---------------------------------------------------------------------------------------


def test_a_hook_gathers_from_the_first_change_on(make_bench: MakeBench) -> None:
    bench, hook = live(make_bench, 2, hook=ScriptedNewsHook(debounce_s=600))
    assert bench.announce() == {}
    first = standing(bench)
    assert first.gathers
    change(bench, 0)
    assert standing(bench).next_attempt_at == first.next_attempt_at, "touched, not moved"
    bench.make_due()
    bench.announce()
    assert [len(news.changed) for news in hook.told] == [2]


def test_a_run_waits_for_a_hook_that_is_told_soon_and_no_longer(make_bench: MakeBench) -> None:
    soon = ScriptedNewsHook(kind="webhook", debounce_s=1)
    late = ScriptedNewsHook(kind="deploy_hook", debounce_s=600)
    bench, _ = live(make_bench, 1, hooks=(soon, late))
    assert list(bench.announce(patience_s=30)) == ["webhook"]
    assert (len(soon.told), len(late.told)) == (1, 0)
    assert standing(bench, "deploy_hook").gathers


def test_a_change_while_a_hook_is_being_told_is_told_in_the_next_window(
    make_bench: MakeBench,
) -> None:
    hook = ScriptedNewsHook(debounce_s=600)
    bench, _ = live(make_bench, 1, hook=hook)
    hook.on_tell.append(lambda: change(bench, 0))
    bench.make_due()
    bench.announce()
    assert standing(bench).gathers, "the last change is never lost"
    bench.make_due()
    bench.announce()
    assert hook.paths() == ["/aarau-0/"] * 2
    assert hook.told[0].changed[0].modified_at < hook.told[1].changed[0].modified_at


def test_only_the_hooks_that_are_asked_for_are_told(make_bench: MakeBench) -> None:
    one, other = ScriptedNewsHook(), ScriptedNewsHook(kind="webhook")
    bench, _ = live(make_bench, 1, hooks=(one, other))
    assert list(bench.announce(kinds=("webhook",))) == ["webhook"]
    assert (len(one.told), len(other.told)) == (0, 1)


# --- failures -----------------------------------------------------------------------------------


def test_more_to_tell_does_not_shorten_an_announced_wait(make_bench: MakeBench) -> None:
    """A page that is proved during the call asks for the hook anew; both are one afterwards."""
    bench, hook = live(make_bench, 1)

    def throttled_meanwhile() -> None:
        change(bench, 0)
        raises(FailureClass.THROTTLED, retry_after_s=300.0)()

    hook.on_tell.append(throttled_meanwhile)
    assert isinstance(bench.announce()["indexnow"], Failure)
    assert (standing(bench).wait_s or 0) > 250
    assert bench.announce() == {}
    assert [state for state, *_ in outcomes(bench)] == ["done", "pending"]


@pytest.mark.parametrize(
    ("failure_class", "state"),
    [
        (FailureClass.NOT_SENT, "pending"),
        (FailureClass.TRANSIENT, "pending"),
        (FailureClass.THROTTLED, "pending"),
        (FailureClass.STORAGE, "pending"),
        (FailureClass.AUTH, "failed"),
        (FailureClass.QUOTA, "failed"),
        (FailureClass.REQUEST, "failed"),
        (FailureClass.CONFLICT, "failed"),
        (FailureClass.TERMINAL, "failed"),
    ],
)
def test_the_class_decides_whether_it_is_told_again(
    make_bench: MakeBench, failure_class: FailureClass, state: str
) -> None:
    bench, hook = live(make_bench, 1)
    hook.on_tell.append(raises(failure_class, retry_after_s=60.0))
    assert isinstance(bench.announce()["indexnow"], Failure)
    assert standing(bench).state == state
    assert standing(bench).failure_class == failure_class
    assert (standing(bench).next_attempt_at is None) is (state == "failed")


def test_what_was_given_up_is_told_with_the_next_change(make_bench: MakeBench) -> None:
    bench, hook = live(make_bench, 2)
    hook.on_tell.append(raises(FailureClass.AUTH))
    bench.announce()
    change(bench, 1)
    bench.announce()
    assert hook.paths() == [path_of(row) for row in bench.rows]
    assert (standing(bench).state, standing(bench).failure_class) == ("done", None)
    assert standing(bench).pages_told == 2


def test_nothing_is_announced_before_its_page_is_proved(make_bench: MakeBench) -> None:
    bench, hook = live(make_bench, 1)
    bench.announce()
    bench.rows.append(bench.rows[0] | {"id": "t9", "name": "Zug 9"})
    bench.submit()
    bench.want_announcements("indexnow")
    bench.announce()
    assert hook.paths() == ["/aarau-0/"]
    bench.run()
    bench.announce()
    assert hook.paths() == ["/aarau-0/", "/zug-9/"]
