"""The attributes of a site file as Dagster and dg see them.

What belongs here: the schema. What is wrong with a file is said by ``site_files``, in the words of
the command line.
"""

from typing import Any, Self, cast

from pydantic import ModelWrapValidatorHandler, ValidationError, model_validator

from content_pipeline.core.site import SiteSettings


class SiteAttributes(SiteSettings):
    """The keys of ``attributes``, for ``dg`` and editors.

    Dagster reads the attributes before the component is asked for anything, and gives up the whole
    code location when they do not fit. So a mistake passes here: the component reads the file
    itself, and its error names file, line, key and the fix.
    """

    @model_validator(mode="wrap")
    @classmethod
    def _left_to_the_component(cls, value: Any, handler: ModelWrapValidatorHandler[Self]) -> Self:
        try:
            return handler(value)
        except ValidationError:
            unknown: dict[str, Any] = {}
            return cast("Self", cls.model_construct(**unknown))
