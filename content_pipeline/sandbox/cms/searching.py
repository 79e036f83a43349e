"""The words of a search: what WordPress makes of the text a person types.

What belongs here: splitting the text. Every term must occur somewhere in title, excerpt or content,
comments of the markup included; a term that starts with a hyphen must not.
"""

import re

_TERM = re.compile(r'"([^"]*)"|(\S+)')
MOST_TERMS = 9
"""A search of more words is taken as one phrase."""


def search_terms(text: str) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The terms that must and those that must not occur, in lower case."""
    found = [(phrase or word).lower() for phrase, word in _TERM.findall(text)]
    if len(found) > MOST_TERMS:
        found = [text.strip().lower()]
    unwanted = tuple(term[1:] for term in found if term.startswith("-") and len(term) > 1)
    wanted = tuple(term for term in found if term and not term.startswith("-"))
    return wanted, unwanted
