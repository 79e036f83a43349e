"""``content-pipeline costs`` as people and programs read it."""

import json
import re
from decimal import Decimal

import pytest

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
    done = site.run(CONTENT_PIPELINE_DAY_USD="0")
    assert done.status == 1
    assert done.count("waiting") == 2
    assert "budget 2" in done.row("waiting")[1]
    assert workshop.requests().get("create", 0) == paid
    story = workshop.cli("show", "t0", "--site", site.name)
    assert re.match(r"\d{4}-\d\d-\d\d ", story.row("not tried again after")[0])

    # Raised, the cap lets them go on without waiting for a new day.
    resumed = workshop.cli("resume", "--site", site.name)
    assert resumed.out.endswith("2 pages that waited for a budget are due now\n")
    assert "budget" not in workshop.cli("resume", "--site", site.name).out
    assert site.run().count("published") == 2
    assert "not tried again" not in workshop.cli("show", "t0", "--site", site.name).out


def test_a_raised_cap_is_found_by_the_next_run_itself(make_site: MakeSite) -> None:
    site = make_site(towns(2))
    assert site.run(CONTENT_PIPELINE_DAY_USD="0").count("waiting") == 2
    assert site.run().count("published") == 2


def test_a_cap_of_all_sites_below_the_price_of_one_call_is_refused_too(
    make_site: MakeSite, workshop: Workshop
) -> None:
    site = make_site(towns(2))
    done = site.run(CONTENT_PIPELINE_DAY_USD="0.0001")
    assert done.status == 2
    assert f"one call of step 'article' of site {site.name} could cost $0.006" in done.err
    assert "CONTENT_PIPELINE_DAY_USD is $0.0001" in done.err
    assert "raise CONTENT_PIPELINE_DAY_USD, or set it to 0" in done.err
    assert "has no page 't0'" in workshop.cli("show", "t0", "--site", site.name).err


@pytest.mark.parametrize("key", ["page_usd", "site_day_usd"])
def test_a_cap_below_the_price_of_one_output_is_refused_before_anything_is_wanted(
    key: str, make_site: MakeSite, workshop: Workshop
) -> None:
    site = make_site(towns(2), budgets={key: 0.00001})
    done = site.run()
    assert done.status == 2
    assert (
        f"budgets.{key} is $0.00001, and one call of step 'article' of site {site.name} could cost "
        "$0.006" in done.err
    )
    assert f"raise budgets.{key} or lower max_output_tokens" in done.err
    assert "has no page 't0'" in workshop.cli("show", "t0", "--site", site.name).err
