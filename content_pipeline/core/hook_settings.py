"""Who is told after pages of a site changed, as its owners declare it: one model per kind of hook.

What belongs here: the settings of each hook and the union of them all. Which adapter a kind means
is ``site_hooks``'s to know. Credentials and secret addresses never stand here, only the names of
variables that hold them.
"""

import re
from typing import Annotated, Any, Literal, Self, get_args

from pydantic import AfterValidator, Discriminator, Field, Tag, field_validator, model_validator

from content_pipeline.core.settings import Settings, VariableName, checked_url

TAKEN_NAMES = frozenset({"topics", "draft", "page", "artifact"})
"""Of a site's other assets."""

ANSWER_SLACK_S = 5.0
"""Beyond the deadline of a call, for recording what came of it."""

LISTING_OF_BUCKETS_S = 600.0
"""A site in buckets has so many pages that a list of all of them is not written after every run of
one bucket: with 1,000,000 pages in 10,000 buckets that would be 10,000 lists of 1,000,000."""

HookName = Annotated[
    str,
    Field(
        pattern=r"^[a-z][a-z0-9_]{0,39}$",
        description="what it is called in the ledger and in Dagster; tells two of a kind apart",
    ),
]
Address = Annotated[str, AfterValidator(checked_url)]
DebounceS = Annotated[
    float,
    Field(
        ge=0,
        le=86_400,
        description="told so long after the first change, of all changes until then at once",
    ),
]
ListingDebounceS = Annotated[
    DebounceS | None,
    Field(
        description=f"as that of other hooks; 0 by default, {LISTING_OF_BUCKETS_S:g} with buckets"
    ),
]
DeadlineS = Annotated[float, Field(gt=0, le=600, description="wall clock of one call, in seconds")]
Existing = Annotated[
    bool, Field(description="also tell of pages that were public before the site had this hook")
]
Folder = Annotated[
    str | None, Field(description="relative to the project; else where the pages stand")
]
_EMAIL = re.compile(r"[^@\s<>,;]+@[^@\s<>,;]+")


class SitemapSettings(Settings):
    """A sitemap of all pages, with when the text of each last changed."""

    kind: Literal["sitemap"]
    folder: Folder = None
    debounce_s: ListingDebounceS = None

    @property
    def name(self) -> str:
        """What it is called in the ledger and in Dagster."""
        return self.kind


class IndexPageSettings(Settings):
    """A front page with a link to every page."""

    kind: Literal["index_page"]
    folder: Folder = None
    debounce_s: ListingDebounceS = None

    @property
    def name(self) -> str:
        """What it is called in the ledger and in Dagster."""
        return self.kind


class RedirectsSettings(Settings):
    """A file ``_redirects`` that leads visitors of retired topics elsewhere."""

    kind: Literal["redirects"]
    folder: Folder = None
    debounce_s: ListingDebounceS = None

    @property
    def name(self) -> str:
        """What it is called in the ledger and in Dagster."""
        return self.kind


class IndexNowSettings(Settings):
    """Search engines that take IndexNow."""

    kind: Literal["indexnow"]
    name: HookName = "indexnow"
    endpoint: Annotated[Address, Field(description="where it is told")] = (
        "https://api.indexnow.org/indexnow"
    )
    key_env: Annotated[
        VariableName, Field(description="variable with the key that the site shows in a file")
    ] = "INDEXNOW_KEY"
    key_location: Annotated[
        Address | None, Field(description="URL of that file; else /KEY.txt on the site's host")
    ] = None
    debounce_s: DebounceS = 60
    deadline_s: DeadlineS = 30
    tell_existing: Existing = False


class CloudflarePurgeSettings(Settings):
    """The cache of a zone at Cloudflare."""

    kind: Literal["cloudflare_purge"]
    name: HookName = "cloudflare_purge"
    zone: Annotated[str, Field(pattern=r"^[A-Za-z0-9_-]{1,64}$", description="the zone's id")]
    token_env: Annotated[
        VariableName, Field(description="variable with an API token that may purge the zone")
    ] = "CLOUDFLARE_API_TOKEN"  # noqa: S105 - a name
    api: Address = "https://api.cloudflare.com/client/v4"
    batch: Annotated[
        int, Field(ge=1, le=500, description="URLs in one call; 500 with an enterprise plan")
    ] = 100
    debounce_s: DebounceS = 5
    deadline_s: DeadlineS = 30


class CachePurgeSettings(Settings):
    """Any cache that takes a list of URLs by POST."""

    kind: Literal["cache_purge"]
    name: HookName = "cache_purge"
    url_env: Annotated[VariableName, Field(description="variable with the address")] = (
        "CACHE_PURGE_URL"
    )
    token_env: Annotated[
        VariableName | None, Field(description="variable with a token, sent as Bearer")
    ] = None
    urls_in: Annotated[
        str | None,
        Field(min_length=1, description="key of the list of URLs; null: the list is all that is"),
    ] = "urls"
    batch: Annotated[int, Field(ge=1, le=10_000)] = 100
    debounce_s: DebounceS = 5
    deadline_s: DeadlineS = 30


class DeployHookSettings(Settings):
    """The build hook of a host (Netlify, Vercel, Cloudflare, …): every call is a build."""

    kind: Literal["deploy_hook"]
    name: HookName = "deploy_hook"
    url_env: Annotated[
        VariableName, Field(description="variable with its address, which is a secret")
    ] = "DEPLOY_HOOK_URL"
    debounce_s: DebounceS = 60
    deadline_s: DeadlineS = 30


