"""One death at every checkpoint: the next worker goes on there, and the world sees one of each."""

import json
import re
import signal
from dataclasses import replace
from pathlib import Path

import pytest

import content_pipeline.operations
from content_pipeline.sandbox.client import SandboxClient
from content_pipeline.sandbox.cms.client import CMSClient
from content_pipeline.sandbox.faults import FaultPlan
from content_pipeline_tests.conftest import INSTANT_PROVIDER
from content_pipeline_tests.crash.conftest import LONGEST_S, Start
from content_pipeline_tests.crash.other_side import (
    assert_all_is_well,
    assert_announced,
    assert_paid_once,
)
from content_pipeline_tests.crash.worker import Order
from content_pipeline_tests.operations.small_site import page_text, path_of, rows_of

OF_A_PAGE = (
    "call_intended",
    "call_answered",
    "answer_saved",
    "draft_stored",
    "draft_validated",
    "publish_intended",
    "page_written",
    "page_proved",
)
OF_A_SITE = ("announcement_taken", "announced")
LOOKED_UP = ("answer_recovered",)
OF_A_KEPT_ANSWER = ("call_accepted",)
OF_A_CHAIN = ("step_stored",)
OF_DRAFTS_ON_THE_CMS = ("draft_created",)
"""Not of a folder, where every file is public."""
OF_A_WITHDRAWAL = ("withdrawal_intended", "page_withdrawn", "withdrawal_proved")


def test_every_checkpoint_has_its_death() -> None:
    folder = Path(content_pipeline.operations.__file__).parent
    named = {
        name
        for file in folder.glob("*.py")
        for call in re.findall(r"on_checkpoint\(([^()]*)\)", file.read_text())
        for name in re.findall(r'"(\w+)"', call)
    }
    of_the_call = {*LOOKED_UP, *OF_A_KEPT_ANSWER, *OF_A_CHAIN}
    of_the_cms = {*OF_DRAFTS_ON_THE_CMS, *OF_A_WITHDRAWAL}
    assert named == {*OF_A_PAGE, *OF_A_SITE, *of_the_call, *of_the_cms}


def die_and_go_on(start: Start, order: Order, checkpoint: str, after: int) -> None:
    """Let one worker die at ``checkpoint`` and another finish."""
    dying = start(order, dies_at=checkpoint, dies_after=after)
    dying.join(LONGEST_S)
    assert dying.exitcode == -signal.SIGKILL
    finishing = start(order)
    finishing.join(LONGEST_S)
    assert finishing.exitcode == 0


@pytest.mark.parametrize("checkpoint", OF_A_PAGE)
def test_a_worker_that_dies_with_a_page_at_a_checkpoint(
    checkpoint: str, start: Start, order: Order, sandbox: SandboxClient
) -> None:
    die_and_go_on(start, order, checkpoint, after=2)
    assert_all_is_well(sandbox, order.folder, order.towns)


@pytest.mark.parametrize("checkpoint", OF_A_SITE)
def test_a_worker_that_dies_while_it_tells_the_sites_hooks(
    checkpoint: str, start: Start, order: Order, sandbox: SandboxClient
) -> None:
    die_and_go_on(start, order, checkpoint, after=1)
    assert_all_is_well(sandbox, order.folder, order.towns)


@pytest.mark.parametrize("checkpoint", OF_A_WITHDRAWAL)
def test_a_worker_that_dies_while_it_takes_a_page_off_the_site(
    checkpoint: str, start: Start, order: Order, sandbox: SandboxClient
) -> None:
    first = start(order)
    first.join(LONGEST_S)
    assert first.exitcode == 0
    die_and_go_on(start, replace(order, gone=2), checkpoint, after=1)
    gone = [path_of(row) for row in rows_of(order.towns)[1:]]
    assert [page_text(order.folder, row) for row in rows_of(order.towns)[1:]] == [None, None]
    assert_paid_once(sandbox, order.towns)
    assert_announced(order.folder, 1)
    log = (order.folder / ".content-pipeline" / "writes.log").read_text().splitlines()
    removed = [line.split("\t")[1] for line in log if line.endswith("\tremoved")]
    assert len(removed) == len(set(removed)), "no page is taken off twice"
    assert set(removed) <= set(gone)


