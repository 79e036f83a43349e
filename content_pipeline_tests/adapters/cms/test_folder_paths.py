import pytest

from content_pipeline.adapters.cms.folder_paths import (
    MAX_PATH_BYTES,
    MAX_SEGMENTS,
    page_file,
)
from content_pipeline.core.errors import CallFailed
from content_pipeline.core.failures import FailureClass


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("/austria/", "austria/index.html"),
        ("/countries/austria/", "countries/austria/index.html"),
        ("/länder/österreich/", "länder/österreich/index.html"),
        ("/国/日本/", "国/日本/index.html"),
        ("/a.b-c_d~e/", "a.b-c_d~e/index.html"),
        ("/sitemaps/", "sitemaps/index.html"),
        ("/blog/sitemap.xml/", "blog/sitemap.xml/index.html"),
        ("/" + "a" * 255 + "/", "a" * 255 + "/index.html"),
        ("/" + "a/" * MAX_SEGMENTS, "a/" * MAX_SEGMENTS + "index.html"),
    ],
)
def test_a_path_is_a_folder_with_an_index_file(path: str, name: str) -> None:
    assert page_file(path) == name


@pytest.mark.parametrize(
    ("path", "reason"),
    [
        ("", "must start with and end in a slash"),
        ("/", "name at least one folder"),
        ("austria/", "must start"),
        ("/austria", "must start"),
        ("//", "must start"),
        ("//austria/", "two slashes"),
        ("/a//b/", "two slashes"),
        ("/../etc/", "starts with a dot"),
        ("/a/../../etc/", "starts with a dot"),
        ("/./", "starts with a dot"),
        ("/.content-pipeline/", "starts with a dot"),
        ("/a/.git/", "starts with a dot"),
        ("/.well-known/", "starts with a dot"),
        ("/a\0b/", "control character"),
        ("/a\nb/", "control character"),
        ("/a b/", "a space"),
        ("/a\u00a0b/", "a space"),
        ("/a\ud800b/", "control character"),
        ("/a\\..\\b/", "one of"),
        ("/%2e%2e/", "one of"),
        ("/caf%C3%A9/", "one of"),
        ("/a?b/", "one of"),
        ("/a#b/", "one of"),
        ("/c:/", "one of"),
        ("/a*b/", "one of"),
        ("/sitemap.xml/", "kept for a file of the site"),
        ("/Sitemap-2.xml/", "kept for a file of the site"),
        ("/index.html/", "kept for a file of the site"),
        ("/index-2.html/a/", "kept for a file of the site"),
        ("/robots.txt/", "kept for a file of the site"),
        ("/austria/index.html/", "cannot be called index.html"),
        ("/austria/INDEX.html/", "cannot be called index.html"),
        ("/" + "a" * 256 + "/", "longer than 255 bytes"),
        ("/" + "ö" * 128 + "/", "longer than 255 bytes"),
        ("/" + ("a" * 99 + "/") * (MAX_PATH_BYTES // 100 + 1), f"longer than {MAX_PATH_BYTES}"),
        ("/" + "a/" * (MAX_SEGMENTS + 1), f"more than {MAX_SEGMENTS} folders"),
    ],
)
def test_a_path_that_cannot_be_a_page_is_refused_with_the_reason(path: str, reason: str) -> None:
    with pytest.raises(CallFailed, match=reason) as error:
        page_file(path)
    assert error.value.failure.failure_class is FailureClass.INVALID_INPUT
    assert error.value.failure.message.isascii()
    assert len(error.value.failure.message) < 700
