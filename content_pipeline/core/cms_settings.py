"""Where a site's pages go, as its owners declare it: one model per kind of CMS, told by ``kind``.

What belongs here: the settings of each CMS and the union of them all. Which adapter a kind means is
``site_cms``'s to know. Credentials never stand here, only the names of variables that hold them.
"""

from typing import Annotated, Any, Literal, get_args
from urllib.parse import urlsplit

from pydantic import Discriminator, Field, Tag, field_validator

from content_pipeline.core.settings import Settings, VariableName

DEFAULT_KIND = "folder"

CapabilityName = Literal[
    "client_id", "compare_and_swap", "drafts", "marker_look_up", "trash", "inventory"
]
"""A field of ``CMSCapabilities``."""


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


class GhostCMSSettings(Settings):
    """A Ghost, reached by its Admin API with the key of a custom integration."""

    kind: Literal["ghost"]
    url: Annotated[
        str | None,
        Field(description="where Ghost is reached, e.g. https://www.example.com/blog"),
    ] = None
    url_env: Annotated[
        VariableName, Field(description="variable with that address, read when `url` is not given")
    ] = "GHOST_URL"
    key_env: Annotated[
        VariableName, Field(description="variable with the integration's Admin API key")
    ] = "GHOST_ADMIN_API_KEY"
    content_type: Annotated[
        Literal["pages", "posts"], Field(description="what an article becomes")
    ] = "pages"
    below: Annotated[
        str,
        Field(
            pattern=r"^/([a-z0-9_-]+/)*$",
            description="where slugs stand: the path of the posts' collection in routes.yaml",
        ),
    ] = "/"
    json_ld: Annotated[
        bool, Field(description="put JSON-LD into the page's head, beside the theme's own")
    ] = False
    deadline_s: Annotated[
        float, Field(gt=0, le=600, description="wall clock of one request, in seconds")
    ] = 30

    @field_validator("url")
    @classmethod
    def _absolute(cls, value: str | None) -> str | None:
        return None if value is None else checked_url(value)


class WebhookCMSSettings(Settings):
    """An endpoint of the site's own, by the contract in docs/webhook-contract.md."""

    kind: Literal["webhook"]
    url: Annotated[
        str | None,
        Field(description="the endpoint, e.g. https://www.example.com/content"),
    ] = None
    url_env: Annotated[
        VariableName, Field(description="variable with that address, read when `url` is not given")
    ] = "CONTENT_WEBHOOK_URL"
    key_env: Annotated[
        VariableName, Field(description="variable with the signing key that both sides hold")
    ] = "CONTENT_WEBHOOK_SIGNING_KEY"
    capabilities: Annotated[
        frozenset[CapabilityName] | None,
        Field(description="what the endpoint can; without it, it is asked"),
    ] = None
    deadline_s: Annotated[
        float, Field(gt=0, le=600, description="wall clock of one request, in seconds")
    ] = 30

    @field_validator("url")
    @classmethod
    def _absolute(cls, value: str | None) -> str | None:
        return None if value is None else checked_url(value)


def checked_url(value: str) -> str:
    """``value`` without trailing slashes; ValueError unless it is an http(s) URL and no more."""
    parts = urlsplit(value)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ValueError("give an absolute http(s) URL, e.g. https://www.example.com")
    if "@" in parts.netloc or "?" in value or "#" in value:
        raise ValueError("the URL must hold no credentials, query or fragment")
    if not (value.isascii() and value.isprintable()) or " " in value or parts.port == 0:
        raise ValueError("write the URL as it is sent: in percent-encoded ASCII, port 1 to 65535")
    return value.rstrip("/")


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
    | Annotated[WebhookCMSSettings, Tag("webhook")]
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
