"""Documents for tests of anything that publishes."""

from content_pipeline.core.article import Article, Section
from content_pipeline.core.cms import Document
from content_pipeline.core.identity import page_id
from content_pipeline.core.rendering import render_document

SITE = "countries"
BASE_URL = "https://example.com"


def make_document(
    path: str = "/austria/",
    *,
    revision: int = 1,
    title: str = "Austria",
    meta_description: str = "Mountains, rivers and a capital on the Danube.",
    introduction: str = "Austria lies in Central Europe.",
    body: str = "Nine million people.",
    language: str = "en",
    site_title: str = "Countries",
    base_url: str = BASE_URL,
) -> Document:
    article = Article(
        title=title,
        meta_description=meta_description,
        introduction=introduction,
        sections=[Section(heading="People", body_markdown=f"Revision {revision}. {body}")],
    )
    return render_document(
        article,
        page_id=page_id(SITE, path),
        revision=revision,
        site_title=site_title,
        language=language,
        path=path,
        url=base_url + path,
    )
