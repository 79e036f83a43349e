"""When Python looks for garbage: not while code is loaded, and not among what was loaded.

What belongs here: the two spans of a run's process in which looking is dear and finds nothing.
"""

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def not_sought() -> Iterator[None]:
    """Look for none until the block ends: for loading code, all of which stays.

    Of the 1.5 s CPU that it takes to load a site's definitions, looking took 0.4 s, and 0.1 s of
    the 0.5 s of the OpenAI client.
    """
    was_sought = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_sought:
            gc.enable()


@contextmanager
def sought_among_new() -> Iterator[None]:
    """Look only among what comes about in the block.

    Half a million objects of code are there before a run begins its pages, and every look at all of
    them took so long that a run of 100 pages used 15 % more CPU.
    """
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()
