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

from content_pipeline.core.cms import (
    CMS,
    Document,
    Glance,
    Inventory,
    PageLookUp,
    RemotePage,
    RemoteStatus,
)
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

    def trash(self, path: str) -> None:
        """A person puts the page into the trash; only asked of a CMS that has one."""
        ...

    def hide(self, path: str) -> None:
        """A person takes the page off the site and keeps it; only asked of a CMS with drafts."""
        ...

    def rename(self, path: str, to: str) -> None:
        """A person gives the page another address; only asked where our mark is looked up."""
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
    austria, other = _document(bench), _document(bench, "/austria-hungary/")
    published = _publish_new(bench, austria)
    _publish_new(bench, other)
    assert _seen(bench, austria) == published
    assert _seen(bench, other).marker == other.marker


def a_page_may_stand_below_another(bench: Bench) -> None:
    austria, nested = _document(bench), _document(bench, "/austria/vienna/")
    refused = _look_up(bench, nested).failure
    if refused is not None and refused.failure_class is FailureClass.INVALID_INPUT:
        pytest.skip("the CMS has no pages below others, and says so")
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


def a_draft_is_found_by_our_mark(bench: Bench) -> None:
    _needs(capability=bench.cms.capabilities.drafts)
    document = _document(bench)
    draft = bench.cms.create_draft(document)
    assert draft.intact
    found = _seen(bench, document)
    assert (found.remote_id, found.status) == (draft.remote_id, RemoteStatus.HIDDEN)
    assert found.marker == document.marker


def what_a_late_write_left_twice_shows_as_a_twin(bench: Bench) -> None:
    _needs(capability=bench.cms.capabilities.drafts and not bench.cms.capabilities.client_id)
    document = _document(bench)
    first = bench.cms.publish(document, replacing=bench.cms.create_draft(document))
    second = bench.cms.create_draft(document)
    for known in (None, first.remote_id):
        found = _look_up(bench, document, known)
        assert found.page is not None
        assert found.page.remote_id == first.remote_id
    twins = _look_up(bench, document).twins
    assert [twin.remote_id for twin in twins] == [second.remote_id]
    bench.cms.remove(twins[0])
    assert _look_up(bench, document, first.remote_id).page == first
    assert bench.visible(document.path) is not None


def a_trashed_page_says_so_and_where_it_stood(bench: Bench) -> None:
    _needs(capability=bench.cms.capabilities.trash)
    document = _document(bench)
    published = _publish_new(bench, document)
    bench.trash(document.path)
    for known in (published.remote_id, None):
        found = _look_up(bench, document, known).page
        assert found is not None
        assert (found.status, found.path) == (RemoteStatus.TRASHED, document.path)
        assert found.marker == document.marker


def a_trashed_page_comes_back_by_replacing_it(bench: Bench) -> None:
    _needs(capability=bench.cms.capabilities.trash)
    document = _document(bench)
    published = _publish_new(bench, document)
    bench.trash(document.path)
    trashed = _seen(bench, document)
    again = bench.cms.publish(document, replacing=trashed)
    assert (again.remote_id, again.path) == (published.remote_id, document.path)
    assert bench.visible(document.path) is not None


def a_hidden_page_says_so_and_is_not_edited(bench: Bench) -> None:
    _needs(capability=bench.cms.capabilities.drafts)
    document = _document(bench)
    published = _publish_new(bench, document)
    bench.hide(document.path)
    found = _look_up(bench, document, published.remote_id).page
    assert found is not None
    assert (found.status, found.path) == (RemoteStatus.HIDDEN, document.path)
    assert found.fingerprint == published.fingerprint
    assert bench.visible(document.path) is None


def a_renamed_page_is_found_where_it_is_now(bench: Bench) -> None:
    _needs(capability=bench.cms.capabilities.marker_look_up)
    document = _document(bench)
    published = _publish_new(bench, document)
    bench.rename(document.path, "/republic-of-austria/")
    for known in (published.remote_id, None):
        found = _look_up(bench, document, known).page
        assert found is not None
        assert found.path == "/republic-of-austria/"
        assert found.fingerprint == published.fingerprint


def a_renamed_page_gets_its_address_back_by_replacing_it(bench: Bench) -> None:
    _needs(capability=bench.cms.capabilities.marker_look_up)
    document = _document(bench)
    _publish_new(bench, document)
    bench.rename(document.path, "/republic-of-austria/")
    again = bench.cms.publish(document, replacing=_seen(bench, document))
    assert again.path == document.path
    assert bench.visible(document.path) is not None


def a_withdrawn_page_is_gone_for_visitors(bench: Bench) -> None:
    document = _document(bench)
    published = _publish_new(bench, document)
    bench.cms.withdraw(published)
    assert bench.visible(document.path) is None
    found = _look_up(bench, document, published.remote_id)
    if bench.cms.capabilities.drafts:
        assert found.page is not None
        assert found.page.status is RemoteStatus.HIDDEN
    else:
        assert found.verdict is Verdict.ABSENT


