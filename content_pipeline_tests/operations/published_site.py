"""A site with many published pages at once, in the ledger and in a sandbox CMS, for looking at it.

What belongs here: the fastest way there that leaves both as publishing does. The CMS's rows go
through its own rules of writing, the page jobs through the moves that the ledger's guards check;
only the requests and the waiting in between are left out.
"""

from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from itertools import pairwise
from pathlib import Path

from sqlalchemy import Connection, func, insert, literal, select, update

from content_pipeline.adapters.cms.wordpress import WordPressCMS
from content_pipeline.adapters.cms.wordpress_pages import PageForm
from content_pipeline.adapters.cms.wordpress_rest import WordPressREST
from content_pipeline.core.cms import Document, Marker, RemotePage
from content_pipeline.core.rendering import render_document
from content_pipeline.core.states import FINAL, MOVES, PageJobState
from content_pipeline.ledger import jobs, publications
from content_pipeline.ledger.schema import draft_revisions, page_jobs, pages, transitions
from content_pipeline.operations.runtime import SiteRuntime
from content_pipeline.operations.submit import submit
from content_pipeline.sandbox.cms.accounts import PIPELINE
from content_pipeline.sandbox.cms.settings import CMSSettings
from content_pipeline.sandbox.cms.site import Site
from content_pipeline.sandbox.cms.store import Store
from content_pipeline.sandbox.cms.writing import changed, checked_fields
from content_pipeline_tests.operations.fakes import ARTICLE
from content_pipeline_tests.operations.small_site import BASE_URL, Row, clock

S = PageJobState

TO_A_DRAFT = (S.QUEUED, S.RESERVED, S.GENERATING, S.GENERATED, S.VALIDATING, S.READY_TO_PUBLISH)

APART_S = 10
"""Between two publishes: pages written within one minute count as recent changes together."""

DEADLINE_S = 60.0

FORM = PageForm(base_url=BASE_URL, home_path="")


def sandbox_rest(url: str, *, at_once: int | None = None) -> WordPressREST:
    """The pipeline's account at the sandbox CMS at ``url``. Close it."""
    return WordPressREST(
        url,
        user=PIPELINE.login,
        password=PIPELINE.app_password,
        content_type="pages",
        deadline_s=DEADLINE_S,
        clock=clock,
        at_once=at_once,
    )


def sandbox_wordpress(url: str, *, at_once: int | None = None) -> WordPressCMS:
    """The WordPress adapter for the sandbox CMS at ``url``. Close it."""
    rest = sandbox_rest(url, at_once=at_once)
    return WordPressCMS(rest, FORM, content_type="pages", clock=clock)


def want(runtime: SiteRuntime, rows: Sequence[Row]) -> list[Document]:
    """Ask for a page of each row; what publishing sends for each of them, all with one text."""
    submit(runtime, rows, requested_by="test")
    with runtime.ledger.begin() as connection:
        found = connection.execute(
            select(pages.c.page_id, pages.c.path)
            .where(pages.c.site == runtime.site.site)
            .order_by(pages.c.path)
        ).all()
    first = render_document(
        ARTICLE,
        page_id=found[0].page_id,
        revision=1,
        site_title=runtime.site.title,
        language=runtime.site.language,
        path=found[0].path,
        url=runtime.site.url_of(found[0].path),
    )
    return [_of_page(first, row.page_id, row.path) for row in found]


def _of_page(document: Document, page_id: str, path: str) -> Document:
    marker = Marker(page_id=page_id, revision=1, content_hash=document.marker.content_hash)
    return replace(document, marker=marker, path=path, url=BASE_URL + path)


