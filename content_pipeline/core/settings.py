"""What all settings are made of: frozen models that know every key, and names of variables.

What belongs here: the pieces that several modules of settings share. A setting itself stands in
``site``, ``cms_settings`` or the module of its subject.
"""

import re
from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict

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
