"""Pages are put in place again from the UI, without being made anew."""

from typing import Any

import pytest

from content_pipeline.core.states import PageJobState, Stage
from content_pipeline.ledger import reports
from content_pipeline_tests.components.conftest import MakeSite, TownSite, rows_of

S = PageJobState


def live(make_site: MakeSite, count: int = 2) -> TownSite:
    site = make_site(rows_of(count))
    site.submit()
    assert site.run_job(f"{site.assets.name}_due_work").success
    return site


def republish(site: TownSite, **config: Any) -> Any:
    return site.run_job(f"{site.assets.name}_republish", **{"cause": "a backup", **config})


@pytest.mark.parametrize("config", [{"topics": ["t01", "t02"]}, {"everything": True}])
def test_lost_pages_are_back_and_nothing_is_paid(
    config: dict[str, Any], make_site: MakeSite
) -> None:
    site = live(make_site)
    billed = site.billed()
    for page in ("t01", "t02"):
        site.file_of(page).unlink()
    result = republish(site, **config)
    assert result.success
    assert site.file_of("t01").exists()
    assert site.file_of("t02").exists()
    assert site.billed() == billed
    assert site.tags_of(result)["pages/published"] == "2"


def test_a_page_in_place_is_confirmed_without_a_write(make_site: MakeSite) -> None:
    site = live(make_site, 1)
    writes = site.writes()
    assert republish(site, topics=["t01"]).success
    assert site.writes() == writes
    assert "published again: a backup" in {row["why"] for row in history(site)}


def history(site: TownSite) -> list[Any]:
    with site.ledger.begin() as connection:
        return list(reports.history(connection, site.report("t01").page_job_id))


def test_only_what_is_named_is_published(make_site: MakeSite) -> None:
    site = live(make_site)
    for page in ("t01", "t02"):
        site.file_of(page).unlink()
    assert republish(site, topics=["t02"]).success
    assert (site.file_of("t01").exists(), site.file_of("t02").exists()) == (False, True)


def test_a_page_that_a_person_edited_follows_the_sites_policy(make_site: MakeSite) -> None:
    site = live(make_site, 1)
    site.edit("t01")
    result = republish(site, topics=["t01"])
    assert not result.success
    assert site.report("t01").state is S.FAILED_TERMINAL
    assert "Lovely" in site.file_of("t01").read_text()
    assert any("edited on the site" in told for told in site.told_of(Stage.ARTIFACT, "t01", result))


@pytest.mark.parametrize(
    "config",
    [{}, {"topics": ["t01"], "everything": True}, {"topics": ["t01"], "cause": "  "}],
)
def test_what_is_not_clear_is_refused(config: dict[str, Any], make_site: MakeSite) -> None:
    site = live(make_site, 1)
    assert not republish(site, **config).success
    assert site.report("t01").state is S.PUBLISHED
