"""The one place that allows a write to the CMS, as a table and as laws."""

import itertools
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from content_pipeline.core.cms import CMSCapabilities, Marker, PageLookUp, RemotePage, RemoteStatus
from content_pipeline.core.failures import Failure, FailureClass
from content_pipeline.core.ports import Verdict
from content_pipeline.core.publishing import (
    Baseline,
    PublishAction,
    PublishDecision,
    Reaction,
    ReactionPolicy,
    SiteChange,
    decide_publish,
    guarantee,
    holds,
    standing_of,
)

WANTED = Marker(page_id="ours", revision=5, content_hash="new")
PROVED = Baseline(revision=4, fingerprint="as we left it")

A = PublishAction


def page(
    revision: int | None = 4,
    *,
    page_id: str = "ours",
    content_hash: str = "old",
    fingerprint: str = "as we left it",
    status: RemoteStatus = RemoteStatus.PUBLISHED,
) -> RemotePage:
    """A page of the CMS; ``revision`` None: it carries no mark."""
    marker = None
    if revision is not None:
        marker = Marker(page_id=page_id, revision=revision, content_hash=content_hash)
    return RemotePage(
        remote_id="17",
        path="/berlin/",
        url="https://towns.example/berlin/",
        status=status,
        marker=marker,
        fingerprint=fingerprint,
    )


def present(found: RemotePage) -> PageLookUp:
    return PageLookUp(verdict=Verdict.PRESENT, page=found)


def decide(
    look_up: PageLookUp,
    *,
    wanted: Marker,
    baseline: Baseline | None,
    policy: ReactionPolicy = ReactionPolicy(),  # noqa: B008 - frozen
    may_overwrite: str | None = None,
) -> PublishDecision:
    """The decision for the page at /berlin/."""
    return decide_publish(
        look_up,
        wanted=wanted,
        path="/berlin/",
        baseline=baseline,
        policy=policy,
        may_overwrite=may_overwrite,
    )


ABSENT = PageLookUp(verdict=Verdict.ABSENT)
UNKNOWN = PageLookUp(
    verdict=Verdict.UNKNOWN,
    failure=Failure(failure_class=FailureClass.TRANSIENT, message="the CMS answered 502"),
)
FRESH = page(5, content_hash="new", fingerprint="what the write left")


@pytest.mark.parametrize(
    ("look_up", "baseline", "action"),
    [
        pytest.param(UNKNOWN, None, A.UNKNOWN, id="the CMS cannot say"),
        pytest.param(UNKNOWN, PROVED, A.UNKNOWN, id="the CMS cannot say, a page was proved"),
        pytest.param(
            PageLookUp(verdict=Verdict.PRESENT), None, A.UNKNOWN, id="present, but no page"
        ),
        pytest.param(
            PageLookUp(verdict=Verdict.ABSENT, page=page()),
            None,
            A.UNKNOWN,
            id="absent, but a page",
        ),
        pytest.param(ABSENT, None, A.CREATE, id="nothing there"),
        pytest.param(ABSENT, PROVED, A.CREATE, id="nothing there any more"),
        pytest.param(present(page(None)), None, A.CONFLICT, id="a page without our mark"),
        pytest.param(present(page(None)), PROVED, A.CONFLICT, id="our mark was taken off"),
        pytest.param(present(page(4, page_id="x")), None, A.CONFLICT, id="another page of ours"),
        pytest.param(present(page(9, page_id="x")), PROVED, A.CONFLICT, id="another's newer page"),
        pytest.param(present(page(4)), PROVED, A.REPLACE, id="what we published last"),
        pytest.param(present(page(4)), None, A.REPLACE, id="ours, never proved"),
        pytest.param(present(page(4, fingerprint="edited")), PROVED, A.CONFLICT, id="edited since"),
        pytest.param(
            present(page(4, status=RemoteStatus.HIDDEN, fingerprint="unpublished")),
            PROVED,
            A.CONFLICT,
            id="taken back to a draft since",
        ),
        pytest.param(present(page(3)), PROVED, A.CONFLICT, id="set back to an older revision"),
        pytest.param(
            present(page(4, status=RemoteStatus.TRASHED)), None, A.CONFLICT, id="in the bin"
        ),
        pytest.param(
            present(replace(FRESH, status=RemoteStatus.TRASHED)), PROVED, A.CONFLICT, id="binned"
        ),
        pytest.param(present(page(6)), PROVED, A.SUPERSEDED, id="newer than ours"),
        pytest.param(present(page(6)), None, A.SUPERSEDED, id="newer, never proved"),
        pytest.param(
            present(page(6, fingerprint="edited")), PROVED, A.SUPERSEDED, id="newer and edited"
        ),
        pytest.param(present(FRESH), None, A.CONFIRM, id="the lost write took effect"),
        pytest.param(present(FRESH), PROVED, A.CONFIRM, id="the lost write took effect, proved"),
        pytest.param(
            present(FRESH),
            Baseline(revision=5, fingerprint="what the write left"),
            A.CONFIRM,
            id="already proved",
        ),
        pytest.param(
            present(FRESH),
            Baseline(revision=5, fingerprint="before an edit"),
            A.CONFLICT,
            id="this very revision, edited since",
        ),
        pytest.param(
            present(replace(FRESH, status=RemoteStatus.HIDDEN)),
            PROVED,
            A.REPLACE,
            id="our draft, not yet public",
        ),
        pytest.param(
            present(page(5, content_hash="other")),
            PROVED,
            A.REPLACE,
            id="this revision with other content",
        ),
    ],
)
def test_what_a_look_allows(
    look_up: PageLookUp, baseline: Baseline | None, action: PublishAction
) -> None:
    decision = decide(look_up, wanted=WANTED, baseline=baseline)
    assert decision.action is action
    assert decision.reason


