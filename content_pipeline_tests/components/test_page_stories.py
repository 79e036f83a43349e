"""How a page stands on an asset, in the words that people read."""

import dagster as dg
import pytest

from content_pipeline.components.page_stories import stories_of_page
from content_pipeline.components.stories import Story
from content_pipeline.core.failures import FailureClass
from content_pipeline.core.publishing import SiteChange
from content_pipeline.core.states import PageJobState, Stage
from content_pipeline.ledger.reports import PageReport
from content_pipeline_tests.components.page_reports import NOON, failed, page

S = PageJobState

DONE = page(S.PUBLISHED, revision=1)
QUEUED = page(S.QUEUED)
BAD = failed(FailureClass.INVALID_PAGE)
EDITED = page(
    S.PUBLISHED,
    revision=1,
    site_change=SiteChange.EDITED,
    site_change_reason="it was edited",
    site_change_found_at=NOON,
)
CONFLICTS = "a person decides which text stands; see `content-pipeline conflicts`"


def story_of(report: PageReport, stage: Stage = Stage.ARTIFACT) -> Story:
    (found,) = stories_of_page(report, [stage])
    return found


def said(story: Story, name: str) -> object:
    value = story.metadata[name]
    assert isinstance(value, dg.MetadataValue)
    return value.value


@pytest.mark.parametrize(
    ("report", "is_green", "needs_person", "is_observed"),
    [
        (DONE, True, False, False),
        (QUEUED, False, False, False),
        (BAD, False, True, True),
        (EDITED, False, False, True),
    ],
    ids=["done", "waits", "failed", "edited"],
)
def test_a_story_says_whether_all_is_well_and_whether_a_person_must_act(
    report: PageReport, is_green: bool, needs_person: bool, is_observed: bool
) -> None:
    story = story_of(report)
    assert (story.is_green, story.needs_person, story.is_observed) == (
        is_green,
        needs_person,
        is_observed,
    )


def test_what_happens_next_is_the_same_in_the_sentence_and_beside_it() -> None:
    story = story_of(EDITED)
    assert (
        story.text
        == f"{EDITED.name}: it was edited (found 2026-06-01 12:00 UTC). Next: {CONFLICTS}."
    )
    assert said(story, "next_action") == CONFLICTS
    failure = story_of(BAD)
    assert failure.text.endswith(f"Next: {said(failure, 'next_action')}.")


def test_a_change_on_the_site_is_no_news_of_the_draft() -> None:
    draft = story_of(EDITED, Stage.DRAFT)
    assert draft.is_green
    assert not draft.is_observed


def test_each_asset_has_its_own_story_of_a_page() -> None:
    stories = stories_of_page(DONE, Stage)
    assert [story.stage for story in stories] == list(Stage)
    assert len({story.text for story in stories}) == len(Stage)
    assert {story.partition for story in stories} == {DONE.topic_key}