def a_removed_page_is_gone_and_removing_it_again_is_harmless(bench: Bench) -> None:
    document = _document(bench)
    published = _publish_new(bench, document)
    bench.cms.remove(published)
    bench.cms.remove(published)
    assert bench.visible(document.path) is None
    found = _look_up(bench, document, published.remote_id)
    assert found.page is None or found.page.status is RemoteStatus.TRASHED


def a_page_that_a_person_edited_is_not_taken_away(bench: Bench) -> None:
    _needs(capability=bench.cms.capabilities.compare_and_swap)
    document = _document(bench)
    published = _publish_new(bench, document)
    bench.edit(document.path)
    assert _refusal(lambda: bench.cms.withdraw(published)) is FailureClass.CONFLICT
    assert _refusal(lambda: bench.cms.remove(published)) is FailureClass.CONFLICT
    assert bench.visible(document.path) is not None


def the_text_of_a_page_can_be_read_back(bench: Bench) -> None:
    document = _document(bench)
    published = _publish_new(bench, document)
    content = bench.cms.content_of(published)
    assert published.intact
    assert (content.title, content.meta_description, content.body_html) == (
        document.title,
        document.meta_description,
        document.body_html,
    )
    bench.edit(document.path)
    edited = _seen(bench, document)
    assert not edited.intact
    assert bench.cms.content_of(edited) != content


def the_inventory_lists_every_page_once(bench: Bench) -> None:
    _needs(capability=bench.cms.capabilities.inventory)
    documents = [_document(bench, f"/land-{number}/") for number in range(7)]
    for document in documents:
        _publish_new(bench, document)
    bench.occupy("/a-strangers-page/")
    listed = _inventory(bench)
    assert len({glance.remote_id for glance in listed}) == len(listed)
    by_path = {glance.path: glance for glance in listed}
    assert {document.path for document in documents} | {"/a-strangers-page/"} <= by_path.keys()
    for document in documents:
        page = _seen(bench, document)
        glance = by_path[document.path]
        assert (glance.remote_id, glance.status, glance.version) == (
            page.remote_id,
            page.status,
            page.version,
        )


def an_edit_shows_in_the_inventory(bench: Bench) -> None:
    _needs(capability=bench.cms.capabilities.inventory)
    document = _document(bench)
    published = _publish_new(bench, document)
    bench.edit(document.path)
    (glance,) = [at for at in _inventory(bench) if at.remote_id == published.remote_id]
    assert glance.version != published.version


def _inventory(bench: Bench) -> list[Glance]:
    found: list[Glance] = []
    next_slice: str | None = None
    while True:
        part = bench.cms.inventory(next_slice)
        found += part.glances
        next_slice = part.next_slice
        if next_slice is None:
            return found


def what_is_not_listed_is_not_told_wrongly(bench: Bench) -> None:
    _needs(capability=not bench.cms.capabilities.inventory)
    _publish_new(bench, _document(bench))
    assert bench.cms.inventory(None) == Inventory(glances=(), next_slice=None)
    nothing = bench.cms.recent_changes(None)
    bench.edit("/austria/")
    assert bench.cms.recent_changes(nothing.point).pages == ()


def changes_are_told_from_a_point_on(bench: Bench) -> None:
    _needs(capability=bench.cms.capabilities.inventory)
    edited, untouched = _document(bench), _document(bench, "/belgium/")
    for document in (edited, untouched):
        _publish_new(bench, document)
    nothing = bench.cms.recent_changes(None)
    assert nothing.pages == ()
    bench.edit(edited.path)
    told = bench.cms.recent_changes(nothing.point)
    assert _seen(bench, edited) in told.pages
    assert told.point


def a_working_cms_passes_its_check_and_the_check_changes_nothing(bench: Bench) -> None:
    before = _inventory(bench)
    check = bench.cms.check()
    assert check.problems == ()
    assert check.identity
    assert _inventory(bench) == before


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
    a_page_may_stand_below_another,
    a_persons_edit_shows_in_the_fingerprint,
    a_persons_edit_is_not_overwritten,
    a_strangers_page_carries_no_marker,
    a_strangers_page_is_not_overwritten,
    creating_twice_makes_one_page,
    a_deleted_page_is_absent,
    a_deleted_page_is_not_brought_back_by_replacing_it,
    a_draft_is_not_visible_until_published,
    without_drafts_none_can_be_created,
    a_draft_is_found_by_our_mark,
    what_a_late_write_left_twice_shows_as_a_twin,
    a_trashed_page_says_so_and_where_it_stood,
    a_trashed_page_comes_back_by_replacing_it,
    a_hidden_page_says_so_and_is_not_edited,
    a_renamed_page_is_found_where_it_is_now,
    a_renamed_page_gets_its_address_back_by_replacing_it,
    a_withdrawn_page_is_gone_for_visitors,
    a_removed_page_is_gone_and_removing_it_again_is_harmless,
    a_page_that_a_person_edited_is_not_taken_away,
    the_text_of_a_page_can_be_read_back,
    the_inventory_lists_every_page_once,
    an_edit_shows_in_the_inventory,
    what_is_not_listed_is_not_told_wrongly,
    changes_are_told_from_a_point_on,
    a_working_cms_passes_its_check_and_the_check_changes_nothing,
    one_of_many_racing_creators_wins,
    one_of_many_racing_replacers_wins,
)
