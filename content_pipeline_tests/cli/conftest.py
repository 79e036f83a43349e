"""One project for all commands, on the database that all tests share."""

import itertools
from collections.abc import Callable, Iterator

import pytest

from content_pipeline.sandbox.faults import FaultPlan
from content_pipeline.sandbox.supervisor import stop_provider
from content_pipeline_tests.cli.workshop import Starter, TownSite, Workshop

MakeSite = Callable[..., TownSite]

_numbers = itertools.count(1)


@pytest.fixture(scope="session")
def starter() -> Iterator[Starter]:
    starter = Starter()
    yield starter
    starter.end()


@pytest.fixture(scope="session")
def shared_workshop(
    tmp_path_factory: pytest.TempPathFactory, starter: Starter, ledger_url: str
) -> Iterator[Workshop]:
    """A project in a folder with a space in its name; its provider ends with the tests."""
    root = tmp_path_factory.mktemp("cli") / "my project"
    yield Workshop.in_folder(root, starter, database_url=ledger_url)
    stop_provider(root / ".content_pipeline")


@pytest.fixture
def workshop(shared_workshop: Workshop) -> Workshop:
    """The project, its provider without faults."""
    shared_workshop.provider.set_faults(FaultPlan())
    return shared_workshop


@pytest.fixture
def make_site(workshop: Workshop) -> MakeSite:
    """Makes sites of fresh names, so that nothing another test left is theirs."""

    def make(rows: list[dict[str, str]] | None = None, **changes: object) -> TownSite:
        return workshop.site(f"cli_{next(_numbers)}", rows, **changes)

    return make
