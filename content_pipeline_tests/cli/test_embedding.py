"""A site whose pages are compared by their vectors, as people run it and read of it."""

import json
from decimal import Decimal
from typing import Any

from content_pipeline_tests.cli.conftest import MakeSite
from content_pipeline_tests.cli.workshop import TownSite, Workshop, towns

MODEL = "text-embedding-3-small"


def embedding(make_site: MakeSite, rows: list[dict[str, str]], **changes: Any) -> TownSite:
    """A site that compares towns by their rivers and names."""
    site = make_site(rows)
    vector = {"name": "vector", "prompt": "vector.md", "output": "embedding", "model": MODEL}
    (site.folder / "vector.md").write_text("{{ name }} on the {{ river }}, {{ river }}")
    site.declare(
        generation__steps=[{"name": "page", "prompt": "prompt.md"}, vector | changes],
        article__rules={"min_words": 60, "max_similarity": 0.8},
    )
    return site


def test_pages_are_made_compared_and_paid_for_by_step(
    make_site: MakeSite, workshop: Workshop
) -> None:
    site = embedding(make_site, towns(3))
    run = site.run()
    assert (run.status, run.count("published")) == (0, 3), run.err
    asked = workshop.cli("costs", "--site", site.name, "--by", "step,model", "--json")
    rows = {row["step"]: row for row in json.loads(asked.out)["rows"]}
    assert rows.keys() == {"page", "vector"}
    assert (rows["vector"]["model"], rows["vector"]["attempts"]) == (MODEL, 3)
    assert rows["vector"]["output_tokens"] == 0
    assert 0 < Decimal(rows["vector"]["usd"]) < Decimal(rows["page"]["usd"]) / 100
    again = site.run()
    assert again.status == 0
    assert len(site.writes()) == 3


def test_a_duplicate_is_on_the_list_of_repairs_with_the_page_that_it_repeats(
    make_site: MakeSite, workshop: Workshop
) -> None:
    first, other, second = towns(3)
    second |= {"name": f"The {first['name']}", "river": first["river"]}
    site = embedding(make_site, [first, other])
    assert site.run().status == 0
    site.write([first, other, second])
    run = site.run()
    assert run.status == 1
    assert "too similar" in workshop.cli("repair", "list", "--site", site.name).out
    shown = workshop.cli("show", "t2", "--site", site.name)
    assert "to /aarau-0/; at most 0.8 is allowed" in " ".join(shown.out.split())
    assert len(site.writes()) == 2


def test_an_embedding_without_a_price_is_refused_before_anything_is_sent(
    make_site: MakeSite, workshop: Workshop
) -> None:
    site = embedding(make_site, towns(2), model="text-embedding-99")
    asked = workshop.requests()
    done = site.run()
    assert (done.status, done.out) == (2, "")
    assert "text-embedding-99" in done.err
    assert "price" in done.err
    assert workshop.requests() == asked


def test_an_embedding_with_a_price_of_the_sites_own_is_not(
    make_site: MakeSite, workshop: Workshop
) -> None:
    price = {"input_usd_per_mtok": "0.5", "output_usd_per_mtok": "0"}
    site = embedding(make_site, towns(2), model="sandbox-embedding", price=price)
    assert site.run().status == 0
    asked = workshop.cli("costs", "--site", site.name, "--by", "model", "--json")
    rows = {row["model"]: row for row in json.loads(asked.out)["rows"]}
    found = rows["sandbox-embedding"]
    assert Decimal(found["usd"]) == found["input_tokens"] * Decimal("0.5") / 1_000_000