fingerprints = st.sampled_from(["a", "b", "c"])
revisions = st.integers(1, 4)
markers = st.builds(
    Marker,
    page_id=st.sampled_from(["ours", "other"]),
    revision=revisions,
    content_hash=st.sampled_from(["x", "y"]),
)
remote_pages = st.builds(
    RemotePage,
    remote_id=st.just("17"),
    path=st.just("/berlin/"),
    url=st.just("https://towns.example/berlin/"),
    status=st.sampled_from(RemoteStatus),
    marker=st.none() | markers,
    fingerprint=fingerprints,
)
look_ups = st.builds(
    PageLookUp, verdict=st.sampled_from(Verdict), page=st.none() | remote_pages, failure=st.none()
)
wishes = st.builds(
    Marker, page_id=st.just("ours"), revision=revisions, content_hash=st.sampled_from(["x", "y"])
)
baselines = st.none() | st.builds(Baseline, revision=revisions, fingerprint=fingerprints)


@given(look_up=look_ups, wanted=wishes, baseline=baselines)
def test_no_write_without_a_parsed_answer(
    look_up: PageLookUp, wanted: Marker, baseline: Baseline | None
) -> None:
    action = decide(look_up, wanted=wanted, baseline=baseline).action
    if look_up.verdict is Verdict.UNKNOWN:
        assert action is A.UNKNOWN
    if action is A.CREATE:
        assert look_up == ABSENT
    if action is A.REPLACE:
        assert look_up.verdict is Verdict.PRESENT
        assert look_up.page is not None


@given(found=remote_pages, wanted=wishes, baseline=baselines)
def test_never_an_older_draft_over_a_newer_one(
    found: RemotePage, wanted: Marker, baseline: Baseline | None
) -> None:
    decision = decide(present(found), wanted=wanted, baseline=baseline)
    if decision.action is A.REPLACE:
        assert found.marker is not None
        assert found.marker.revision <= wanted.revision


@given(found=remote_pages, wanted=wishes, baseline=baselines)
def test_never_over_the_work_of_a_person(
    found: RemotePage, wanted: Marker, baseline: Baseline | None
) -> None:
    """Replaced is only what we left there, proved or by a write whose proof is still missing."""
    decision = decide(present(found), wanted=wanted, baseline=baseline)
    if decision.action is not A.REPLACE:
        return
    assert found.marker is not None
    assert found.marker.page_id == wanted.page_id
    assert found.status is not RemoteStatus.TRASHED
    if baseline is not None and found.marker.revision <= baseline.revision:
        assert (found.marker.revision, found.fingerprint) == (
            baseline.revision,
            baseline.fingerprint,
        )


@given(found=remote_pages, wanted=wishes, baseline=baselines)
def test_only_a_public_page_with_exactly_our_mark_is_confirmed(
    found: RemotePage, wanted: Marker, baseline: Baseline | None
) -> None:
    decision = decide(present(found), wanted=wanted, baseline=baseline)
    if decision.action is A.CONFIRM:
        assert holds(found, wanted)
        assert found.marker == wanted


@given(wanted=wishes, after_write=fingerprints)
def test_publishing_again_what_was_proved_writes_nothing(wanted: Marker, after_write: str) -> None:
    proved = replace(page(), marker=wanted, fingerprint=after_write)
    baseline = Baseline(revision=wanted.revision, fingerprint=after_write)
    for known in (None, baseline):
        assert decide(present(proved), wanted=wanted, baseline=known).action is A.CONFIRM


def test_what_visitors_see_is_a_public_page_with_the_wanted_mark() -> None:
    for status, content_hash, revision in itertools.product(RemoteStatus, ("new", "old"), (4, 5)):
        found = page(revision, content_hash=content_hash, status=status)
        wanted = (status, content_hash, revision) == (RemoteStatus.PUBLISHED, "new", 5)
        assert holds(found, WANTED) is wanted


def test_reasons_name_the_place_and_the_revisions() -> None:
    def reason(found: RemotePage) -> str:
        return decide(present(found), wanted=WANTED, baseline=PROVED).reason

    assert "/berlin/" in reason(page(None))
    assert "revision 6, newer than 5" in reason(page(6))
    assert "edited on the site since we published revision 4" in reason(page(4, fingerprint="e"))
    assert "set back to revision 2" in reason(page(2))
    assert "put into the trash" in reason(page(4, status=RemoteStatus.TRASHED))


