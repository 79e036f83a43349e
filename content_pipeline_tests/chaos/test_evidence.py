"""Reading what a folder and a provider recorded."""

from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path

from content_pipeline.adapters.llm.prices import GenaiPrices
from content_pipeline.bootstrap import utc_now
from content_pipeline.chaos.evidence import billed_of, listed_in, live_pages, writes_in
from content_pipeline.chaos.project import BASE_URL, MODEL
from content_pipeline.chaos.truth import LivePage, Write

MARK = '<html><head><meta name="content-pipeline" content="page={} rev={} hash=abc"></head></html>'


def put(folder: Path, name: str, text: str) -> None:
    file = folder / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


def test_a_folder_that_is_not_there_holds_nothing(tmp_path: Path) -> None:
    folder = tmp_path / "public"
    assert writes_in(folder) == []
    assert live_pages(folder) == []
    assert listed_in(folder) == []


def test_writes_are_read_in_the_order_of_the_log(tmp_path: Path) -> None:
    log = "2026-01-01T00:00:00+00:00\t/b/\t2\n2026-01-01T00:00:01+00:00\t/a/\t10\n"
    put(tmp_path, ".content-pipeline/writes.log", log)
    assert writes_in(tmp_path) == [Write(path="/b/", revision=2), Write(path="/a/", revision=10)]


def test_pages_are_known_by_their_own_mark(tmp_path: Path) -> None:
    put(tmp_path, "a/index.html", MARK.format("page-a", 3))
    put(tmp_path, "deep/er/index.html", MARK.format("page-d", 1))
    put(tmp_path, "strange/index.html", "<html><head></head></html>")
    put(tmp_path, "index.html", MARK.format("front", 1))
    assert live_pages(tmp_path) == [
        LivePage(path="/a/", page_id="page-a", revision=3),
        LivePage(path="/deep/er/", page_id="page-d", revision=1),
    ]


def test_the_sitemap_is_read_as_it_stands(tmp_path: Path) -> None:
    locations = "".join(f"<url><loc>{BASE_URL}{path}</loc></url>" for path in ("/b/", "/a/", "/a/"))
    put(tmp_path, "sitemap.xml", f"<urlset>{locations}</urlset>")
    assert listed_in(tmp_path) == ["/b/", "/a/", "/a/"]


def test_a_generation_is_billed_at_list_price() -> None:
    generation = {
        "at": "2026-01-01T00:00:00+00:00",
        "attempt_id": "attempt-1",
        "page_job_id": "job-1",
        "fault": "drop_after",
        "model": MODEL,
        "prompt_tokens": 1_000_000,
        "cached_tokens": 0,
        "completion_tokens": 1_000_000,
    }
    billed = billed_of(generation, GenaiPrices(provider="openai", now=utc_now))
    assert billed.at == datetime(2026, 1, 1, tzinfo=UTC)
    assert (billed.attempt_id, billed.page_job_id, billed.fault) == (
        "attempt-1",
        "job-1",
        "drop_after",
    )
    assert billed.usd == Decimal("2.25")  # $0.25 in and $2.00 out
