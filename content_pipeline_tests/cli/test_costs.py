"""``content-pipeline costs`` as people and programs read it."""

import json
from decimal import Decimal

from content_pipeline_tests.cli.conftest import MakeSite
from content_pipeline_tests.cli.workshop import Workshop, towns


def test_the_dollars_of_a_site_however_they_are_grouped(
    make_site: MakeSite, workshop: Workshop
) -> None:
    site = make_site(towns(3))
    run = site.run()
    assert run.status == 0

    by_model = workshop.cli("costs", "--site", site.name, "--by", "model, class", "--json")
    document = json.loads(by_model.out)
    assert document["by"] == ["model", "class"]
    (row,) = document["rows"]
    assert (row["model"], row["class"], row["attempts"]) == ("gpt-5-mini", "ok", 3)
    total = Decimal(document["total"]["usd"])
    assert f"${total:,.4f}" == run.row("dollars")[0]
    assert row == {"model": "gpt-5-mini", "class": "ok"} | document["total"]

    table = workshop.cli("costs", "--site", site.name, "--by", "site", "--by", "step,template,day")
    heads = [head.strip() for head in table.out.splitlines()[2].strip("┃").split("┃")]
    assert heads[:6] == ["site", "step", "template", "day", "settled", "uncertain"]
    cells = [cell.strip() for cell in table.out.splitlines()[4].split("│")]
    assert cells[1:3] == [site.name, "article"]
    assert cells[3].endswith(":article")
    assert cells[5] == f"${total:,.4f}"
    assert table.status == 0


def test_a_dimension_nobody_knows_is_answered_with_those_that_exist(workshop: Workshop) -> None:
    done = workshop.cli("costs", "--by", "colour")
    assert done.status == 2
    assert "does not know 'colour'; known: site, template, step, model, class, day" in done.err


def test_a_budget_for_all_sites_that_is_no_amount_stops_a_run_before_it_spends(
    make_site: MakeSite, workshop: Workshop
) -> None:
    site = make_site(towns(2))
    done = site.run(CONTENT_PIPELINE_DAY_USD="five")
    assert done.status == 2
    assert "CONTENT_PIPELINE_DAY_USD is 'five'" in done.err
    costs = workshop.cli("costs", "--site", site.name, "--json")
    assert json.loads(costs.out)["rows"] == []


def test_a_run_makes_no_call_that_could_pass_the_budget_of_all_sites(
    make_site: MakeSite, workshop: Workshop
) -> None:
    site = make_site(towns(2))
    paid = workshop.requests().get("create", 0)
    done = site.run(CONTENT_PIPELINE_DAY_USD="0.0001")
    assert done.status == 1
    assert done.count("waiting") == 2
    assert "budget 2" in done.row("waiting")[1]
    assert workshop.requests().get("create", 0) == paid
