"""Workers that cannot work, and workers that are killed before they have begun."""

from collections.abc import Iterator

import psutil
import pytest

from content_pipeline.chaos.project import SITE, Arena, arena, names_of
from content_pipeline.chaos.workers import WORKERS, drive
from content_pipeline.core.errors import ConfigurationError

PAGES = 4


@pytest.fixture
def place() -> Iterator[Arena]:
    with arena(PAGES, seed=2) as made:
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
    live = {file.parent.name for file in place.public.glob("harbour-*/index.html")}
    assert live == {name.lower().replace(" ", "-") for name in names_of(PAGES).values()}
    assert sum(place.sandbox.truth()["creates_by_attempt_id"].values()) == PAGES


def test_a_share_that_is_never_reached_kills_nobody(place: Arena) -> None:
    campaign = drive(place, (2.0,))
    assert campaign.kills == ()
    assert campaign.killed == 0
