"""Workers that cannot work, and workers that are killed before they have begun."""

from collections.abc import Iterator

import psutil
import pytest

from content_pipeline.chaos.project import SITE, Arena, ArenaPlan, Target, arena, names_of, paths_of
from content_pipeline.chaos.site_records import pages_out
from content_pipeline.chaos.workers import WORKERS, Campaign, drive
from content_pipeline.core.errors import ConfigurationError
from content_pipeline_tests.chaos.records import at

PAGES = 4


@pytest.fixture
def place() -> Iterator[Arena]:
    with arena(ArenaPlan(pages=PAGES, seed=2)) as made:
        yield made


@pytest.fixture
def in_a_folder() -> Iterator[Arena]:
    with arena(ArenaPlan(pages=PAGES, seed=2, target=Target.FOLDER)) as made:
        yield made


def test_a_worker_that_cannot_work_ends_the_run_with_its_own_words(place: Arena) -> None:
    file = place.project.root / "arena" / "defs" / SITE / "defs.yaml"
    file.write_text(file.read_text().replace("provider: sandbox", "provider: abacus"))
    with pytest.raises(ConfigurationError, match=r"could not work: .+"):
        drive(place, ())
    commands = [" ".join(child.cmdline()) for child in psutil.Process().children()]
    assert not [command for command in commands if "content_pipeline.cli" in command]


def test_workers_killed_at_once_are_followed_by_others_that_do_it_all(place: Arena) -> None:
    campaign = drive(place, (0.0, 0.0))
    assert len(campaign.kills) == 2
    assert campaign.killed == 2 * WORKERS
    assert campaign.started >= 3 * WORKERS + 1  # the last one found nothing to do
    assert place.cms is not None
    live = [page["path"] for page in place.cms.live()]
    assert sorted(live) == sorted(paths_of(names_of(PAGES).values()))
    assert pages_out(place) == PAGES
    assert sum(place.sandbox.truth()["creates_by_attempt_id"].values()) == PAGES


def test_pages_in_a_folder_are_counted_by_its_own_log(in_a_folder: Arena) -> None:
    campaign = drive(in_a_folder, (0.5,))
    assert len(campaign.kills) <= 1  # they may be done before anybody has counted
    assert pages_out(in_a_folder) == PAGES
    live = {file.parent.name for file in in_a_folder.public.glob("harbour-*/index.html")}
    assert live == {path.strip("/") for path in paths_of(names_of(PAGES).values())}


def test_a_share_that_is_never_reached_kills_nobody(in_a_folder: Arena) -> None:
    campaign = drive(in_a_folder, (2.0,))
    assert campaign.kills == ()
    assert campaign.killed == 0


def test_one_campaign_followed_by_another_is_their_sum() -> None:
    one = Campaign(kills=(at(1),), killed=2, started=5, wall_s=10)
    other = Campaign(kills=(), killed=0, started=3, wall_s=4.5)
    both = Campaign(kills=(at(1),), killed=2, started=8, wall_s=14.5)
    assert one.followed_by(other) == both
