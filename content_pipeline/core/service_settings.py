"""Settings of content management systems that are services asked in JSON: one model per kind.

What belongs here: Ghost, Directus and the webhook. The union of all kinds stands in
``cms_settings``. Credentials never stand here, only the names of variables that hold them.
"""

from typing import Annotated, Literal

from pydantic import Field

from content_pipeline.core.settings import DeadlineSeconds, ServiceURL, Settings, VariableName

CapabilityName = Literal[
    "client_id", "compare_and_swap", "drafts", "marker_look_up", "trash", "inventory"
]
"""A field of ``CMSCapabilities``."""

FieldName = Annotated[str, Field(pattern=r"^[A-Za-z_][A-Za-z0-9_]{0,63}$")]


class GhostCMSSettings(Settings):
    """A Ghost, reached by its Admin API with the key of a custom integration."""

    kind: Literal["ghost"]
    url: Annotated[
        ServiceURL | None,
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
    deadline_s: DeadlineSeconds = 30


class DirectusFieldSettings(Settings):
    """The fields of the collection that hold a page; null for one that it does not have."""

    id: Annotated[FieldName, Field(description="primary key of type uuid or string")] = "id"
    path: Annotated[FieldName, Field(description="unique; where the page stands")] = "path"
    title: FieldName = "title"
    meta_description: FieldName = "meta_description"
    body: Annotated[FieldName, Field(description="text with HTML")] = "body"
    key: Annotated[FieldName, Field(description="unique; whose page it is")] = "cp_key"
    revision: Annotated[FieldName, Field(description="integer")] = "cp_rev"
    content_hash: FieldName = "cp_hash"
    status: Annotated[FieldName | None, Field(description="without it every item is public")] = (
        "status"
    )
    updated: Annotated[
        FieldName | None, Field(description="time of the last change, kept by Directus")
    ] = "date_updated"
    json_ld: FieldName | None = None


class DirectusCMSSettings(Settings):
    """A collection of a Directus, reached by its REST API with a static token."""

    kind: Literal["directus"]
    url: Annotated[
        ServiceURL | None, Field(description="where Directus is, e.g. https://cms.example.com")
    ] = None
    url_env: Annotated[
        VariableName, Field(description="variable with that address, read when `url` is not given")
    ] = "DIRECTUS_URL"
    token_env: Annotated[
        VariableName, Field(description="variable with the static token of a user")
    ] = "DIRECTUS_TOKEN"  # noqa: S105 - a name
    collection: FieldName = "pages"
    fields: DirectusFieldSettings = DirectusFieldSettings()
    published: Annotated[str, Field(min_length=1, description="status of public items")] = (
        "published"
    )
    draft: Annotated[str, Field(min_length=1, description="status of drafts")] = "draft"
    archived: Annotated[
        str | None, Field(min_length=1, description="status of removed items; null deletes them")
    ] = "archived"
    slashes: Annotated[
        bool, Field(description="hold /a/b/ as it is; false holds a/b, for a field of slugs")
    ] = True
    deadline_s: DeadlineSeconds = 30


class WebhookCMSSettings(Settings):
    """An endpoint of the site's own, by the contract in docs/webhook-contract.md."""

    kind: Literal["webhook"]
    url: Annotated[
        ServiceURL | None, Field(description="the endpoint, e.g. https://www.example.com/content")
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
    deadline_s: DeadlineSeconds = 30