def put_into_cms(folder: Path, documents: Sequence[Document]) -> None:
    """Let the CMS that is started in ``folder`` hold ``documents``, published one by one."""
    with closing(Store.in_folder(folder)) as store:
        site = Site(CMSSettings(), store)
        for number, document in enumerate(documents):
            ago_s = APART_S * (len(documents) - number)
            site.set_settings(CMSSettings(clock_offset_s=-ago_s))
            slug = document.path.strip("/")
            body = {"status": "publish", "slug": slug, **FORM.written(document)}
            row = changed(
                store,
                None,
                checked_fields(body),
                author=PIPELINE.id,
                now_gmt=site.now_gmt,
                unfiltered=True,
            )
            site.stored(row, by=PIPELINE.id, cause="create")


def held_by_cms(rest: WordPressREST) -> dict[str, RemotePage]:
    """Page id → our page, as the CMS shows it."""
    found: dict[str, RemotePage] = {}
    number, more = 1, True
    while more:
        listed = rest.slice(number, fields=FORM.page_fields, doing="reading all pages")
        for page in map(FORM.page, listed.pages):
            assert page.marker is not None
            found[page.marker.page_id] = page
        number, more = number + 1, listed.more
    return found


def draft_all(runtime: SiteRuntime) -> None:
    """Bring every page job of the site to ``ready_to_publish``, each with a draft."""
    site = runtime.site.site
    with runtime.ledger.begin() as connection:
        for source, to in pairwise(TO_A_DRAFT):
            if to is S.GENERATED:
                _store_drafts(connection, site)
            _move_all(connection, site, source, to)


def prove_all(
    runtime: SiteRuntime, documents: Sequence[Document], held: Mapping[str, RemotePage]
) -> None:
    """Bring every page job of the site to ``published``, proved by what the CMS holds."""
    draft_all(runtime)
    site = runtime.site.site
    with runtime.ledger.begin() as connection:
        _move_all(connection, site, S.READY_TO_PUBLISH, S.PUBLISHING)
        _prove(connection, site, documents, held)
        _move_all(connection, site, S.PUBLISHING, S.PUBLISHED)


def _prove(
    connection: Connection,
    site: str,
    documents: Sequence[Document],
    held: Mapping[str, RemotePage],
) -> None:
    any_id = select(page_jobs.c.page_job_id).where(page_jobs.c.site == site).limit(1)
    job = jobs.load(connection, connection.execute(any_id).scalar_one())
    for document in documents:
        page_id = document.marker.page_id  # all that is asked of the job, and loading takes longer
        publications.record_proved(
            connection, replace(job, page_id=page_id), document, held[page_id]
        )


def _store_drafts(connection: Connection, site: str) -> None:
    connection.execute(update(pages).where(pages.c.site == site).values(last_revision=1))
    connection.execute(update(page_jobs).where(page_jobs.c.site == site).values(revision=1))
    stored = select(
        page_jobs.c.page_id,
        literal(1),
        page_jobs.c.page_job_id,
        literal("attempt"),
        literal(ARTICLE.model_dump(mode="json"), draft_revisions.c.article.type),
        literal("hash"),
    ).where(page_jobs.c.site == site)
    names = ["page_id", "revision", "page_job_id", "attempt_id", "article", "output_hash"]
    connection.execute(insert(draft_revisions).from_select(names, stored))


def _move_all(connection: Connection, site: str, source: PageJobState, to: PageJobState) -> None:
    moved = (
        update(page_jobs)
        .where(page_jobs.c.site == site, page_jobs.c.state == source)
        .values(
            state=to,
            sequence=page_jobs.c.sequence + 1,
            finished_at=func.clock_timestamp() if to in FINAL else None,
            updated_at=func.clock_timestamp(),
        )
        .returning(page_jobs.c.page_job_id, page_jobs.c.sequence)
        .cte("moved")
    )
    logged = select(
        moved.c.page_job_id,
        moved.c.sequence,
        literal(source.value),
        literal(to.value),
        literal(MOVES[source, to]),
        literal("test"),
    )
    names = ["page_job_id", "sequence", "from_state", "to_state", "why", "worker"]
    connection.execute(insert(transitions).from_select(names, logged))
