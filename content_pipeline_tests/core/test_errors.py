import inspect
import re

import pytest

from content_pipeline.core import errors
from content_pipeline.core.errors import CallFailed, ContentPipelineError
from content_pipeline.core.failures import Failure, FailureClass

CLASSES = [
    found
    for _, found in inspect.getmembers(errors, inspect.isclass)
    if found.__module__ == errors.__name__
]


def drawn_tree() -> dict[str, str]:
    """Each class of the docstring's drawing with the class it hangs on."""
    parents: list[tuple[int, str]] = []
    found = {}
    for line in (errors.__doc__ or "").splitlines():
        match = re.match(r"    ([│├└─ ]*)([A-Z]\w+)(  |$)", line)
        if match is None:
            continue
        depth = len(match[1])
        parents = [(at, name) for at, name in parents if at < depth]
        found[match[2]] = parents[-1][1] if parents else "Exception"
        parents.append((depth, match[2]))
    return found


def test_the_drawn_tree_is_the_real_one() -> None:
    assert drawn_tree() == {found.__name__: found.__bases__[0].__name__ for found in CLASSES}


@pytest.mark.parametrize("error", CLASSES, ids=lambda found: found.__name__)
def test_every_error_says_what_it_means(error: type[ContentPipelineError]) -> None:
    assert issubclass(error, ContentPipelineError)
    assert error.__doc__
    assert len(error.__bases__) == 1


def test_a_failed_call_carries_its_failure_and_shows_its_message() -> None:
    failure = Failure(failure_class=FailureClass.THROTTLED, message="HTTP 429", retry_after_s=3)
    error = CallFailed(failure)
    assert error.failure is failure
    assert str(error) == "HTTP 429"
