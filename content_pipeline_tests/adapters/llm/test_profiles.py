"""The profiles promise only what their servers were seen to do."""

import pytest

from content_pipeline.adapters.llm.prices import GenaiPrices
from content_pipeline.adapters.llm.profiles import PROFILES, provider_profile
from content_pipeline.core.errors import ConfigurationError
from content_pipeline.core.generation_settings import WITH_RESPONSES
from content_pipeline_tests.adapters.llm.samples import chat, now, responses

NAMES = {"openai", "azure", "openrouter", "vllm", "ollama", "llama_cpp", "sandbox", "generic"}


def test_every_kind_of_provider_has_a_profile_under_its_name() -> None:
    assert PROFILES.keys() == NAMES
    assert all(profile.name == name for name, profile in PROFILES.items())


def test_an_unknown_name_is_answered_with_the_known_ones() -> None:
    with pytest.raises(ConfigurationError, match="llama_cpp") as caught:
        provider_profile("gpt4all")
    assert "'gpt4all'" in str(caught.value)


@pytest.mark.parametrize("name", ["openai", "azure", "sandbox"])
def test_only_these_keep_completions_that_can_be_listed(name: str) -> None:
    keeping = {profile.name for profile in PROFILES.values() if profile.store_look_up}
    assert name in keeping
    assert len(keeping) == 3


def test_only_these_hand_out_responses_by_id() -> None:
    keeping = {profile.name for profile in PROFILES.values() if profile.responses}
    assert keeping == WITH_RESPONSES == {"openai", "azure", "sandbox"}


@pytest.mark.parametrize("name", sorted(NAMES - WITH_RESPONSES))
def test_the_responses_api_is_refused_where_answers_are_not_kept(name: str) -> None:
    with pytest.raises(ConfigurationError, match=f"provider {name} keeps no responses.*api: chat"):
        responses("https://models.example.com/v1", profile=name)


def test_only_ollama_may_leave_out_the_finish_reason() -> None:
    lax = {profile.name for profile in PROFILES.values() if profile.finish_reason_null_ok}
    assert lax == {"ollama"}


@pytest.mark.parametrize("name", sorted(NAMES))
def test_a_client_can_be_built_from_each(name: str) -> None:
    address = provider_profile(name).default_base_url or "https://models.example.com/v1"
    model = chat(address, profile=name)
    assert model.capabilities.look_up_by_attempt is provider_profile(name).store_look_up
    assert model.capabilities.look_up_by_id is provider_profile(name).responses
    model.close()


def test_every_price_provider_is_in_the_price_list() -> None:
    for profile in PROFILES.values():
        assert GenaiPrices(provider=profile.price_provider, now=now).version


def test_a_profile_cannot_be_changed() -> None:
    with pytest.raises(AttributeError):
        provider_profile("openai").store_look_up = False  # type: ignore[misc]
