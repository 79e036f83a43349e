"""What every CMS adapter must do, whatever stands behind it.

Each law is a function of a bench: the adapter under test, and the ways in which the world changes
a site behind its back. A law about a capability the adapter does not declare is skipped. To run
them all::

    @pytest.mark.parametrize("law", LAWS, ids=law_name)
    def test_folder_keeps_the_law(law, bench):
        law(bench)
"""

import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import Protocol

import pytest

from content_pipeline.core.cms import CMS, Document, PageLookUp, RemotePage, RemoteStatus
from content_pipeline.core.errors import CallFailed
from content_pipeline.core.failures import FailureClass
from content_pipeline.core.ports import Verdict
from content_pipeline_tests.adapters.cms.documents import make_document

RACERS = 16


class Bench(Protocol):
    """An adapter with an empty site behind it, and the hands of a person on that site."""

    @property
    def cms(self) -> CMS: ...

    @property
    def base_url(self) -> str: ...

    def edit(self, path: str) -> None:
        """A person changes the published page's text and leaves our mark alone."""
        ...

    def occupy(self, path: str) -> None:
        """A person publishes a page of their own."""
        ...

    def delete(self, path: str) -> None:
        """A person deletes the page for good."""
        ...

    def visible(self, path: str) -> str | None:
        """What a visitor gets for the path now; None when there is nothing."""
        ...


Law = Callable[[Bench], None]


def law_name(law: Law) -> str:
    return law.__name__


def _document(bench: Bench, path: str = "/austria/", *, revision: int = 1) -> Document:
    return make_document(path, revision=revision, base_url=bench.base_url)


def _look_up(bench: Bench, document: Document, remote_id: str | None = None) -> PageLookUp:
    return bench.cms.look_up(document.marker.page_id, document.path, remote_id)


def _seen(bench: Bench, document: Document) -> RemotePage:
    found = _look_up(bench, document)
    assert found.verdict is Verdict.PRESENT, found
    assert found.page is not None
    assert found.failure is None
    return found.page


def _publish_new(bench: Bench, document: Document) -> RemotePage:
    draft = bench.cms.create_draft(document) if bench.cms.capabilities.drafts else None
    return bench.cms.publish(document, replacing=draft)


def _needs(*, capability: bool) -> None:
    if not capability:
        pytest.skip("the adapter does not declare this capability")


def _refusal(call: Callable[[], object]) -> FailureClass:
    with pytest.raises(CallFailed) as refused:
        call()
    assert refused.value.failure.message
    return refused.value.failure.failure_class


def a_page_never_published_is_absent(bench: Bench) -> None:
    found = _look_up(bench, _document(bench))
    assert found.verdict is Verdict.ABSENT
    assert found.page is None
    assert bench.visible("/austria/") is None


def a_published_page_is_present_with_our_marker(bench: Bench) -> None:
    document = _document(bench)
    _publish_new(bench, document)
    page = _seen(bench, document)
    assert page.marker == document.marker
    assert page.status is RemoteStatus.PUBLISHED
    assert (page.path, page.url) == (document.path, document.url)


def a_visitor_reads_what_was_published(bench: Bench) -> None:
    document = _document(bench)
    _publish_new(bench, document)
    visible = bench.visible(document.path)
    assert visible is not None
    assert document.body_html in visible


def publishing_returns_what_a_look_up_finds(bench: Bench) -> None:
    document = _document(bench)
    published = _publish_new(bench, document)
    assert _seen(bench, document) == published
    by_id = _look_up(bench, document, published.remote_id)
    assert by_id.page == published


def looking_twice_changes_nothing(bench: Bench) -> None:
    document = _document(bench)
    _publish_new(bench, document)
    assert _seen(bench, document) == _seen(bench, document)


def a_newer_revision_replaces_the_one_that_was_seen(bench: Bench) -> None:
    first = _publish_new(bench, _document(bench))
    newer = _document(bench, revision=2)
    second = bench.cms.publish(newer, replacing=first)
    assert second.remote_id == first.remote_id
    assert second.fingerprint != first.fingerprint
    assert _seen(bench, newer).marker == newer.marker


def publishing_the_same_again_leaves_one_equal_page(bench: Bench) -> None:
    document = _document(bench)
    first = _publish_new(bench, document)
    assert bench.cms.publish(document, replacing=first) == first
    assert _seen(bench, document) == first


def pages_do_not_disturb_each_other(bench: Bench) -> None:
    austria, nested = _document(bench), _document(bench, "/austria/vienna/")
    published = _publish_new(bench, austria)
    _publish_new(bench, nested)
    assert _seen(bench, austria) == published
    assert _seen(bench, nested).marker == nested.marker


def a_persons_edit_shows_in_the_fingerprint(bench: Bench) -> None:
    document = _document(bench)
    before = _publish_new(bench, document)
    bench.edit(document.path)
    after = _seen(bench, document)
    assert after.marker == before.marker
    assert after.fingerprint != before.fingerprint


