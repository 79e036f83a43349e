"""What all settings are made of: frozen models that know every key, and names of variables.

What belongs here: the pieces that several modules of settings share. A setting itself stands in
``site``, ``cms_settings`` or the module of its subject.
"""

import re
from typing import Annotated

from pydantic import AfterValidator, BaseModel, ConfigDict

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


class Settings(BaseModel):
    """One section of a site's file: an unknown key is refused, and nothing changes once read."""

    model_config = ConfigDict(extra="forbid", frozen=True)
