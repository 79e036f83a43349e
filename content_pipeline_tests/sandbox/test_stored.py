"""The look-up endpoints, through the real SDK."""

import openai
import pytest

from content_pipeline.core.article import parse_article
from content_pipeline.sandbox.client import SandboxClient
from content_pipeline.sandbox.settings import ProviderSettings
from content_pipeline_tests.sandbox.asking import (
    SWITZERLAND,
    body_of,
    content_of,
    create,
    exchange,
    prompt_for,
    raw_request,
    stored_as,
    wait_until,
)


def listed(sdk: openai.OpenAI, attempt_id: str) -> list[str]:
    page = sdk.chat.completions.list(metadata={"attempt_id": attempt_id})
    return [completion.id for completion in page.data]


def test_a_stored_completion_is_listed_by_its_attempt(sdk: openai.OpenAI) -> None:
    create(sdk, **stored_as("attempt-1"))
    wanted = create(sdk, **stored_as("attempt-2"))
    assert listed(sdk, "attempt-2") == [wanted.id]
    assert listed(sdk, "attempt-3") == []


def test_look_ups_echo_the_metadata_and_create_does_not(sdk: openai.OpenAI) -> None:
    stored = stored_as("attempt-1", "job-1")
    created = create(sdk, **stored)
    assert getattr(created, "metadata", None) is None
    found = sdk.chat.completions.list(metadata={"attempt_id": "attempt-1"}).data[0]
    retrieved = sdk.chat.completions.retrieve(created.id)
    for completion in (found, retrieved):
        assert getattr(completion, "metadata", None) == stored["metadata"]


def test_the_listed_completion_holds_everything_the_lost_answer_held(sdk: openai.OpenAI) -> None:
    created = create(sdk, **stored_as("attempt-1"))
    found = sdk.chat.completions.list(metadata={"attempt_id": "attempt-1"}).data[0]
    assert content_of(found) == content_of(created)
    assert found.usage == created.usage
    assert found.created == created.created
    parse_article(content_of(found))


@pytest.mark.parametrize("parameters", [{}, {"store": False}])
def test_what_was_not_to_be_stored_cannot_be_looked_up(
    sdk: openai.OpenAI, parameters: dict[str, bool]
) -> None:
    created = create(sdk, **parameters)
    assert sdk.chat.completions.list().data == []
    with pytest.raises(openai.NotFoundError):
        sdk.chat.completions.retrieve(created.id)


def test_the_messages_of_a_completion_come_back(sdk: openai.OpenAI) -> None:
    created = create(sdk, **stored_as("attempt-1"))
    messages = sdk.chat.completions.messages.list(created.id).data
    assert [message.role for message in messages] == ["system", "user"]
    assert messages[1].content == prompt_for(SWITZERLAND)
    assert len({message.id for message in messages}) == 2


def test_a_deleted_completion_is_gone_for_every_look_up(
    box: SandboxClient, sdk: openai.OpenAI
) -> None:
    created = create(sdk, **stored_as("attempt-1"))
    assert sdk.chat.completions.delete(created.id).deleted
    assert listed(sdk, "attempt-1") == []
    for look_up in (
        sdk.chat.completions.retrieve,
        sdk.chat.completions.messages.list,
        sdk.chat.completions.delete,
    ):
        with pytest.raises(openai.NotFoundError):
            look_up(created.id)
    assert box.truth()["generations_by_attempt_id"] == {"attempt-1": 1}


def test_an_attempt_generated_twice_is_listed_twice(sdk: openai.OpenAI) -> None:
    ids = [create(sdk, **stored_as("attempt-1")).id for _ in range(2)]
    assert listed(sdk, "attempt-1") == ids


def test_a_list_can_be_turned_round_filtered_and_paged(sdk: openai.OpenAI) -> None:
    models = ["gpt-a", "gpt-b"] * 3
    ids = [create(sdk, model=m, **stored_as(f"a-{n}")).id for n, m in enumerate(models)]
    listing = sdk.chat.completions.list
    assert [c.id for c in listing(order="asc").data] == ids
    assert [c.id for c in listing(order="desc").data] == ids[::-1]
    assert [c.id for c in listing(model="gpt-b").data] == ids[1::2]
    assert [c.id for c in listing(metadata={"page_job_id": "page-job-1"}, limit=2).data] == ids[:2]
    assert [c.id for c in listing(after=ids[3]).data] == ids[4:]
    assert [c.id for c in listing(after=ids[3], order="desc").data] == ids[2::-1]
    assert [c.id for c in listing(limit=4)] == ids, "the SDK follows all pages by itself"


def test_a_page_tells_whether_there_is_more(sdk: openai.OpenAI) -> None:
    for number in range(3):
        create(sdk, **stored_as(f"attempt-{number}"))
    assert sdk.chat.completions.list(limit=2).has_more
    assert not sdk.chat.completions.list(limit=3).has_more


@pytest.mark.parametrize("query", ["order=up", "limit=0", "limit=101", "limit=x", "after=nobody"])
def test_a_wrong_query_is_refused(box: SandboxClient, query: str) -> None:
    line = f"GET /v1/chat/completions?{query} HTTP/1.1"
    answer = exchange(box, raw_request(b"", line=line))
    assert answer.startswith((b"HTTP/1.1 400 ", b"HTTP/1.1 404 "))
    assert b'"type":"invalid_request_error"' in answer


def test_metadata_of_any_letters_can_be_looked_up(sdk: openai.OpenAI) -> None:
    attempt_id = "Ünï/code & 100% [x]=y+z"
    created = create(sdk, **stored_as(attempt_id))
    assert listed(sdk, attempt_id) == [created.id]


def test_a_completion_can_take_a_while_to_be_listed(box: SandboxClient, sdk: openai.OpenAI) -> None:
    box.set_settings(ProviderSettings(latency_median_s=0, listing_delay_s=0.5))
    created = create(sdk, **stored_as("attempt-1"))
    assert listed(sdk, "attempt-1") == []
    assert sdk.chat.completions.retrieve(created.id).id == created.id
    wait_until(lambda: listed(sdk, "attempt-1") == [created.id])


def test_look_ups_are_counted_and_never_billed(box: SandboxClient, sdk: openai.OpenAI) -> None:
    created = sdk.chat.completions.create(**body_of(**stored_as("attempt-1")))
    listed(sdk, "attempt-1")
    sdk.chat.completions.retrieve(created.id)
    sdk.chat.completions.messages.list(created.id)
    sdk.chat.completions.delete(created.id)
    sdk.models.list()
    truth = box.truth()
    operations = ("create", "list", "retrieve", "messages", "delete", "models")
    assert truth["requests_by_operation"] == dict.fromkeys(operations, 1)
    assert len(truth["generations"]) == 1
