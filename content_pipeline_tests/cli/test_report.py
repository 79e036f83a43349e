"""``content-pipeline report``: the file and what is worth a look, without Dagster."""

import re
from pathlib import Path

from content_pipeline_tests.cli.conftest import MakeSite
from content_pipeline_tests.cli.workshop import Workshop, towns


def figure(page: str, label: str) -> str:
    """The number under ``label`` at the head of a report."""
    (found,) = re.findall(rf'<dt>{label}</dt><dd class="value">([^<]*)</dd>', page)
    return str(found)


def test_a_sites_report_lies_where_it_is_said_and_holds_the_dollars_of_the_run(
    make_site: MakeSite, workshop: Workshop
) -> None:
    site = make_site(towns(3))
    run = site.run()
    done = workshop.cli("report", "--site", site.name)
    file = workshop.root / "reports" / f"{site.name}.html"
    assert (done.status, done.out) == (0, f"{file}\n")
    page = file.read_text()
    assert figure(page, "today") == run.row("dollars")[0]
    assert figure(page, "published") == "3"
    assert f"<h1>Towns of {site.name}</h1>" in page


def test_what_should_be_looked_at_is_printed(make_site: MakeSite, workshop: Workshop) -> None:
    site = make_site(towns(2), health={"day_budget_share": 0.000001})
    site.run()
    done = workshop.cli("report", "--site", site.name)
    assert done.status == 0
    _, warning = done.out.splitlines()
    assert warning.startswith(f"{site.name}: Today's $0.00")
    assert "(health.day_budget_share)" in warning


def test_it_goes_to_another_file_when_asked_to(
    make_site: MakeSite, workshop: Workshop, tmp_path: Path
) -> None:
    site = make_site(towns(1))
    file = tmp_path / "elsewhere" / "costs.html"
    done = workshop.cli("report", "--site", site.name, "--out", str(file))
    assert done.out == f"{file}\n"
    assert file.read_text().startswith("<!doctype html>")
    assert not (workshop.root / "reports" / f"{site.name}.html").exists()


def test_all_sites_get_a_file_each_and_cannot_share_one(
    make_site: MakeSite, workshop: Workshop, tmp_path: Path
) -> None:
    names = [make_site(towns(1)).name for _ in range(2)]
    done = workshop.cli("report")
    assert done.status == 0
    for name in names:
        assert f"{workshop.root / 'reports' / name}.html" in done.out
    refused = workshop.cli("report", "--out", str(tmp_path / "one.html"))
    assert refused.status == 2
    assert "choose one site with --site" in refused.err
    assert not (tmp_path / "one.html").exists()


def test_a_place_that_cannot_be_written_is_named(
    make_site: MakeSite, workshop: Workshop, tmp_path: Path
) -> None:
    site = make_site(towns(1))
    (tmp_path / "file").touch()
    done = workshop.cli(
        "report", "--site", site.name, "--out", str(tmp_path / "file" / "costs.html")
    )
    assert done.status == 2
    assert "the report cannot be written to" in done.err


def test_a_threshold_that_nobody_knows_is_answered_with_its_place(
    make_site: MakeSite, workshop: Workshop
) -> None:
    site = make_site(towns(1))
    site.declare(health={"queue_age": 1})
    done = workshop.cli("report", "--site", site.name)
    site.declare()  # a command on all sites of the project would stumble over it
    assert done.status == 2
    assert "attributes.health.queue_age: unknown key 'queue_age'; did you mean" in done.err