class WebhookSettings(Settings):
    """A receiver of signed calls, by Standard Webhooks."""

    kind: Literal["webhook"]
    name: HookName = "webhook"
    url_env: Annotated[VariableName, Field(description="variable with the address")] = "WEBHOOK_URL"
    secret_env: Annotated[
        VariableName, Field(description="variable with the signing secret, whsec_…")
    ] = "WEBHOOK_SECRET"  # noqa: S105 - a name
    batch: Annotated[int, Field(ge=1, le=1000, description="pages in one call")] = 100
    debounce_s: DebounceS = 5
    deadline_s: DeadlineS = 30
    tell_existing: Existing = False


class MailSettings(Settings):
    """A mail about what was published and taken off the site."""

    kind: Literal["mail"]
    name: HookName = "mail"
    to: Annotated[tuple[str, ...], Field(min_length=1, max_length=50)]
    sender: Annotated[str, Field(description="address that it comes from")]
    host: Annotated[str, Field(min_length=1, max_length=253, description="the SMTP server")]
    port: Annotated[int, Field(ge=1, le=65_535)] = 587
    encryption: Literal["starttls", "tls", "none"] = "starttls"
    user_env: Annotated[VariableName | None, Field(description="variable with the user")] = None
    password_env: Annotated[
        VariableName | None, Field(description="variable with the user's password")
    ] = None
    debounce_s: DebounceS = 60
    deadline_s: DeadlineS = 30

    @field_validator("to", "sender")
    @classmethod
    def _addresses(cls, value: Any) -> Any:
        for address in (value,) if isinstance(value, str) else value:
            if not (_EMAIL.fullmatch(address) and address.isascii()):
                raise ValueError("give plain e-mail addresses, e.g. desk@example.com")
        return value

    @model_validator(mode="after")
    def _whole_login(self) -> Self:
        if (self.user_env is None) != (self.password_env is None):
            raise ValueError("`user_env` and `password_env` go together")
        if self.user_env is not None and self.encryption == "none":
            raise ValueError("a password is only sent encrypted; set `encryption` to starttls")
        return self


FileHookSettings = SitemapSettings | IndexPageSettings | RedirectsSettings

CallHookSettings = (
    IndexNowSettings
    | CloudflarePurgeSettings
    | CachePurgeSettings
    | DeployHookSettings
    | WebhookSettings
    | MailSettings
)

AnyHookSettings = (
    Annotated[SitemapSettings, Tag("sitemap")]
    | Annotated[IndexPageSettings, Tag("index_page")]
    | Annotated[RedirectsSettings, Tag("redirects")]
    | Annotated[IndexNowSettings, Tag("indexnow")]
    | Annotated[CloudflarePurgeSettings, Tag("cloudflare_purge")]
    | Annotated[CachePurgeSettings, Tag("cache_purge")]
    | Annotated[DeployHookSettings, Tag("deploy_hook")]
    | Annotated[WebhookSettings, Tag("webhook")]
    | Annotated[MailSettings, Tag("mail")]
)

HOOK_MODELS: dict[str, type[Settings]] = {
    get_args(tagged)[1].tag: get_args(tagged)[0] for tagged in get_args(AnyHookSettings)
}
"""The model of each kind."""


def _kind(value: Any) -> str | None:
    kind = value.get("kind") if isinstance(value, dict) else getattr(value, "kind", None)
    return kind if isinstance(kind, str) else None


HookSettings = Annotated[
    AnyHookSettings,
    Discriminator(
        _kind,
        custom_error_type="unknown_hook",
        custom_error_message=f"`kind` must be one of: {', '.join(HOOK_MODELS)}",
    ),
]


def hooks_of(
    announce: tuple[AnyHookSettings, ...] | None, *, has_folder: bool, has_redirects: bool
) -> tuple[AnyHookSettings, ...]:
    """Who is told: those of ``announce``, or without it the files beside pages that are files.

    ``has_folder``: the site's pages are files; ``has_redirects``: pages of retired topics lead
    elsewhere. Raises ValueError for hooks that do not fit together or to their site.
    """
    if announce is not None:
        why = _why_unfit(announce, has_folder=has_folder, has_redirects=has_redirects)
        if why is not None:
            raise ValueError(why)
        return announce
    if not has_folder:
        return ()
    files = (SitemapSettings(kind="sitemap"), IndexPageSettings(kind="index_page"))
    return (*files, RedirectsSettings(kind="redirects")) if has_redirects else files


def _why_unfit(
    hooks: tuple[AnyHookSettings, ...], *, has_folder: bool, has_redirects: bool
) -> str | None:
    names = [hook.name for hook in hooks]
    for hook in hooks:
        if hook.name in TAKEN_NAMES:
            return f"announce: {hook.name!r} is the name of another asset; choose another `name`"
        if names.count(hook.name) > 1:
            return f"announce: two are called {hook.name!r}; give one of them another `name`"
        if isinstance(hook, FileHookSettings) and hook.folder is None and not has_folder:
            return (
                f"announce: the pages are not written to a folder, so {hook.kind} needs a `folder` "
                "that is served at the root of the site"
            )
        if isinstance(hook, RedirectsSettings) and not has_redirects:
            return "announce: redirects go with `topics.when_gone: redirect` and `redirect_to`"
    return None


def longest_call_s(hooks: tuple[AnyHookSettings, ...]) -> float:
    """How long one call may take, and be recorded, at most; 0 without calls."""
    calls = (hook.deadline_s for hook in hooks if isinstance(hook, CallHookSettings))
    return max((deadline_s + ANSWER_SLACK_S for deadline_s in calls), default=0.0)
