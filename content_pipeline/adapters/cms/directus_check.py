"""The preflight of a Directus collection: what keeps us from publishing, and what to know.

What belongs here: questions that change nothing, and what their answers mean in words.
"""

from collections.abc import Mapping
from typing import Any

from content_pipeline.adapters.cms.directus_api import DirectusAPI
from content_pipeline.adapters.cms.directus_items import ItemForm
from content_pipeline.adapters.cms.json_service import Json
from content_pipeline.core.cms import CMSCheck
from content_pipeline.core.errors import CallFailed

_KEY_TYPES = ("uuid", "string")


def check_collection(api: DirectusAPI, form: ItemForm) -> CMSCheck:
    """What was found; never raises."""
    identity, problems, notes = "", [], []
    try:
        identity = f"{_name(api.me())} of {api.json.name}"
        api.slice(1, sort=form.names.id, doing="asking whether its items can be read")
        problems += _missing_rights(api)
        about_fields = _about_fields(api, form)
        problems += about_fields if about_fields is not None else []
        if about_fields is None:
            notes.append(
                f"the account may not see how the fields are made; {form.names.id} must be a key "
                f"that is chosen by who writes (uuid), {form.names.path} and {form.names.key} "
                "must be unique"
            )
    except CallFailed as failed:
        problems.append(failed.failure.message)
    if form.names.updated is None:
        notes.append("no field tells when an item was changed: only whole sweeps find changes")
    return CMSCheck(identity=identity, problems=tuple(problems), notes=tuple(notes))


def _missing_rights(api: DirectusAPI) -> list[str]:
    rights = api.rights()
    verbs = ("create", "read", "update", "delete")
    lacking = [verb for verb in verbs if _access(rights, verb) != "full"]
    if not lacking:
        return []
    return [
        f"the account may not {', '.join(lacking)} every item of {api.collection}; give its policy "
        "those rights without a rule, or pages of ours may read as absent"
    ]


def _access(rights: Json, verb: str) -> object:
    right = rights.get(verb)
    return right.get("access") if isinstance(right, Mapping) else None


def _about_fields(api: DirectusAPI, form: ItemForm) -> list[str] | None:
    """What is wrong with the fields; None when they cannot be seen."""
    try:
        schema = {str(field.get("field")): field for field in api.schema()}
    except CallFailed:
        return None
    names, problems = form.names, []
    if str(schema.get(names.id, {}).get("type")) not in _KEY_TYPES:
        problems.append(
            f"the primary key {names.id} of {api.collection} is not of type uuid or string, so we "
            "cannot choose it; make a collection with a manually entered or generated uuid"
        )
    problems += [
        f"the field {name} of {api.collection} is not unique, so two items could claim one page; "
        "make it unique"
        for name in (names.path, names.key)
        if not _is_unique(schema.get(name, {}))
    ]
    return problems


def _is_unique(field: Mapping[str, Any]) -> bool:
    made = field.get("schema")
    return isinstance(made, Mapping) and made.get("is_unique") is True


def _name(me: Json) -> str:
    for name in ("email", "first_name"):
        value = me.get(name)
        if isinstance(value, str) and value:
            return value
    return "an account"