def a_persons_edit_is_not_overwritten(bench: Bench) -> None:
    _needs(capability=bench.cms.capabilities.compare_and_swap)
    document = _document(bench)
    before = _publish_new(bench, document)
    bench.edit(document.path)
    edited = bench.visible(document.path)
    newer = _document(bench, revision=2)
    refusal = _refusal(lambda: bench.cms.publish(newer, replacing=before))
    assert refusal is FailureClass.CONFLICT
    assert bench.visible(document.path) == edited


def a_strangers_page_carries_no_marker(bench: Bench) -> None:
    bench.occupy("/austria/")
    assert _seen(bench, _document(bench)).marker is None


def a_strangers_page_is_not_overwritten(bench: Bench) -> None:
    _needs(capability=bench.cms.capabilities.client_id)
    bench.occupy("/austria/")
    theirs = bench.visible("/austria/")
    assert theirs is not None
    refusal = _refusal(lambda: bench.cms.publish(_document(bench), replacing=None))
    assert refusal is FailureClass.CONFLICT
    assert bench.visible("/austria/") == theirs


def creating_twice_makes_one_page(bench: Bench) -> None:
    _needs(capability=bench.cms.capabilities.client_id)
    document = _document(bench)
    first = bench.cms.publish(document, replacing=None)
    refusal = _refusal(lambda: bench.cms.publish(document, replacing=None))
    assert refusal is FailureClass.CONFLICT
    assert _seen(bench, document) == first


def a_deleted_page_is_absent(bench: Bench) -> None:
    document = _document(bench)
    _publish_new(bench, document)
    bench.delete(document.path)
    assert _look_up(bench, document).verdict is Verdict.ABSENT


def a_deleted_page_is_not_brought_back_by_replacing_it(bench: Bench) -> None:
    _needs(capability=bench.cms.capabilities.compare_and_swap)
    before = _publish_new(bench, _document(bench))
    bench.delete("/austria/")
    newer = _document(bench, revision=2)
    refusal = _refusal(lambda: bench.cms.publish(newer, replacing=before))
    assert refusal is FailureClass.CONFLICT
    assert bench.visible("/austria/") is None


def a_draft_is_not_visible_until_published(bench: Bench) -> None:
    _needs(capability=bench.cms.capabilities.drafts)
    document = _document(bench)
    draft = bench.cms.create_draft(document)
    assert draft.status is RemoteStatus.HIDDEN
    assert bench.visible(document.path) is None
    published = bench.cms.publish(document, replacing=draft)
    assert published.remote_id == draft.remote_id
    assert bench.visible(document.path) is not None


def without_drafts_none_can_be_created(bench: Bench) -> None:
    _needs(capability=not bench.cms.capabilities.drafts)
    assert _refusal(lambda: bench.cms.create_draft(_document(bench))) is FailureClass.REQUEST
    assert bench.visible("/austria/") is None


def one_of_many_racing_creators_wins(bench: Bench) -> None:
    _needs(capability=bench.cms.capabilities.client_id)
    documents = [_document(bench, revision=number + 1) for number in range(RACERS)]
    won = _race(lambda number: bench.cms.publish(documents[number], replacing=None))
    assert len(won) == 1
    assert _seen(bench, documents[0]) == won[0]


def one_of_many_racing_replacers_wins(bench: Bench) -> None:
    _needs(capability=bench.cms.capabilities.compare_and_swap)
    seen = _publish_new(bench, _document(bench))
    documents = [_document(bench, revision=number + 2) for number in range(RACERS)]
    won = _race(lambda number: bench.cms.publish(documents[number], replacing=seen))
    assert len(won) == 1
    assert _seen(bench, documents[0]) == won[0]


def _race(publish: Callable[[int], RemotePage]) -> list[RemotePage]:
    """The pages of all racers that were not refused; each refusal must be a conflict."""
    start = threading.Barrier(RACERS)

    def run(number: int) -> RemotePage | FailureClass:
        start.wait()
        try:
            return publish(number)
        except CallFailed as error:
            return error.failure.failure_class

    with ThreadPoolExecutor(RACERS) as pool:
        outcomes = list(pool.map(run, range(RACERS)))
    won = [outcome for outcome in outcomes if isinstance(outcome, RemotePage)]
    refused = {outcome for outcome in outcomes if isinstance(outcome, FailureClass)}
    assert refused == {FailureClass.CONFLICT}
    return won


LAWS: tuple[Law, ...] = (
    a_page_never_published_is_absent,
    a_published_page_is_present_with_our_marker,
    a_visitor_reads_what_was_published,
    publishing_returns_what_a_look_up_finds,
    looking_twice_changes_nothing,
    a_newer_revision_replaces_the_one_that_was_seen,
    publishing_the_same_again_leaves_one_equal_page,
    pages_do_not_disturb_each_other,
    a_persons_edit_shows_in_the_fingerprint,
    a_persons_edit_is_not_overwritten,
    a_strangers_page_carries_no_marker,
    a_strangers_page_is_not_overwritten,
    creating_twice_makes_one_page,
    a_deleted_page_is_absent,
    a_deleted_page_is_not_brought_back_by_replacing_it,
    a_draft_is_not_visible_until_published,
    without_drafts_none_can_be_created,
    one_of_many_racing_creators_wins,
    one_of_many_racing_replacers_wins,
)
