"""Where a site's pages go, as its owners declare it: one model per kind of CMS, told by ``kind``.

What belongs here: the settings of each CMS (those of services that are asked in JSON alone stand in
``service_settings``) and the union of them all. Which adapter a kind means is
``site_cms``'s to know. Credentials never stand here, only the names of variables that hold them.
"""

from typing import Annotated, Any, Literal, get_args

from pydantic import Discriminator, Field, Tag, field_validator

from content_pipeline.core.service_settings import (
    DirectusCMSSettings,
    GhostCMSSettings,
    WebhookCMSSettings,
)
from content_pipeline.core.settings import Settings, VariableName, checked_url

DEFAULT_KIND = "folder"


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
