"""Where a site's pages go, as its owners declare it: one model per kind of CMS, told by ``kind``.

What belongs here: the settings of each CMS (those of services that are asked in JSON alone stand in
``service_settings``) and the union of them all. Which adapter a kind means is
``site_cms``'s to know. Credentials never stand here, only the names of variables that hold them.
"""

import re
from typing import Annotated, Any, Literal, get_args
from urllib.parse import urlsplit

from pydantic import Discriminator, Field, Tag, field_validator

from content_pipeline.core.service_settings import (
    DirectusCMSSettings,
    GhostCMSSettings,
    WebhookCMSSettings,
)
from content_pipeline.core.settings import Settings, VariableName, checked_url

DEFAULT_KIND = "folder"

WORDPRESS_SLUG = re.compile(
    r"(?!(?:(?:page)?[0-9]+|feed|rdf|rss2?|atom|embed)\Z)[a-z0-9_]+(?:-[a-z0-9_]+)*"
)
"""What WordPress keeps as it is: the rest it rewrites without a word, or gives a suffix."""

WORDPRESS_CALLS = 6
"""Requests that one publish waits for, each for up to its deadline: two looks, the parent, the
draft, the publish, and reading back."""


class FolderCMSSettings(Settings):
    """A folder that a web server or a browser shows as a site."""

    kind: Literal["folder"] = "folder"
    folder: Annotated[str, Field(description="relative to the project")]

    @field_validator("folder")
    @classmethod
    def _own_folder(cls, value: str) -> str:
        if not value.strip(" ./") or "\x00" in value:
            raise ValueError("name a folder of the site's own, e.g. public/countries")
        return value


class WordPressCMSSettings(Settings):
    """A WordPress site, reached by its REST API with an application password."""

    kind: Literal["wordpress"]
    url: Annotated[
        str | None,
        Field(description="where WordPress is installed, e.g. https://www.example.com/blog"),
    ] = None
    url_env: Annotated[
        VariableName, Field(description="variable with that address, read when `url` is not given")
    ] = "WORDPRESS_URL"
    user_env: Annotated[VariableName, Field(description="variable with the user's login name")] = (
        "WORDPRESS_USER"
    )
    password_env: Annotated[
        VariableName, Field(description="variable with an application password of that user")
    ] = "WORDPRESS_APPLICATION_PASSWORD"  # noqa: S105 - a name
    content_type: Annotated[
        Literal["pages", "posts"], Field(description="what an article becomes")
    ] = "pages"
    meta_description: Annotated[
        str,
        Field(
            pattern=r"^[A-Za-z_][A-Za-z0-9_-]{0,99}$",
            description="where the meta description goes: `excerpt`, or a meta field that the site "
            "registers for REST, such as the one of its SEO plugin",
        ),
    ] = "excerpt"
    json_ld: Annotated[
        bool,
        Field(description="put JSON-LD into the content; the user needs unfiltered_html for it"),
    ] = False
    deadline_s: Annotated[
        float, Field(gt=0, le=600, description="wall clock of one request, in seconds")
    ] = 30

    @field_validator("url")
    @classmethod
    def _absolute(cls, value: str | None) -> str | None:
        return None if value is None else checked_url(value)


class SandboxCMSSettings(Settings):
    """An offline CMS of the site's own: it speaks WordPress's REST API, and needs no account."""

    kind: Literal["sandbox"]
    latency_median_s: Annotated[float, Field(ge=0, le=10)] = 0.03
    latency_sigma: Annotated[float, Field(ge=0, le=2)] = 0.35
    listing_lag_s: Annotated[
        float, Field(ge=0, le=60, description="by so much its lists and its search are behind")
    ] = 0
    companion: Annotated[
        bool,
        Field(description="with the companion plugin for unique keys and refused stale writes"),
    ] = False
    seed: int = 0
    deadline_s: Annotated[
        float, Field(gt=0, le=600, description="wall clock of one request, in seconds")
    ] = 30


def why_unfit_for_wordpress(
    *, sample_path: str, deadline_s: float, longest_hold_s: float, in_turn: int
) -> str | None:
    """Why WordPress cannot publish a site as its other settings say; None when it can.

    ``sample_path``: a path of its pages, with every column filled. ``deadline_s``: of one request.
    ``in_turn``: requests, of other pages and its own, that a page waits for before it has an
    answer.
    """
    if not all(map(WORDPRESS_SLUG.fullmatch, sample_path.strip("/").split("/"))):
        return (
            "WordPress keeps lower-case letters, digits, '_' and single '-' in an address and "
            "changes everything else; correct topics.path"
        )
    waits = WORDPRESS_CALLS * in_turn
    if deadline_s * waits >= longest_hold_s:
        return (
            f"a publish may wait {waits} times cms.deadline_s ({deadline_s:g} s), so "
            f"lane.longest_hold_s ({longest_hold_s:g} s) must be longer than that, or a second "
            "worker takes the page over meanwhile"
            + ("; or raise lane.cms_requests_at_once" if in_turn > 1 else "")
        )
    return None


