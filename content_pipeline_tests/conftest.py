"""Shared by all tests: one embedded PostgreSQL, one provider, and small sites on top of them.

Nothing is emptied between tests: every test works on sites of its own name.
"""

import itertools
import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from content_pipeline.ledger import migrate
from content_pipeline.ledger.database import Ledger, create_ledger_engine
from content_pipeline.ledger.schema import SCHEMA
from content_pipeline.postgres.schemas import ensure_schema
from content_pipeline.postgres.server import EmbeddedServer
from content_pipeline.postgres.urls import embedded_database_url
from content_pipeline.sandbox.client import SandboxClient
from content_pipeline.sandbox.cms.client import CMSClient
from content_pipeline.sandbox.cms.server import serving_cms
from content_pipeline.sandbox.cms.settings import CMSSettings
from content_pipeline.sandbox.server import serving
from content_pipeline.sandbox.settings import ProviderSettings
from content_pipeline_tests.operations.bench import Bench
from content_pipeline_tests.operations.small_site import real_model, rows_of, settings_of, site_of

MakeBench = Callable[..., Bench]

INSTANT_PROVIDER = ProviderSettings(latency_median_s=0, idle_exit_s=0)
INSTANT_CMS = CMSSettings(latency_median_s=0, idle_exit_s=0)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Keep the tests of one file in one process, and those of the real WordPress as well.

    They share services that take seconds to start.
    """
    for item in items:
        file = item.path.relative_to(Path(__file__).parent)
        together = file.parts[0] if file.parts[0] == "real_cms" else str(file)
        item.add_marker(pytest.mark.xdist_group(together))


def _fast_folder() -> Path:
    """A new folder, in memory where possible, that the server's account can enter as well."""
    memory = Path("/dev/shm")
    usable = memory.is_dir() and not os.statvfs(memory).f_flag & os.ST_NOEXEC
    folder = Path(tempfile.mkdtemp(prefix="cp-", dir=memory if usable else None))
    folder.chmod(0o755)
    return folder


@pytest.fixture(scope="session")
def ledger_url() -> Iterator[str]:
    """The URL of a migrated ledger on a server that ends with the tests."""
    folder = _fast_folder()
    server = EmbeddedServer(folder / ".content_pipeline", system_home=folder / "system")
    try:
        url = embedded_database_url(server).ledger_url
        ensure_schema(url, SCHEMA)
        engine = create_ledger_engine(url)
        migrate.upgrade(engine)
        engine.dispose()
        yield url
    finally:
        server.stop()
        shutil.rmtree(folder)


@pytest.fixture(scope="session")
def ledger(ledger_url: str) -> Iterator[Ledger]:
    """The ledger that all tests share; each uses sites of its own."""
    shared = Ledger(create_ledger_engine(ledger_url))
    yield shared
    shared.dispose()


@pytest.fixture(scope="session")
def site_numbers() -> Iterator[int]:
    return itertools.count(1)


@pytest.fixture
def site_name(site_numbers: Iterator[int]) -> str:
    """A name that no other test uses."""
    return f"towns_{next(site_numbers)}"


@pytest.fixture(scope="session")
def running_sandbox() -> Iterator[SandboxClient]:
    with serving(INSTANT_PROVIDER) as client:
        yield client


@pytest.fixture
def sandbox(running_sandbox: SandboxClient) -> SandboxClient:
    """The real HTTP provider, answering at once, with nothing on record."""
    running_sandbox.reset()
    running_sandbox.set_settings(INSTANT_PROVIDER)
    return running_sandbox


@pytest.fixture(scope="session")
def running_sandbox_cms() -> Iterator[CMSClient]:
    with serving_cms(INSTANT_CMS) as client:
        yield client


@pytest.fixture
def sandbox_cms(running_sandbox_cms: CMSClient) -> CMSClient:
    """The WordPress-like CMS over real HTTP, answering at once, with no pages and no faults."""
    running_sandbox_cms.reset()
    running_sandbox_cms.set_settings(INSTANT_CMS)
    return running_sandbox_cms


@pytest.fixture
def make_bench(
    ledger: Ledger, sandbox: SandboxClient, site_name: str, tmp_path: Path
) -> Iterator[MakeBench]:
    """Builds a small site with everything that works on it; ``changes`` are settings."""
    model = real_model(sandbox.base_url)

    def make(towns: int = 1, **changes: Any) -> Bench:
        parts = {name: changes.pop(name) for name in Bench.PARTS & changes.keys()}
        return Bench(
            site=site_of(settings_of(site_name, **changes)),
            rows=rows_of(towns),
            ledger=ledger,
            sandbox=sandbox,
            folder=tmp_path / "public",
            changes=changes,
            **{"model": model, **parts},
        )

    yield make
    model.close()
