"""The provider as the real SDK sees it, when nothing goes wrong."""

import json
import resource
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import openai
import pytest
from pydantic import BaseModel, ConfigDict

from content_pipeline.core.article import Article, parse_article
from content_pipeline.core.money import Usage
from content_pipeline.sandbox.client import SandboxClient
from content_pipeline.sandbox.journal import JOURNAL_FILE
from content_pipeline.sandbox.server import serving
from content_pipeline.sandbox.settings import ProviderSettings, latency_s
from content_pipeline_tests.sandbox.asking import (
    ICELAND,
    SWITZERLAND,
    body_of,
    content_of,
    create,
    exchange,
    raw_request,
    send_and_leave,
    stored_as,
    wait_until,
)
from content_pipeline_tests.sandbox.conftest import INSTANT, MakeSdk


class Menu(BaseModel):
    model_config = ConfigDict(extra="forbid")

    dishes: list[str]
    vegan: bool


def test_create_answers_with_an_article_of_the_facts(sdk: openai.OpenAI) -> None:
    completion = create(sdk)
    assert completion.object == "chat.completion"
    assert completion.id.startswith("chatcmpl-")
    assert completion.model == "gpt-4.1-mini"
    assert completion.service_tier == "default"
    assert completion.system_fingerprint
    assert completion.choices[0].finish_reason == "stop"
    text = parse_article(content_of(completion)).plain_text()
    assert all(value in text for value in SWITZERLAND.values())


def test_parse_gives_an_article(sdk: openai.OpenAI) -> None:
    body = body_of() | {"response_format": Article}
    article = sdk.chat.completions.parse(**body).choices[0].message.parsed
    assert isinstance(article, Article)
    assert "8,847,037" in article.plain_text()


def test_parse_works_with_any_other_model(sdk: openai.OpenAI) -> None:
    body = body_of() | {"response_format": Menu}
    menu = sdk.chat.completions.parse(**body).choices[0].message.parsed
    assert menu == Menu(dishes=["sandbox"], vegan=True)


def test_usage_is_whole_and_possible(sdk: openai.OpenAI) -> None:
    usage = create(sdk, model="gpt-5.2").usage
    assert usage is not None
    assert usage.prompt_tokens_details is not None
    assert usage.completion_tokens_details is not None
    Usage(
        input_tokens=usage.prompt_tokens,
        output_tokens=usage.completion_tokens,
        cached_tokens=usage.prompt_tokens_details.cached_tokens or 0,
        reasoning_tokens=usage.completion_tokens_details.reasoning_tokens or 0,
    )
    assert usage.total_tokens == usage.prompt_tokens + usage.completion_tokens


def test_headers_tell_request_time_and_limits(sdk: openai.OpenAI) -> None:
    first = sdk.chat.completions.with_raw_response.create(**body_of())
    second = sdk.chat.completions.with_raw_response.create(**body_of())
    assert first.headers["x-request-id"].startswith("req_")
    assert first.headers["x-request-id"] != second.headers["x-request-id"]
    assert int(first.headers["openai-processing-ms"]) >= 0
    assert first.headers["content-type"] == "application/json"
    for kind in ("requests", "tokens"):
        for name in ("limit", "remaining", "reset"):
            assert f"x-ratelimit-{name}-{kind}" in first.headers


@pytest.mark.parametrize(
    ("changes", "error", "code"),
    [
        ({"model": "claude-x"}, openai.NotFoundError, "model_not_found"),
        ({"metadata": {"a": "b"}}, openai.BadRequestError, None),
        ({"messages": []}, openai.BadRequestError, None),
        ({"max_tokens": 200_000}, openai.BadRequestError, "context_length_exceeded"),
    ],
)
def test_a_refusal_reaches_the_sdk_with_its_code(
    sdk: openai.OpenAI, changes: dict[str, Any], error: type[openai.APIStatusError], code: str
) -> None:
    with pytest.raises(error) as caught:
        create(sdk, **changes)
    assert caught.value.code == code
    assert caught.value.type == "invalid_request_error"
    assert caught.value.request_id is not None


