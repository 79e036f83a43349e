"""Places and servers for these tests; every server a test made is stopped when it ends."""

import os
import shutil
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from sqlalchemy import Engine, create_engine

from content_pipeline.postgres.address import ServerAddress
from content_pipeline.postgres.server import EmbeddedServer
from content_pipeline.postgres.urls import DatabaseUrl, embedded_database_url

MakeServer = Callable[..., EmbeddedServer]
MakeEngine = Callable[[str], Engine]


def fastest_place() -> Path:
    """A place in memory where there is one: a dozen clusters are made, 1,000 synced files each."""
    memory = Path("/dev/shm")
    if memory.is_dir():
        found = os.statvfs(memory)
        if found.f_bavail * found.f_frsize > 2**31 and not found.f_flag & os.ST_NOEXEC:
            return memory
    return Path("/tmp")


@pytest.fixture(scope="session")
def short_tmp() -> Iterator[Path]:
    """A folder every account can enter: below pytest's own, root's server could not go."""
    folder = Path(tempfile.mkdtemp(prefix="cp-", dir=fastest_place()))
    folder.chmod(0o755)
    yield folder
    shutil.rmtree(folder)


@pytest.fixture
def place(short_tmp: Path) -> Path:
    folder = Path(tempfile.mkdtemp(dir=short_tmp))
    folder.chmod(0o755)
    return folder


@pytest.fixture
def make_server(place: Path) -> Iterator[MakeServer]:
    made: list[EmbeddedServer] = []

    def make(data_home: Path | None = None, **fields: object) -> EmbeddedServer:
        home = data_home or place / "project" / ".content_pipeline"
        server = EmbeddedServer(home, system_home=place / "system", **fields)  # type: ignore[arg-type]
        made.append(server)
        return server

    yield make
    for server in made:
        server.stop()
    shutil.rmtree(place)


@pytest.fixture
def server(make_server: MakeServer) -> EmbeddedServer:
    return make_server()


@pytest.fixture(scope="session")
def shared(short_tmp: Path) -> Iterator[EmbeddedServer]:
    """One server for all tests that need no fresh one; a test may find it stopped or killed."""
    place = Path(tempfile.mkdtemp(dir=short_tmp))
    place.chmod(0o755)
    server = EmbeddedServer(place / ".content_pipeline", system_home=place / "system")
    yield server
    server.stop()


@pytest.fixture
def address(shared: EmbeddedServer) -> ServerAddress:
    return shared.ensure_running()


@pytest.fixture
def database(shared: EmbeddedServer) -> DatabaseUrl:
    return embedded_database_url(shared)


@pytest.fixture
def make_engine() -> Iterator[MakeEngine]:
    engines: list[Engine] = []

    def make(url: str) -> Engine:
        engine = create_engine(url, pool_pre_ping=True)
        engines.append(engine)
        return engine

    yield make
    for engine in engines:
        engine.dispose()


@pytest.fixture
def root_only() -> None:
    if os.geteuid() != 0:
        pytest.skip("only root runs the server as somebody else")


@pytest.fixture
def linux_only() -> None:
    if not Path("/proc/self").exists():
        pytest.skip("looks at processes through /proc")
