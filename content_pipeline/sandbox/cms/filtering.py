"""What is left of HTML from somebody who may not write just anything.

What belongs here: the measured outcome of WordPress's filter, not its code: comments stay, tags of
scripts, frames, forms, styles and drawings go while their text stays visible, handlers go.
"""

import nh3

_STRICTER = frozenset({"script", "style", "iframe", "form", "input", "svg", "object", "embed"})
_TAGS = frozenset(nh3.ALLOWED_TAGS - _STRICTER) | {"section", "button", "font"}


def filtered_html(text: str) -> str:
    """``text`` without what only trusted roles may write; a bare ``&`` becomes ``&amp;``."""
    return nh3.clean(
        text,
        tags=set(_TAGS),
        clean_content_tags=set(),
        generic_attribute_prefixes={"data-", "aria-"},
        attributes={**nh3.ALLOWED_ATTRIBUTES, "*": {"class", "id", "title", "lang", "dir"}},
        strip_comments=False,
        link_rel=None,
    )
