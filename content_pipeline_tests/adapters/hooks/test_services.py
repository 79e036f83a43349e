"""Each hook against the service it is for: what that gets to hear, and what it answers."""

import base64
import hashlib
import hmac
import json
from collections.abc import Iterator
from typing import Any

import pytest

from content_pipeline.adapters.hooks import cache_purge, deploy_hook, indexnow, webhook
from content_pipeline.adapters.hooks.cache_purge import CachePurge, CloudflarePurge
from content_pipeline.adapters.hooks.deploy_hook import DeployHook
from content_pipeline.adapters.hooks.indexnow import IndexNow
from content_pipeline.adapters.hooks.webhook import Webhook, signing_key
from content_pipeline.core.errors import CallFailed
from content_pipeline.core.failures import FailureClass
from content_pipeline.core.ports import Announcement, NewsHook
from content_pipeline.sandbox.cms.client import CMSClient
from content_pipeline.sandbox.cms.faults import FaultPlan
from content_pipeline_tests.adapters.hooks.listings import listed, numbered
from content_pipeline_tests.adapters.hooks.news import NOW, TERMS, clock, news, telling
from content_pipeline_tests.adapters.llm.loopback import answer, serving
from content_pipeline_tests.conftest import INSTANT_CMS

F = FailureClass
KEY = "0123456789abcdef"
TOKEN = "zone-secret"
SIGNING = b"k" * 32


@pytest.fixture
def services(sandbox_cms: CMSClient) -> CMSClient:
    """IndexNow, a zone at Cloudflare, deploy hooks and webhooks, with a truth of their own."""
    known = {"indexnow_key": KEY, "zone_token": TOKEN}
    sandbox_cms.set_settings(INSTANT_CMS.model_copy(update=known))
    return sandbox_cms


@pytest.fixture
def engines(services: CMSClient) -> Iterator[IndexNow]:
    with telling(f"{services.base_url}/indexnow", advice=indexnow.ADVICE) as told:
        yield IndexNow(told, kind="indexnow", terms=TERMS, key=KEY, key_location=None)


def told_of(services: CMSClient) -> list[Any]:
    return [json.loads(each["body"]) for each in services.deliveries()]


def failure_of(hook: NewsHook, *, base_url: str = "https://example.com") -> tuple[str, str]:
    with pytest.raises(CallFailed) as failed:
        hook.tell(news(base_url=base_url))
    return failed.value.failure.failure_class.value, failed.value.failure.message


# --- IndexNow -----------------------------------------------------------------------------------


def test_search_engines_are_told_the_urls_of_one_host(
    services: CMSClient, engines: IndexNow
) -> None:
    answered = engines.tell(news([listed("Austria")], withdrawn=["/belgium/"]))
    assert answered == Announcement(location="HTTP 200 for example.com", changed=True)
    assert told_of(services) == [
        {
            "host": "example.com",
            "key": KEY,
            "keyLocation": f"https://example.com/{KEY}.txt",
            "urlList": ["https://example.com/austria/", "https://example.com/belgium/"],
        }
    ]


def test_a_base_below_the_root_of_a_host_still_tells_the_host(
    services: CMSClient, engines: IndexNow
) -> None:
    page = listed("Austria", url="https://example.com:8443/blog/austria/")
    engines.tell(news([page], base_url="https://example.com:8443/blog"))
    (told,) = told_of(services)
    assert told["host"] == "example.com:8443"
    assert told["keyLocation"] == f"https://example.com:8443/{KEY}.txt"


def test_as_many_urls_as_the_protocol_allows_go_in_one_call(
    services: CMSClient, engines: IndexNow
) -> None:
    engines.tell(news([listed(f"P{number}") for number in range(indexnow.MAX_URLS)]))
    (told,) = told_of(services)
    assert len(told["urlList"]) == indexnow.MAX_URLS == 10_000


def test_a_key_elsewhere_is_said_to_be_there(services: CMSClient) -> None:
    location = f"https://example.com/keys/{KEY}.txt"
    with telling(f"{services.base_url}/indexnow", advice=indexnow.ADVICE) as told:
        hook = IndexNow(told, kind="indexnow", terms=TERMS, key=KEY, key_location=location)
        failure_class, message = failure_of(hook)
    assert told_of(services)[0]["keyLocation"] == location
    assert failure_class == F.AUTH, "the imitated one looks at the root alone"
    assert "set key_location" in message
    assert KEY not in message


def test_a_key_that_the_site_does_not_show_is_a_persons_to_put_there(services: CMSClient) -> None:
    with telling(f"{services.base_url}/indexnow", advice=indexnow.ADVICE) as told:
        wrong = IndexNow(told, kind="indexnow", terms=TERMS, key="f" * 16, key_location=None)
        failure_class, message = failure_of(wrong)
    assert failure_class == F.AUTH
    assert "put the key into the file KEY.txt" in message