RESERVED_FRONT_MATTER = frozenset(
    {"title", "description", "url", "slug", "date", "lastmod", "json_ld"}
    | {"cp_key", "cp_rev", "cp_hash"}
    # what keeps a page from visitors
    | {"draft", "publishdate", "expirydate", "headless", "build", "_build"}
)
"""Front matter that a publish writes, or takes off, on every page."""

_REMOTE = re.compile(r"(?!-)[!-~]+")
_BRANCH = re.compile(r"(?!.*(\.\.|//|/\.|\.lock(/|$)))[A-Za-z0-9][A-Za-z0-9._/-]*(?<![./])")
_FOLDER = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*(/[A-Za-z0-9_][A-Za-z0-9_.-]*)*")
_FRONT_MATTER_KEY = re.compile(r"[A-Za-z_][A-Za-z0-9_-]*")


class GitCMSSettings(Settings):
    """A static site in a git repository: pages are content files with YAML front matter."""

    kind: Literal["git"]
    remote: Annotated[
        str | None,
        Field(description="the repository's URL, or its folder relative to the project"),
    ] = None
    remote_env: Annotated[
        VariableName, Field(description="variable with that URL, read when `remote` is not given")
    ] = "CONTENT_REPOSITORY_URL"
    branch: Annotated[str, Field(description="the branch that is deployed")] = "main"
    content_folder: Annotated[str, Field(description="where its pages lie")] = "content"
    deployed_url: Annotated[
        str | None,
        Field(
            description="URL, or file relative to the project, with the id of the commit that "
            "visitors see; without it a committed page counts as published"
        ),
    ] = None
    front_matter: Annotated[
        dict[str, bool | int | str],
        Field(default_factory=dict, description="more keys of every page, e.g. layout"),
    ]
    author_name: Annotated[str, Field(pattern=r"^[^<>\r\n\x00]{1,100}$")] = "Content pipeline"
    author_email: Annotated[str, Field(pattern=r"^[^<>\s\x00]{1,200}$")] = (
        "content-pipeline@localhost"
    )
    username_env: Annotated[
        VariableName, Field(description="variable with the user for an https remote")
    ] = "CONTENT_REPOSITORY_USERNAME"
    password_env: Annotated[
        VariableName, Field(description="variable with its password or access token")
    ] = "CONTENT_REPOSITORY_PASSWORD"  # noqa: S105 - a name
    deadline_s: Annotated[
        float, Field(gt=0, le=3600, description="wall clock of one git command, in seconds")
    ] = 120

    @field_validator("remote")
    @classmethod
    def _without_credentials(cls, value: str | None) -> str | None:
        if value is None:
            return None
        parts = urlsplit(value) if "://" in value else None
        if not _REMOTE.fullmatch(value) or "::" in value:
            raise ValueError("name a repository as `git clone` takes it, without spaces")
        if parts is not None and parts.scheme != "ssh" and "@" in parts.netloc:
            raise ValueError("the URL must hold no credentials; see `username_env`")
        return value

    @field_validator("branch")
    @classmethod
    def _plain_branch(cls, value: str) -> str:
        if not _BRANCH.fullmatch(value):
            raise ValueError("name a branch, e.g. main")
        return value

    @field_validator("content_folder")
    @classmethod
    def _inside(cls, value: str) -> str:
        folder = value.strip("/")
        if not _FOLDER.fullmatch(folder):
            raise ValueError("name a folder inside the repository, e.g. content/countries")
        return folder

    @field_validator("front_matter")
    @classmethod
    def _not_ours(cls, value: dict[str, bool | int | str]) -> dict[str, bool | int | str]:
        for key in value:
            if not _FRONT_MATTER_KEY.fullmatch(key):
                raise ValueError("keys of front_matter are made of letters, digits, _ and -")
            if key.lower() in RESERVED_FRONT_MATTER:
                raise ValueError(f"every page has a {key!r} of its own, or must not have it")
        return value


def _kind(value: Any) -> str | None:
    """The tag of the model that ``value`` is for; what names no ``kind`` is a folder's."""
    if isinstance(value, dict):
        kind = value.get("kind", DEFAULT_KIND)
        return kind if isinstance(kind, str) else None
    return str(getattr(value, "kind", DEFAULT_KIND))


AnyCMSSettings = (
    Annotated[FolderCMSSettings, Tag("folder")]
    | Annotated[WordPressCMSSettings, Tag("wordpress")]
    | Annotated[GhostCMSSettings, Tag("ghost")]
    | Annotated[DirectusCMSSettings, Tag("directus")]
    | Annotated[WebhookCMSSettings, Tag("webhook")]
    | Annotated[GitCMSSettings, Tag("git")]
    | Annotated[SandboxCMSSettings, Tag("sandbox")]
)

CMS_MODELS: dict[str, type[Settings]] = {
    get_args(tagged)[1].tag: get_args(tagged)[0] for tagged in get_args(AnyCMSSettings)
}
"""The model of each kind."""

CMSSettings = Annotated[
    AnyCMSSettings,
    Discriminator(
        _kind,
        custom_error_type="unknown_cms",
        custom_error_message=f"`cms.kind` must be one of: {', '.join(CMS_MODELS)}",
    ),
]