CHANGES = [
    pytest.param(None, SiteChange.MISSING, id="missing"),
    pytest.param(page(4, status=RemoteStatus.TRASHED), SiteChange.TRASHED, id="trashed"),
    pytest.param(page(4, status=RemoteStatus.HIDDEN), SiteChange.UNPUBLISHED, id="unpublished"),
    pytest.param(replace(page(4), path="/bear-town/"), SiteChange.RENAMED, id="renamed"),
    pytest.param(replace(page(4), path="/old/berlin/"), SiteChange.MOVED, id="moved"),
    pytest.param(page(3), SiteChange.REVERTED, id="reverted"),
    pytest.param(page(4, fingerprint="edited"), SiteChange.EDITED, id="edited"),
]


@pytest.mark.parametrize(("found", "change"), CHANGES)
@pytest.mark.parametrize(
    ("reaction", "action"),
    [
        (Reaction.ASK, {A.CONFLICT}),
        (Reaction.LEAVE, {A.LEAVE}),
        (Reaction.RESTORE, {A.CREATE, A.REPLACE}),
    ],
)
def test_the_site_decides_what_is_done_about_each_kind_of_change(
    found: RemotePage | None, change: SiteChange, reaction: Reaction, action: set[PublishAction]
) -> None:
    look = ABSENT if found is None else present(found)
    policy = ReactionPolicy.model_validate({change.value: reaction})
    decision = decide(look, wanted=WANTED, baseline=PROVED, policy=policy)
    assert decision.change is change
    assert decision.action in action
    assert (decision.action is A.CREATE) == (found is None and reaction is Reaction.RESTORE)


@pytest.mark.parametrize(("found", "change"), CHANGES)
def test_what_a_person_said_to_overwrite_is_overwritten_and_nothing_else(
    found: RemotePage | None, change: SiteChange
) -> None:
    look = ABSENT if found is None else present(found)
    policy = ReactionPolicy(missing=Reaction.ASK)

    def decided(may_overwrite: str) -> PublishDecision:
        return decide(
            look, wanted=WANTED, baseline=PROVED, policy=policy, may_overwrite=may_overwrite
        )

    assert decided(standing_of(found)).action in {A.CREATE, A.REPLACE}
    decision = decided("as it stood before")
    assert (decision.action, decision.change) == (A.CONFLICT, change)


def test_no_policy_writes_over_a_strangers_page() -> None:
    changes = set(SiteChange) - {SiteChange.FOREIGN}
    everything = ReactionPolicy.model_validate(dict.fromkeys(changes, Reaction.RESTORE))
    for found in (page(None), page(4, page_id="x")):
        decision = decide(present(found), wanted=WANTED, baseline=PROVED, policy=everything)
        assert (decision.action, decision.change) == (A.CONFLICT, SiteChange.FOREIGN)


def test_an_address_that_the_cms_gave_instead_is_a_strangers_place() -> None:
    suffixed = replace(page(5, status=RemoteStatus.HIDDEN), path="/berlin-2/")
    decision = decide(present(suffixed), wanted=WANTED, baseline=None)
    assert (decision.action, decision.change) == (A.CONFLICT, SiteChange.FOREIGN)
    assert "/berlin/ is taken" in decision.reason


@pytest.mark.parametrize("baseline", [None, PROVED])
def test_text_that_is_not_ours_under_our_fresh_mark_is_never_confirmed(
    baseline: Baseline | None,
) -> None:
    altered = replace(FRESH, intact=False)
    decision = decide(present(altered), wanted=WANTED, baseline=baseline)
    assert (decision.action, decision.change) == (A.CONFLICT, SiteChange.EDITED)
    lenient = ReactionPolicy(accept_altered_text=True)
    decision = decide(present(altered), wanted=WANTED, baseline=baseline, policy=lenient)
    assert decision.action is A.CONFIRM


def test_what_the_server_made_of_a_proved_text_is_not_an_edit() -> None:
    known = Baseline(revision=5, fingerprint=FRESH.fingerprint)
    decision = decide(present(replace(FRESH, intact=False)), wanted=WANTED, baseline=known)
    assert decision.action is A.CONFIRM


def test_an_accepted_revision_is_waited_for() -> None:
    accepted = page(5, content_hash="new", status=RemoteStatus.ACCEPTED)
    assert decide(present(accepted), wanted=WANTED, baseline=None).action is A.AWAIT
    older = page(4, status=RemoteStatus.ACCEPTED)
    assert decide(present(older), wanted=WANTED, baseline=None).action is A.REPLACE


def test_the_guarantee_grows_with_what_the_cms_offers() -> None:
    plain = CMSCapabilities(
        client_id=False, compare_and_swap=False, drafts=False, marker_look_up=True, trash=False
    )
    drafts = replace(plain, drafts=True)
    strict = replace(plain, client_id=True, compare_and_swap=True)
    texts = [guarantee(offers) for offers in (plain, drafts, strict)]
    assert "two pages are possible" in texts[0][0]
    assert "never two public pages" in texts[1][0]
    assert "never two pages" in texts[2][0]
    assert "can be overwritten" in texts[1][1]
    assert "never over a person's edit" in texts[2][1]
