"""What a runtime's adapters keep open is closed with it, whatever one of them does."""

from dataclasses import dataclass
from pathlib import Path
from unittest.mock import sentinel

import pytest

from content_pipeline.adapters.cms.wordpress import WordPressCMS
from content_pipeline.adapters.llm.openai_model import OpenAIModel
from content_pipeline.core.ports import Announcement, HookTerms, SiteNews
from content_pipeline.ledger.database import Ledger
from content_pipeline.operations.runtime import SiteRuntime
from content_pipeline_tests.operations.published_site import sandbox_wordpress
from content_pipeline_tests.operations.small_site import (
    Parts,
    real_model,
    runtime_of,
    settings_of,
    site_of,
)

NOBODY = "http://127.0.0.1:9"
AT_ONCE = HookTerms(debounce_s=0, batch=1)


@dataclass(slots=True)
class Receiver:
    """A hook with a connection of its own."""

    kind: str
    terms: HookTerms = AT_ONCE
    is_open: bool = True

    def tell(self, news: SiteNews) -> Announcement:
        raise AssertionError("nothing is told here")

    def close(self) -> None:
        self.is_open = False
        if self.kind == "broken":
            raise OSError("the connection is gone")


def runtime_with(folder: Path, *hooks: Receiver, wordpress: bool = False) -> SiteRuntime:
    ledger: Ledger = sentinel.ledger  # closing a runtime must not touch it
    return runtime_of(
        Parts(
            site=site_of(settings_of("towns")),
            ledger=ledger,
            model=real_model(NOBODY),
            folder=folder,
            cms=sandbox_wordpress(NOBODY) if wordpress else None,
            hooks=hooks,
        )
    )


def test_the_connections_of_model_cms_and_hooks_are_closed(tmp_path: Path) -> None:
    receiver = Receiver("webhook")
    runtime = runtime_with(tmp_path, receiver, wordpress=True)
    runtime.close()
    assert not receiver.is_open
    assert isinstance(runtime.model, OpenAIModel)
    assert runtime.model._client.is_closed()
    assert isinstance(runtime.cms, WordPressCMS)
    assert runtime.cms._rest.json._service._client.is_closed


def test_a_folder_has_nothing_to_close(tmp_path: Path) -> None:
    runtime_with(tmp_path).close()


def test_a_part_that_fails_to_close_is_reported_and_holds_up_no_other(tmp_path: Path) -> None:
    receivers = [Receiver("before"), Receiver("broken"), Receiver("after")]
    with pytest.raises(OSError, match="the connection is gone"):
        runtime_with(tmp_path, *receivers).close()
    assert [receiver.is_open for receiver in receivers] == [False, False, False]
