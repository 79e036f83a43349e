"""Values for tests of the core: a small site's settings, one of its rows, and an article."""

import copy
from typing import Any

from content_pipeline.core.article import Article, Section
from content_pipeline.core.site import SiteSettings

DOCUMENT: dict[str, Any] = {
    "site": "towns",
    "title": "Towns",
    "base_url": "https://towns.example",
    "topics": {"table": "topics.csv", "id": "code", "name": "name"},
    "article": {
        "facts": {"name": "Name", "country": "Country", "river": "River"},
        "must_state": ["name", "country"],
    },
    "generation": {"provider": "sandbox", "model": "gpt-5-mini"},
    "cms": {"folder": "public/towns"},
}

ROW = {"code": "ber", "name": "Berlin", "country": "Germany", "river": "Spree", "note": "unused"}


def site_document(**changes: Any) -> dict[str, Any]:
    """The settings as a document; a change is named by its place: ``topics__path="/{name}/"``."""
    document = copy.deepcopy(DOCUMENT)
    for place, value in changes.items():
        *sections, key = place.split("__")
        section = document
        for name in sections:
            section = section.setdefault(name, {})
        section[key] = value
    return document


def site_settings(**changes: Any) -> SiteSettings:
    return SiteSettings.model_validate(site_document(**changes))


def article(**changes: Any) -> Article:
    """An article that breaks no rule of ``ArticleRules(min_words=1)``."""
    fields: dict[str, Any] = {
        "title": "Berlin on the Spree",
        "meta_description": "Berlin is the capital of Germany and lies on the river Spree.",
        "introduction": "Berlin is the capital of Germany.",
        "sections": (("Rivers", "The Spree flows through it."), ("People", "Many live there.")),
    }
    fields |= changes
    sections = [
        Section(heading=heading, body_markdown=body) for heading, body in fields.pop("sections")
    ]
    return Article(sections=sections, **fields)
