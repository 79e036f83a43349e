"""Reading what a folder and the sandbox CMS recorded."""

from pathlib import Path

from content_pipeline.chaos.project import BASE_URL
from content_pipeline.chaos.site_records import cms_records, listed_in, live_pages, writes_in
from content_pipeline.chaos.site_truth import LivePage, Write
from content_pipeline.sandbox.cms.client import CMSClient
from content_pipeline.sandbox.cms.faults import FaultPlan
from content_pipeline.sandbox.cms.people import Act
from content_pipeline_tests.sandbox.cms.wordpress import sandbox_site

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


def content(key: str, revision: int = 1) -> str:
    return f"<p><!-- cp:key={key} rev={revision} h=abc -->Text.</p>"


def test_an_empty_cms_holds_nothing(sandbox_cms: CMSClient) -> None:
    records = cms_records(sandbox_cms)
    assert (records.live, records.received, records.pages_by_key) == ([], [], {})
    assert (records.public_doubles, records.stale_overwrites, records.edits_overwritten) == (
        0,
        0,
        0,
    )


def test_pages_of_the_cms_are_known_by_their_mark(sandbox_cms: CMSClient) -> None:
    site = sandbox_site(sandbox_cms)
    site.created(title="A", slug="a", content=content("key-a", 3), status="publish")
    site.created(title="B", slug="b", content="<p>Of a person.</p>", status="publish")
    site.created(title="C", slug="c", content=content("key-c"))
    (ours, theirs) = cms_records(sandbox_cms).live
    assert ours == LivePage(path="/a/", page_id="key-a", revision=3)
    assert (theirs.path, theirs.revision) == ("/b/", 0)
    assert theirs.page_id.startswith("id:")


def test_hidden_and_trashed_pages_of_a_mark_count_and_deleted_ones_do_not(
    sandbox_cms: CMSClient,
) -> None:
    site = sandbox_site(sandbox_cms)
    ids = [site.created(title=slug, slug=slug, content=content("key")) for slug in ("a", "b", "c")]
    site.trashed(ids[1])
    assert cms_records(sandbox_cms).pages_by_key == {"key": 3}
    sandbox_cms.by_hand(Act(act="delete", page_id=ids[2]["id"]))
    assert cms_records(sandbox_cms).pages_by_key == {"key": 2}


def test_doubles_and_overwritten_edits_are_the_cms_s_own_count(sandbox_cms: CMSClient) -> None:
    site = sandbox_site(sandbox_cms)
    first = site.created(title="A", slug="a", content=content("key", 2), status="publish")
    site.created(title="B", slug="b", content=content("key", 2), status="publish")
    sandbox_cms.by_hand(Act(act="edit", page_id=first["id"], appended="<p>By hand.</p>"))
    site.updated(first, content=content("key", 1))
    records = cms_records(sandbox_cms)
    assert records.public_doubles == 1
    assert records.edits_overwritten == 1
    assert records.stale_overwrites == 1


def test_requests_are_read_with_their_faults_and_waits(sandbox_cms: CMSClient) -> None:
    fault = {"kind": "status", "status": 429, "retry_after_s": 2}
    sandbox_cms.set_faults(FaultPlan.model_validate({"rules": [{"fault": fault}]}))
    site = sandbox_site(sandbox_cms)
    site.ask("POST", "/wp-json/wp/v2/pages", {"title": "A", "content": content("key")})
    (request,) = cms_records(sandbox_cms).received
    assert (request.operation, request.page, request.fault, request.wait_s) == (
        "create",
        "key",
        "status",
        2,
    )
    assert request.at.tzinfo is not None


def test_calls_of_the_deploy_hook_are_told_with_the_last_change_of_ours(
    sandbox_cms: CMSClient,
) -> None:
    site = sandbox_site(sandbox_cms)
    page = site.created(title="A", slug="a", content=content("key"), status="publish")
    site.created(title="Draft", slug="b", content=content("other"))
    site.ask("POST", "/hooks/deploy/chaos", {})
    site.ask("POST", "/hooks/receive/somebody", {})
    sandbox_cms.by_hand(Act(act="edit", page_id=page["id"], appended="<p>By hand.</p>"))
    records = cms_records(sandbox_cms)
    assert records.changed_at is not None
    (deployed_at,) = records.deployed_at
    assert records.changed_at < deployed_at
