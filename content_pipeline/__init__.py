"""A Dagster asset pipeline for AI-generated content that never pays or publishes twice."""

from importlib import import_module

__version__ = "0.1.0"

_COMPONENT = "ContentSite"


def __getattr__(name: str) -> type:
    """``content_pipeline.ContentSite``, the type of a site file, for Dagster and ``dg``.

    Imported when asked for: the command line must not pay the 1.5 s that importing Dagster takes.
    """
    if name != _COMPONENT:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    component: type = import_module("content_pipeline.components.content_site").ContentSite
    return component


def __dir__() -> list[str]:
    """What ``dg list components`` looks through."""
    return [*globals(), _COMPONENT]