def test_a_body_that_is_not_json_is_refused(box: SandboxClient) -> None:
    head, _, body = exchange(box, raw_request(b"{not json")).partition(b"\r\n\r\n")
    assert head.startswith(b"HTTP/1.1 400 ")
    assert json.loads(body)["error"]["type"] == "invalid_request_error"


@pytest.mark.parametrize(
    "authorization", ["", "authorization:", "authorization: Bearer ", "authorization: Basic x"]
)
@pytest.mark.parametrize("line", ["POST /v1/chat/completions HTTP/1.1", "GET /v1/models HTTP/1.1"])
def test_without_a_key_nothing_is_answered(
    box: SandboxClient, authorization: str, line: str
) -> None:
    request = raw_request(json.dumps(body_of()).encode(), line=line)
    answer = exchange(
        box, request.replace(b"authorization: Bearer key", authorization.encode() or b"x: y")
    )
    assert answer.startswith(b"HTTP/1.1 401 ")
    assert b'"code":"invalid_api_key"' in answer
    assert box.truth()["generations"] == []


@pytest.mark.parametrize(
    "line",
    [
        "GET / HTTP/1.1",
        "POST /chat/completions HTTP/1.1",
        "PUT /v1/chat/completions HTTP/1.1",
        "GET /v1/chat/completions/x/y HTTP/1.1",
        "POST /v1/chat/completions/x HTTP/1.1",
        "POST /v1/models HTTP/1.1",
        "GET /sandbox HTTP/1.1",
    ],
)
def test_a_wrong_address_is_not_found(box: SandboxClient, line: str) -> None:
    answer = exchange(box, raw_request(b"{}", line=line))
    assert answer.startswith(b"HTTP/1.1 404 ")
    assert b"Invalid URL" in answer


def test_models_are_listed_and_named_ones_can_be_asked_for(
    box: SandboxClient, sdk: openai.OpenAI
) -> None:
    assert "sandbox" in {model.id for model in sdk.models.list()}
    assert sdk.models.retrieve("gpt-5.2").id == "gpt-5.2"
    box.set_settings(ProviderSettings(models=("acme-1",)))
    assert [model.id for model in sdk.models.list()] == ["acme-1"]
    with pytest.raises(openai.NotFoundError):
        sdk.models.retrieve("gpt-5.2")
    with pytest.raises(openai.NotFoundError):
        create(sdk)


def test_the_truth_tells_who_was_billed_what(box: SandboxClient, sdk: openai.OpenAI) -> None:
    completion = create(sdk, **stored_as("attempt-1", "job-1"))
    create(sdk, **stored_as("attempt-2", "job-1"))
    create(sdk)
    with pytest.raises(openai.NotFoundError):
        create(sdk, model="nowhere")
    truth = box.truth()
    assert truth["requests_by_operation"] == {"create": 4}
    assert truth["generations_by_attempt_id"] == {"attempt-1": 1, "attempt-2": 1}
    assert truth["generations_by_page_job_id"] == {"job-1": 2}
    first = truth["generations"][0]
    assert completion.usage is not None
    assert first["id"] == completion.id
    assert first["model"] == "gpt-4.1-mini"
    assert first["prompt_tokens"] == completion.usage.prompt_tokens
    assert first["completion_tokens"] == completion.usage.completion_tokens
    assert first["finish_reason"] == "stop"
    assert len(truth["generations"]) == 3


def test_the_journal_tells_the_latency_a_bench_can_foresee(
    box: SandboxClient, sdk: openai.OpenAI
) -> None:
    settings = ProviderSettings(latency_median_s=0.01, seed=3)
    box.set_settings(settings)
    create(sdk, **stored_as("attempt-1"))
    noted = box.truth()["generations"][0]["latency_s"]
    assert noted == pytest.approx(latency_s(settings, "attempt-1"), abs=1e-6)
    assert noted > 0


def test_a_client_that_leaves_is_billed_all_the_same(box: SandboxClient) -> None:
    box.set_settings(ProviderSettings(latency_median_s=0.1, latency_sigma=0))
    send_and_leave(box, body_of(**stored_as("attempt-1")))
    wait_until(lambda: box.truth()["generations_by_attempt_id"] == {"attempt-1": 1})


