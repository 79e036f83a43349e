"""Each promise about the site can be seen to break: the verdict on records made by hand."""

from dataclasses import replace

import pytest

from content_pipeline.chaos.site_truth import (
    LivePage,
    SiteNumbers,
    SiteRecords,
    Wanted,
    Write,
    judge_site,
)
from content_pipeline_tests.chaos.records import (
    PATHS,
    WANTED,
    at,
    cms,
    folder,
    live,
    received,
    throttled,
)

STRANGER = LivePage(path="/d/", page_id="page-d", revision=1)
CHANGED = replace(WANTED, changed=frozenset({"/a/", "/b/"}), edited=frozenset({"/b/"}))


def verdict(records: SiteRecords, wanted: Wanted = WANTED) -> SiteNumbers:
    return judge_site(records, wanted, kills=[])


@pytest.mark.parametrize("records", [folder(), cms()], ids=["folder", "cms"])
def test_a_good_run_breaks_nothing(records: SiteRecords) -> None:
    numbers = verdict(records)
    assert numbers.broken_promises() == []
    assert (numbers.pages_live, numbers.missing) == (3, 0)


BROKEN: list[tuple[SiteRecords, str]] = [
    (folder(live=live()[1:], sitemap=PATHS[1:]), "a page is missing"),
    (cms(live=live()[1:]), "a page is missing"),
    (
        folder(live=[*live(), STRANGER], sitemap=(*PATHS, "/d/")),
        "a page is live that nobody asked for, or twice",
    ),
    (cms(live=[*live(), STRANGER]), "a page is live that nobody asked for, or twice"),
    (
        cms(live=[*live()[:2], replace(live()[2], page_id=live()[0].page_id)]),
        "a page is live that nobody asked for, or twice",
    ),
    (
        folder(writes=[*folder().writes, Write(path="/a/", revision=1)]),
        "a revision was written more than once",
    ),
    (
        folder(writes=[Write(path="/a/", revision=2), *folder().writes]),
        "an older revision was written over a newer one",
    ),
    (cms(stale_overwrites=1), "an older revision was written over a newer one"),
    (folder(sitemap=PATHS[1:]), "the sitemap does not list exactly the live pages"),
    (folder(sitemap=(*PATHS, "/old/")), "the sitemap does not list exactly the live pages"),
    (folder(sitemap=(*PATHS, "/a/")), "the sitemap does not list exactly the live pages"),
    (cms(public_doubles=1), "visitors saw one page twice at one instant"),
    (
        cms(pages_by_key={"page-/a/": 2, "page-/b/": 1}),
        "a second page with the mark of another is left on the site",
    ),
    (cms(edits_overwritten=1), "a person's edit was overwritten"),
    (
        cms(received=[throttled(0, "a", 0.5), received(0.4, "a", operation="list")]),
        "a page was sent again before the CMS's wait was over",
    ),
    (
        cms(received=[throttled(0, "a", 3), received(2, "b", operation="read")]),
        "the CMS was called before its announced wait was over",
    ),
    (cms(deployed_at=[at(2)]), "the deploy hook was not called after the last change"),
    (cms(deployed_at=[]), "the deploy hook was not called after the last change"),
]


@pytest.mark.parametrize(("records", "sentence"), BROKEN)
def test_each_broken_promise_is_told_and_no_other(records: SiteRecords, sentence: str) -> None:
    assert verdict(records).broken_promises() == [sentence]


def test_every_promise_has_been_broken_here() -> None:
    everything_wrong = SiteNumbers(
        pages_live=0,
        missing=1,
        unwanted=1,
        outdated=1,
        stale_overwrites=1,
        written_twice=1,
        sitemap_wrong=1,
        public_doubles=1,
        doubles_left=1,
        edits_overwritten=1,
        cms_early_for_page=1,
        cms_early_for_site=1,
        never_deployed=True,
    )
    of_changes = {"a page shows the text of before its input was changed"}
    told = {sentence for _, sentence in BROKEN} | of_changes
    assert set(everything_wrong.broken_promises()) == told


@pytest.mark.parametrize(
    ("revisions", "outdated"),
    [
        ({"/a/": 2, "/b/": 1, "/c/": 1}, 0),
        ({"/a/": 2, "/b/": 2, "/c/": 1}, 0),
        ({"/a/": 1, "/b/": 1, "/c/": 1}, 1),
    ],
    ids=["the edited one is left alone", "even if it were not", "the other one shows old text"],
)
@pytest.mark.parametrize("records", [folder(), cms()], ids=["folder", "cms"])
def test_a_changed_page_must_show_its_new_text_unless_a_person_edited_it(
    records: SiteRecords, revisions: dict[str, int], outdated: int
) -> None:
    pages = [replace(page, revision=revisions[page.path]) for page in live()]
    numbers = verdict(replace(records, live=pages), CHANGED)
    assert numbers.outdated == outdated


def test_a_wait_that_only_the_killed_heard_binds_nobody() -> None:
    records = cms(received=[throttled(0, "a", 3), received(2, "b", operation="read")])
    assert judge_site(records, WANTED, kills=[at(0.5)]).cms_early_for_site == 0


def test_what_was_deleted_for_good_is_no_double() -> None:
    assert verdict(cms(pages_by_key={"page-/a/": 0, "page-/b/": 1})).doubles_left == 0


def test_requests_and_faults_are_counted_at_the_cms() -> None:
    faulty = received(9, "page-/a/", operation="create", fault="drop")
    asked = received(9, "page-/a/", operation="list", fault="slow")
    numbers = verdict(cms(received=[*cms().received, faulty, asked]))
    assert numbers.deploy_calls == 2
    assert (numbers.cms_requests, numbers.cms_writes, numbers.cms_faults) == (14, 7, 1)
    assert numbers.requests_per_page == pytest.approx(14 / 3)
    assert verdict(cms(live=[])).requests_per_page == 12


def test_a_cms_that_we_never_changed_need_not_be_deployed() -> None:
    assert not verdict(cms(changed_at=None, deployed_at=[])).never_deployed
