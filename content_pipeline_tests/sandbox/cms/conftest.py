"""The sandbox CMS as a site; and a real WordPress beside it where there is one."""

import json
import time
from pathlib import Path

import pytest

from content_pipeline.config import environment
from content_pipeline.sandbox.cms.client import CMSClient
from content_pipeline_tests.sandbox.cms.wordpress import WordPress, real_site, sandbox_site

REAL = "WORDPRESS_SITE"
"""Path of a JSON file: ``url``, and ``users`` by login with ``role`` and ``app_password``."""


@pytest.fixture
def site(sandbox_cms: CMSClient) -> WordPress:
    return sandbox_site(sandbox_cms)


@pytest.fixture(params=["sandbox", "real"] if environment().get(REAL) else ["sandbox"])
def wordpress(request: pytest.FixtureRequest) -> WordPress:
    """The sandbox, and a real WordPress where there is one: both must behave alike."""
    if request.param == "sandbox":
        return sandbox_site(request.getfixturevalue("sandbox_cms"))
    return real_site(json.loads(Path(environment()[REAL]).read_text()))


@pytest.fixture
def name(request: pytest.FixtureRequest) -> str:
    """A slug that no other test uses, nor an earlier run on the same site."""
    words = request.node.originalname.removeprefix("test_").replace("_", "-")[:40].strip("-")
    return f"{words}-{time.time_ns() % 10**12:012d}x"