@pytest.mark.parametrize("status", [200, 202])
def test_a_key_that_is_yet_to_be_checked_is_a_success(status: int) -> None:
    with serving(answer(status, b"")) as server, telling(server.base_url) as told:
        hook = IndexNow(told, kind="indexnow", terms=TERMS, key=KEY, key_location=None)
        assert hook.tell(news()).location == f"HTTP {status} for example.com"


@pytest.mark.parametrize(
    ("status", "failure_class"), [(400, F.REQUEST), (403, F.AUTH), (422, F.REQUEST)]
)
def test_what_the_engines_refuse_is_not_told_again(
    status: int, failure_class: FailureClass
) -> None:
    with (
        serving(answer(status, b"")) as server,
        telling(server.base_url, advice=indexnow.ADVICE) as told,
    ):
        hook = IndexNow(told, kind="indexnow", terms=TERMS, key=KEY, key_location=None)
        found, message = failure_of(hook)
    assert found == failure_class
    assert message.endswith(indexnow.ADVICE[status])


def test_an_announced_wait_comes_with_the_failure(services: CMSClient, engines: IndexNow) -> None:
    fault = {"kind": "status", "status": 429, "retry_after_s": 7}
    rule = {"fault": fault, "match": {"operation": "indexnow"}, "times": 1}
    services.set_faults(FaultPlan.model_validate({"rules": [rule]}))
    with pytest.raises(CallFailed) as failed:
        engines.tell(news())
    assert failed.value.failure.failure_class is F.THROTTLED
    assert failed.value.failure.retry_after_s == 7


# --- caches -------------------------------------------------------------------------------------


def cloudflare(services: CMSClient, token: str = TOKEN) -> Any:
    return telling(
        f"{services.base_url}/client/v4", advice=cache_purge.CLOUDFLARE_ADVICE, token=token
    )


def test_cloudflare_purges_the_urls_of_the_zone(services: CMSClient) -> None:
    with cloudflare(services) as told:
        hook = CloudflarePurge(told, kind="cloudflare_purge", terms=TERMS, zone="zone-1")
        answered = hook.tell(news([listed("Austria")], withdrawn=["/belgium/"]))
    assert answered.location == "zone zone-1"
    (told_it,) = services.deliveries()
    assert (told_it["kind"], told_it["name"], told_it["status"]) == ("purge", "zone-1", 200)
    assert told_of(services) == [
        {"files": ["https://example.com/austria/", "https://example.com/belgium/"]}
    ]


def test_cloudflare_takes_a_whole_batch_and_refuses_one_more(services: CMSClient) -> None:
    with cloudflare(services) as told:
        hook = CloudflarePurge(told, kind="cloudflare_purge", terms=TERMS, zone="zone-1")
        hook.tell(news(numbered(100)))
        with pytest.raises(CallFailed, match="lower `batch`") as failed:
            hook.tell(news(numbered(101)))
    assert failed.value.failure.failure_class is F.REQUEST


def test_a_wrong_token_is_a_persons_to_correct(services: CMSClient) -> None:
    with cloudflare(services, token="wrong-token") as told:
        hook = CloudflarePurge(told, kind="cloudflare_purge", terms=TERMS, zone="zone-1")
        failure_class, message = failure_of(hook)
    assert failure_class == F.AUTH
    assert "Zone.Cache Purge" in message
    assert "wrong-token" not in message


@pytest.mark.parametrize("body", [b'{"success": false}', b"<html>", b"[]", b""])
def test_a_success_that_does_not_say_so_is_none(body: bytes) -> None:
    with serving(answer(200, body)) as server, telling(server.base_url) as told:
        hook = CloudflarePurge(told, kind="cloudflare_purge", terms=TERMS, zone="zone-1")
        assert failure_of(hook)[0] == F.TRANSIENT


@pytest.mark.parametrize(
    ("urls_in", "body"),
    [
        ("urls", {"urls": ["https://example.com/austria/"]}),
        ("purge_list", {"purge_list": ["https://example.com/austria/"]}),
        (None, ["https://example.com/austria/"]),
    ],
)
def test_any_cache_gets_the_list_in_its_form(
    services: CMSClient, urls_in: str | None, body: object
) -> None:
    with telling(f"{services.base_url}/hooks/receive/cache", token="bearer-token") as told:
        hook = CachePurge(told, kind="cache_purge", terms=TERMS, urls_in=urls_in)
        assert hook.tell(news()).location == "HTTP 200"
    assert told_of(services) == [body]
    assert services.deliveries()[0]["headers"]["authorization"] == "Bearer bearer-token"


