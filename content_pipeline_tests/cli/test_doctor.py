"""``doctor``: what would stop a site from publishing is said before anything is paid."""

from collections.abc import Iterator
from dataclasses import replace

import pytest

from content_pipeline.sandbox.cms.accounts import PIPELINE
from content_pipeline.sandbox.cms.client import CMSClient
from content_pipeline.sandbox.cms.server import serving_cms
from content_pipeline.sandbox.cms.settings import CMSSettings
from content_pipeline_tests.cli.conftest import MakeSite
from content_pipeline_tests.cli.workshop import Finished, TownSite, Workshop, towns


@pytest.fixture
def cms() -> Iterator[CMSClient]:
    with serving_cms(CMSSettings(latency_median_s=0, idle_exit_s=0)) as client:
        yield client


def doctor(site: TownSite, **environment: str) -> Finished:
    return site.workshop.cli("doctor", "--site", site.name, environment=environment)


def lines(done: Finished) -> list[tuple[str, str]]:
    """Verdict and text of each finding."""
    found = (line.strip().partition(" ") for line in done.out.splitlines() if line[:2] == "  ")
    return [(verdict, text.strip()) for verdict, _, text in found]


def on_wordpress(make_site: MakeSite, cms: CMSClient, **changes: object) -> TownSite:
    made = make_site(towns(1), cms={"kind": "wordpress"}, base_url=cms.base_url, **changes)
    account = {
        "WORDPRESS_URL": cms.base_url,
        "WORDPRESS_USER": PIPELINE.login,
        "WORDPRESS_APPLICATION_PASSWORD": PIPELINE.app_password,
    }
    workshop = replace(made.workshop, environment={**made.workshop.environment, **account})
    return replace(made, workshop=workshop)


def test_a_healthy_site_is_told_what_it_may_rely_on(
    make_site: MakeSite, workshop: Workshop
) -> None:
    site = make_site(towns(1))
    asked = workshop.requests()
    done = doctor(site)
    assert (done.status, done.err) == (0, "")
    found = lines(done)
    (note,) = [text for verdict, text in found if verdict != "ok"]
    assert "this very folder on shared storage" in note, "the ledger of the tests is an own server"
    subjects = [text.partition(":")[0] for _, text in found]
    assert subjects == [
        "database",
        "settings",
        "price",
        "provider",
        "CMS",
        "CMS",
        "guarantee",
        "guarantee",
        "quiet period",
        "hooks",
    ]
    assert ("ok", "hooks: sitemap, index_page") in found
    assert f"CMS: folder {site.public}" in done.out
    assert workshop.requests() == asked
    assert site.writes() == []


def test_a_cms_tells_who_we_are_and_what_it_cannot_promise(
    make_site: MakeSite, cms: CMSClient
) -> None:
    site = on_wordpress(make_site, cms, lane__publish_quiet_s=60, lane__run_limit_s=1800)
    done = doctor(site)
    assert done.status == 0, done.out
    assert "CMS: " in done.out
    assert PIPELINE.login in done.out
    assert "guarantee: never two public pages" in done.out
    assert "a person's edit is seen before each write" in done.out
    assert "quiet period: 60 s, longer than a request (30 s)" in done.out
    assert "shared storage" not in done.out, "every machine reaches it"


def test_a_wrong_password_is_a_problem_and_never_an_empty_site(
    make_site: MakeSite, cms: CMSClient
) -> None:
    site = on_wordpress(make_site, cms)
    done = doctor(site, WORDPRESS_APPLICATION_PASSWORD="wrong wrong")
    assert done.status == 1
    problems = [text for verdict, text in lines(done) if verdict == "problem"]
    assert len(problems) == 1
    assert problems[0].startswith("CMS: ")
    assert "password" in problems[0]
    assert "wrong wrong" not in done.out


def test_a_cms_that_is_not_there_is_a_problem(make_site: MakeSite, cms: CMSClient) -> None:
    site = on_wordpress(make_site, cms)
    done = doctor(site, WORDPRESS_URL="http://127.0.0.1:9")
    assert done.status == 1
    assert any(verdict == "problem" for verdict, _ in lines(done))


def test_a_quiet_period_that_is_too_short_is_pointed_at(
    make_site: MakeSite, cms: CMSClient
) -> None:
    done = doctor(on_wordpress(make_site, cms, lane__publish_quiet_s=5))
    assert done.status == 0
    (note,) = [text for _, text in lines(done) if text.startswith("quiet period")]
    assert "lane.publish_quiet_s is 5 s, and one request may take 30 s" in note


@pytest.mark.parametrize(
    ("changes", "subject", "said"),
    [
        ({"generation__model": "gpt-nobody-knows"}, "price", "gpt-nobody-knows"),
        ({"generation__provider": "openai"}, "provider", "OPENAI_API_KEY"),
        ({"budgets": {"page_usd": 0.000001}}, "price", "budgets.page_usd"),
        ({"cms": {"kind": "wordpress"}}, "CMS", "WORDPRESS_URL"),
    ],
)
def test_what_is_missing_is_named_with_its_part(
    make_site: MakeSite, changes: dict[str, object], subject: str, said: str
) -> None:
    done = doctor(make_site(towns(1), **changes))
    assert done.status == 1
    problems = [text for verdict, text in lines(done) if verdict == "problem"]
    assert any(text.startswith(f"{subject}: ") and said in text for text in problems), done.out


def test_a_folder_that_cannot_be_written_is_a_problem(make_site: MakeSite) -> None:
    site = make_site(towns(1))
    site.public.parent.mkdir(exist_ok=True)
    site.public.write_text("a file stands where the folder should be")
    done = doctor(site)
    site.public.unlink()
    assert done.status == 1
    assert [text.partition(":")[0] for verdict, text in lines(done) if verdict == "problem"] == [
        "CMS"
    ]


def test_a_database_that_does_not_answer_is_a_problem(make_site: MakeSite) -> None:
    site = make_site(towns(1))
    nowhere = "postgresql://nobody@127.0.0.1:9/none"
    done = doctor(site, CONTENT_PIPELINE_DATABASE_URL=nowhere)
    assert done.status == 1
    assert ("problem", "database") in [
        (verdict, text.partition(":")[0]) for verdict, text in lines(done)
    ]
    assert ("ok", "hooks: sitemap, index_page") in lines(done), "the rest is looked at all the same"


def test_one_broken_site_file_does_not_hide_the_others(make_site: MakeSite) -> None:
    whole, broken = make_site(towns(1)), make_site(towns(1))
    file = broken.folder / "defs.yaml"
    before = file.read_text()
    file.write_text(before.replace("gpt-5-mini", "gpt-5-mini\n    colour: red"))
    done = whole.workshop.cli("doctor")
    file.write_text(before)
    assert done.status == 1
    assert "colour" in done.out
    assert f"({whole.name})" in done.out