def test_a_client_that_times_out_finds_its_answer_later(
    box: SandboxClient, sdk: openai.OpenAI
) -> None:
    box.set_settings(ProviderSettings(latency_median_s=0.4, latency_sigma=0))
    with pytest.raises(openai.APITimeoutError):
        sdk.with_options(timeout=0.1).chat.completions.create(**body_of(**stored_as("attempt-1")))
    wait_until(
        lambda: len(sdk.chat.completions.list(metadata={"attempt_id": "attempt-1"}).data) > 0
    )


def test_sixty_four_calls_wait_side_by_side(box: SandboxClient, make_sdk: MakeSdk) -> None:
    box.set_settings(ProviderSettings(latency_median_s=3, latency_sigma=0))
    sdk, most = make_sdk(box.base_url), 0
    done = threading.Event()
    with ThreadPoolExecutor(64) as pool:
        calls = [pool.submit(create, sdk, **stored_as(f"attempt-{n}")) for n in range(64)]
        while not done.is_set():
            most = max(most, box.health()["in_flight"])
            if all(call.done() for call in calls):
                done.set()
    assert len({call.result().id for call in calls}) == 64
    assert most == 64


def test_calls_beyond_the_most_at_once_are_rejected_and_journaled_with_their_number(
    box: SandboxClient, make_sdk: MakeSdk
) -> None:
    box.set_settings(ProviderSettings(latency_median_s=0.5, latency_sigma=0, most_at_once=3))
    sdk = make_sdk(box.base_url)
    with ThreadPoolExecutor(8) as pool:
        calls = [pool.submit(create, sdk, **stored_as(f"attempt-{n}")) for n in range(8)]
        errors = [error for call in calls if (error := call.exception())]
    assert [type(error) for error in errors] == [openai.RateLimitError] * 5
    told = sorted(each["at_once"] for each in box.requests())
    assert told == [1, 2, 3, 4, 4, 4, 4, 4]
    assert box.truth()["generations_by_attempt_id"].keys() < {f"attempt-{n}" for n in range(8)}
    assert len(box.truth()["generations"]) == 3
    create(sdk, **stored_as("attempt-8"))  # all three have ended


def test_five_hundred_calls_from_many_threads_are_each_billed_once(
    box: SandboxClient, make_sdk: MakeSdk
) -> None:
    bodies = [
        json.dumps(body_of(ICELAND, **stored_as(f"attempt-{n}"))).encode() for n in range(512)
    ]
    with ThreadPoolExecutor(16) as pool:
        answers = list(
            pool.map(lambda at: exchange(box, *map(raw_request, bodies[at::64])), range(64))
        )
    assert sum(answer.count(b"HTTP/1.1 200 OK") for answer in answers) == 512
    billed = box.truth()["generations_by_attempt_id"]
    assert billed == {f"attempt-{n}": 1 for n in range(512)}


def test_a_full_disk_is_a_500_that_bills_nothing_and_quotes_no_prompt(
    tmp_path: Path, make_sdk: MakeSdk, capfd: pytest.CaptureFixture[str]
) -> None:
    with serving(INSTANT, folder=tmp_path) as box:
        sdk = make_sdk(box.base_url)
        create(sdk, **stored_as("attempt-1"))
        size = (tmp_path / JOURNAL_FILE).stat().st_size
        limits = resource.getrlimit(resource.RLIMIT_FSIZE)
        # Room for the line of the request and not for that of the generation.
        resource.setrlimit(resource.RLIMIT_FSIZE, (size + 1000, limits[1]))
        try:
            with pytest.raises(openai.InternalServerError) as caught:
                create(sdk, **stored_as("attempt-2"))
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        assert caught.value.type == "server_error"
        assert box.truth()["creates_by_attempt_id"] == {"attempt-1": 1, "attempt-2": 1}
        assert box.truth()["generations_by_attempt_id"] == {"attempt-1": 1}
        create(sdk, **stored_as("attempt-3"))
    log = capfd.readouterr().err
    assert "OSError" in log
    assert "journal.py" in log
    assert "Switzerland" not in log + str(caught.value)
