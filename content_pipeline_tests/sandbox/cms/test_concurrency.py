"""Many clients at once, and clients that leave: what is stored then."""

import base64
import json
import socket
from concurrent.futures import ThreadPoolExecutor
from typing import Any
from urllib.parse import urlsplit

import pytest

from content_pipeline.sandbox.cms.client import CMSClient
from content_pipeline.sandbox.cms.site import Site
from content_pipeline.sandbox.cms.store import Store
from content_pipeline_tests.conftest import INSTANT_CMS
from content_pipeline_tests.sandbox.asking import wait_until
from content_pipeline_tests.sandbox.cms.wordpress import PAGES, WordPress, marked

CLIENTS = 8


def raw_create(site: WordPress, **fields: Any) -> bytes:
    """A whole create as bytes."""
    login, password = site.logins["editor"]
    body = json.dumps(fields).encode()
    head = (
        f"POST {PAGES} HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\n"
        f"authorization: Basic {base64.b64encode(f'{login}:{password}'.encode()).decode()}\r\n"
        f"content-length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


def connected(site: WordPress) -> socket.socket:
    place = urlsplit(site.base_url)
    return socket.create_connection((place.hostname, place.port), timeout=10)


def test_many_at_once_get_slugs_of_their_own(sandbox_cms: CMSClient, site: WordPress) -> None:
    def create(number: int) -> str:
        slug: str = site.created(title="T", slug="same", content=marked(f"k{number}"))["slug"]
        return slug

    with ThreadPoolExecutor(CLIENTS) as pool:
        slugs = list(pool.map(create, range(40)))
    assert sorted(slugs) == sorted(["same", *(f"same-{n}" for n in range(2, 41))])
    assert len(sandbox_cms.truth()["pages"]) == 40


def test_creates_can_race_for_a_slug_as_on_a_real_database(
    sandbox_cms: CMSClient, site: WordPress
) -> None:
    racing = {"racing_writes": True, "latency_median_s": 0.1, "latency_sigma": 0}
    sandbox_cms.set_settings(INSTANT_CMS.model_copy(update=racing))
    with ThreadPoolExecutor(4) as pool:
        made = list(
            pool.map(lambda _: site.created(title="T", slug="same", status="publish"), range(4))
        )
    assert len({page["id"] for page in made}) == 4
    assert len({page["slug"] for page in made}) < 4


@pytest.mark.parametrize("leave", ["close", "reset"])
def test_a_client_that_leaves_after_the_body_has_made_its_page(site: WordPress, leave: str) -> None:
    for number in range(8):
        with connected(site) as sock:
            if leave == "reset":
                linger = b"\x01\x00\x00\x00\x00\x00\x00\x00"
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
            sock.sendall(raw_create(site, title="T", slug=f"gone-{number}"))
            if leave == "reset":
                sock.recv(1)
    wait_until(lambda: len(site.found(status="draft", per_page="100")) == 8)


def test_a_client_that_leaves_within_the_body_has_made_none(site: WordPress) -> None:
    for _ in range(8):
        with connected(site) as sock:
            whole = raw_create(site, title="T" * 1000)
            sock.sendall(whole[: len(whole) - 500])
    assert site.found(status="any") == []


def test_requests_of_one_key_are_counted_together(sandbox_cms: CMSClient, site: WordPress) -> None:
    page = site.created(title="T", slug="a", content=marked("k1"), status="publish")
    site.found(search="key=k1")
    site.found(search="k1", status="any")
    site.found(slug="a,a-2")
    site.read(page)
    site.updated(page, title="T2")
    site.visit("/a/")
    site.ask("GET", f"{PAGES}/{page['id']}/revisions")
    assert sandbox_cms.truth()["requests_by_key"] == {"k1": 8}
    operations = [request["operation"] for request in sandbox_cms.requests()]
    lists = ["list"] * 3
    assert operations == ["create", *lists, "read", "update", "front", "revisions"]


def test_listings_lag_and_reads_by_id_do_not(sandbox_cms: CMSClient, site: WordPress) -> None:
    sandbox_cms.set_settings(INSTANT_CMS.model_copy(update={"listing_lag_s": 60}))
    page = site.created(title="T", slug="a", content=marked("k1"), status="publish")
    assert site.found(search="key=k1") == site.found(slug="a") == []
    assert site.read(page)["id"] == page["id"]
    assert site.visit("/a/").status == 200
    assert site.created(title="T", slug="a")["slug"] == "a-2", "slugs are not lists"
    sandbox_cms.set_settings(INSTANT_CMS)
    assert len(site.found(search="key=k1")) == 1


def test_a_latency_is_drawn_anew_for_every_request_and_the_same_in_every_run() -> None:
    settings = INSTANT_CMS.model_copy(update={"latency_median_s": 2.0, "seed": 5})
    runs = []
    for _ in range(2):
        fresh = Site(settings, Store.in_memory())
        runs.append([fresh.next_latency_s(key) for key in ("a", "a", "b")])
    assert runs[0] == runs[1]
    assert len(set(runs[0])) == 3
    assert Site(INSTANT_CMS, Store.in_memory()).next_latency_s("a") == 0
