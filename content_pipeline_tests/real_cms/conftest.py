"""One real WordPress for all tests here; each begins with an empty site."""

import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from content_pipeline.adapters.cms.wordpress import WordPressCMS
from content_pipeline_tests.real_cms.presence import find_programs
from content_pipeline_tests.real_cms.wordpress_bench import WordPressBench, connect
from content_pipeline_tests.real_cms.wordpress_server import WordPressServer, serving

Connect = Callable[..., WordPressCMS]
RealBench = WordPressBench[WordPressServer]


@pytest.fixture(scope="session")
def running_wordpress() -> Iterator[WordPressServer]:
    programs = find_programs()
    # The path of a socket has at most 107 bytes, and pytest's own folders are long.
    folder = Path(tempfile.mkdtemp(prefix="cp-wp-"))
    try:
        with serving(programs, folder) as server:
            yield server
    finally:
        shutil.rmtree(folder)


@pytest.fixture
def wordpress(running_wordpress: WordPressServer) -> WordPressServer:
    running_wordpress.empty()
    return running_wordpress


@pytest.fixture
def connected(wordpress: WordPressServer) -> Iterator[Connect]:
    """Makes adapters for the site, closed after the test."""
    made: list[WordPressCMS] = []

    def make(**changes: Any) -> WordPressCMS:
        made.append(connect(wordpress, **changes))
        return made[-1]

    yield make
    for cms in made:
        cms.close()


@pytest.fixture
def bench(wordpress: WordPressServer, connected: Connect) -> RealBench:
    return WordPressBench(server=wordpress, cms=connected())


@pytest.fixture
def guarded_bench(wordpress: WordPressServer, connected: Connect) -> RealBench:
    wordpress.install_guard(wanted=True)
    return WordPressBench(server=wordpress, cms=connected())