@pytest.mark.parametrize("checkpoint", [*OF_DRAFTS_ON_THE_CMS, "page_written", "publish_intended"])
def test_a_worker_that_dies_with_a_page_on_a_cms_with_drafts(
    checkpoint: str,
    start: Start,
    order: Order,
    sandbox: SandboxClient,
    sandbox_cms: CMSClient,
) -> None:
    die_and_go_on(start, replace(order, wordpress_url=sandbox_cms.base_url), checkpoint, after=2)
    assert_paid_once(sandbox, order.towns)
    live = sorted(change["path"] for change in sandbox_cms.live())
    assert live == sorted(path_of(row) for row in rows_of(order.towns))
    held = {change["page_id"] for change in sandbox_cms.history()}
    assert len(held) == order.towns, "the draft that the dead worker left became the page"


@pytest.mark.parametrize("after", [1, 2, 3])
def test_a_worker_that_dies_between_two_calls_of_a_hook_repeats_one_alone(
    after: int, start: Start, order: Order, sandbox_cms: CMSClient
) -> None:
    """Three pages, a call for each: the receiver hears of all, and twice of one, as the same."""
    url = f"{sandbox_cms.base_url}/hooks/receive/partner"
    die_and_go_on(start, replace(order, webhook_url=url), "announced", after=after)
    heard = [
        (each["headers"]["webhook-id"], json.loads(each["body"])["data"])
        for each in sandbox_cms.deliveries()
    ]
    assert len(heard) == order.towns + 1
    assert heard[after] == heard[after - 1]
    paths = {page["path"] for _, data in heard for page in data["changed"]}
    assert paths == {path_of(row) for row in rows_of(order.towns)}
    assert len({message_id for message_id, _ in heard}) == order.towns


@pytest.mark.parametrize("checkpoint", LOOKED_UP)
def test_a_worker_that_dies_with_a_recovered_answer_in_its_hands(
    checkpoint: str, start: Start, order: Order, sandbox: SandboxClient
) -> None:
    rule = {"fault": {"kind": "drop_after"}, "match": {"nth": 2}}
    sandbox.set_faults(FaultPlan.model_validate({"rules": [rule]}))
    die_and_go_on(start, order, checkpoint, after=1)
    assert_all_is_well(sandbox, order.folder, order.towns)


@pytest.mark.parametrize("checkpoint", [*OF_A_KEPT_ANSWER, "answer_saved", *LOOKED_UP])
def test_a_worker_that_dies_while_its_answer_is_made_in_the_background(
    checkpoint: str, start: Start, order: Order, sandbox: SandboxClient
) -> None:
    """The answer is complete later than the death, so it must be asked for and not only read."""
    sandbox.set_settings(INSTANT_PROVIDER.model_copy(update={"latency_median_s": 0.3}))
    die_and_go_on(start, replace(order, background=True), checkpoint, after=2)
    assert_all_is_well(sandbox, order.folder, order.towns)
    assert sandbox.truth()["requests_by_operation"].get("list", 0) == 0


@pytest.mark.parametrize(
    ("checkpoint", "after"),
    [("step_stored", 2), ("call_intended", 4), ("answer_saved", 4), ("draft_stored", 2)],
)
def test_a_worker_that_dies_between_the_two_calls_of_a_page(
    checkpoint: str, after: int, start: Start, order: Order, sandbox: SandboxClient
) -> None:
    """With three pages, the fourth call is the second one of a page."""
    die_and_go_on(start, replace(order, chain=True), checkpoint, after=after)
    assert_all_is_well(sandbox, order.folder, order.towns, steps=2)


@pytest.mark.parametrize("checkpoint", ["answer_saved", "step_stored", "draft_stored"])
def test_a_worker_that_dies_with_a_paid_vector_does_not_pay_for_another(
    checkpoint: str, start: Start, order: Order, sandbox: SandboxClient
) -> None:
    """One page by three calls, the last for a vector: nobody can be asked for one that was out."""
    order = replace(order, embeds=True, towns=1)
    after = {"answer_saved": 3, "step_stored": 2, "draft_stored": 1}[checkpoint]
    die_and_go_on(start, order, checkpoint, after=after)
    assert_all_is_well(sandbox, order.folder, order.towns, steps=2)
    counts = sandbox.truth()["requests_by_operation"]
    assert (counts["create"], counts["embed"]) == (2, 1)


def test_a_worker_that_dies_at_the_same_place_again_and_again(
    start: Start, order: Order, sandbox: SandboxClient
) -> None:
    """The last state is durable each time, so three deaths cost no more than one."""
    towns = 30  # a worker holds at most 8 pages at once, so each of the three finds one to die at
    for _ in range(3):
        dying = start(order, towns=towns, dies_at="draft_stored")
        dying.join(LONGEST_S)
        assert dying.exitcode == -signal.SIGKILL
    finishing = start(order, towns=towns)
    finishing.join(LONGEST_S)
    assert finishing.exitcode == 0
    assert_all_is_well(sandbox, order.folder, towns, kills=3)