# --- deploy hooks -------------------------------------------------------------------------------


def test_a_deploy_is_one_call_that_names_its_build(services: CMSClient) -> None:
    with telling(f"{services.base_url}/hooks/deploy/site-1", advice=deploy_hook.ADVICE) as told:
        hook = DeployHook(told, kind="deploy_hook", terms=TERMS)
        first = hook.tell(news(numbered(3)))
        second = hook.tell(news())
    assert first.location.startswith("build ")
    assert first != second, "every call is a build"
    assert [each["body"] for each in services.deliveries()] == ["{}", "{}"]


@pytest.mark.parametrize(
    ("body", "location"),
    [
        (b'{"job": {"id": "qwerty", "state": "PENDING"}}', "build qwerty"),
        (b'{"result": {"build_uuid": "a-b-c"}, "success": true}', "build a-b-c"),
        (b'{"build_uuid": "a-b-c"}', "build a-b-c"),
        (b'{"id": "d1"}', "build d1"),
        (b"", "HTTP 200"),
        (b"OK", "HTTP 200"),
        (b'{"job": null}', "HTTP 200"),
        (b'{"job": {"id": 5}}', "HTTP 200"),
        (b'{"id": "<script>"}', "HTTP 200"),
        (b"[1]", "HTTP 200"),
    ],
)
def test_what_a_host_answers_tells_the_build_or_nothing(body: bytes, location: str) -> None:
    with serving(answer(200, body)) as server, telling(server.base_url) as told:
        assert DeployHook(told, kind="deploy_hook", terms=TERMS).tell(news()).location == location


# --- webhooks -----------------------------------------------------------------------------------


def a_webhook(told: Any) -> Webhook:
    return Webhook(told, kind="webhook", terms=TERMS, key=SIGNING, clock=clock)


def test_a_receiver_gets_the_documented_body(services: CMSClient) -> None:
    with telling(f"{services.base_url}/hooks/receive/partner") as told:
        answered = a_webhook(told).tell(news([listed("Größe")], withdrawn=["/belgium/"]))
    assert answered == Announcement(location="msg_0123456789abcdef", changed=True)
    assert told_of(services) == [
        {
            "type": "pages.changed",
            "timestamp": "2026-03-02T09:30:00Z",
            "data": {
                "site": "countries",
                "base_url": "https://example.com",
                "changed": [
                    {
                        "url": "https://example.com/größe/",
                        "path": "/größe/",
                        "title": "Größe",
                        "meta_description": "About Größe.",
                        "modified_at": "2026-03-01T12:00:00Z",
                    }
                ],
                "withdrawn": [{"url": "https://example.com/belgium/", "path": "/belgium/"}],
            },
        }
    ]


def test_the_signature_is_that_of_standard_webhooks(services: CMSClient) -> None:
    with telling(f"{services.base_url}/hooks/receive/partner") as told:
        a_webhook(told).tell(news())
    (got,) = services.deliveries()
    headers = got["headers"]
    assert headers["webhook-id"] == "msg_0123456789abcdef"
    assert headers["webhook-timestamp"] == str(int(NOW.timestamp()))
    signed = f"{headers['webhook-id']}.{headers['webhook-timestamp']}.{got['body']}".encode()
    mac = base64.b64encode(hmac.new(SIGNING, signed, hashlib.sha256).digest()).decode()
    assert headers["webhook-signature"] == f"v1,{mac}"
    assert headers["content-type"] == "application/json"


def test_the_signature_of_the_standards_own_example() -> None:
    key = signing_key("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
    body = b'{"test": 2432232314}'
    signature = webhook._signature(key, "msg_p5jXN8AQM9LWM0D4loKWxJek", "1614265330", body)
    assert signature == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


@pytest.mark.parametrize("secret", ["", "whsec_", "whsec_c2hvcnQ=", "not base64 !", "whsec_ä"])
def test_a_secret_that_is_none_is_refused_and_not_quoted(secret: str) -> None:
    with pytest.raises(ValueError) as refused:
        signing_key(secret)
    assert not secret or secret not in str(refused.value) or secret == "whsec_"
    assert "Base64 of at least 24 bytes" in str(refused.value)


def test_a_receiver_that_is_gone_for_good_is_said_to_be() -> None:
    with (
        serving(answer(410, b"")) as server,
        telling(server.base_url, advice=webhook.ADVICE) as told,
    ):
        failure_class, message = failure_of(a_webhook(told))
    assert failure_class == F.REQUEST
    assert "remove the hook from the site's file" in message
