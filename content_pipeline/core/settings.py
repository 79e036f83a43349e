"""What all settings are made of: frozen models that know every key, and names of variables.

What belongs here: the pieces that several modules of settings share. A setting itself stands in
``site``, ``cms_settings`` or the module of its subject.
"""

import re
from typing import Annotated
from urllib.parse import urlsplit

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

from content_pipeline.core.failures import FailureClass
from content_pipeline.core.retries import TRIED_ONCE, RetryPolicy


class Settings(BaseModel):
    """One section of a site file: no key that is not known, and nothing changes it."""

    model_config = ConfigDict(extra="forbid", frozen=True)


_VARIABLE = re.compile(r"[A-Z_][A-Z0-9_]{0,99}")


def _variable_name(value: str | None) -> str | None:
    # Strict, and silent about the value: people paste the key itself here.
    if value is not None and not _VARIABLE.fullmatch(value):
        raise ValueError(
            "name an environment variable (capital letters, digits and _); what it holds never "
            "stands in this file"
        )
    return value


VariableName = Annotated[str, AfterValidator(_variable_name)]


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


ServiceURL = Annotated[str, AfterValidator(checked_url)]

DeadlineSeconds = Annotated[
    float, Field(gt=0, le=600, description="wall clock of one request, in seconds")
]


def _worth_another_try(
    value: dict[FailureClass, RetryPolicy],
) -> dict[FailureClass, RetryPolicy]:
    if FailureClass.BUDGET in value:
        raise ValueError(
            "budget has no policy: nothing was tried, and the page waits for a new day or a "
            "higher cap until lane.page_deadline_s"
        )
    for failure_class in sorted(value.keys() & TRIED_ONCE):
        if value[failure_class].attempts > 1:
            raise ValueError(
                f"{failure_class} is tried once: the same again would end the same. To have "
                "drafts that break a rule written anew, use article.regenerations"
            )
    return value


Retries = Annotated[dict[FailureClass, RetryPolicy], AfterValidator(_worth_another_try)]
