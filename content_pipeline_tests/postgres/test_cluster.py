"""A cluster on disk is whole or not there, whatever happens while it is made."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from content_pipeline.core.errors import DatabaseUnavailable
from content_pipeline.postgres.address import answers
from content_pipeline.postgres.binaries import Binaries, find_binaries
from content_pipeline.postgres.server import EmbeddedServer

REPOSITORY = Path(__file__).parents[2]
MakeServer = Callable[..., EmbeddedServer]

ENSURE = """
import sys
from pathlib import Path
from content_pipeline.postgres.binaries import Binaries
from content_pipeline.postgres.server import EmbeddedServer
binaries = Binaries(home=Path(sys.argv[3]), version="0")
EmbeddedServer(
    Path(sys.argv[1]), system_home=Path(sys.argv[2]), find_binaries=lambda: binaries
).ensure_running()
"""


def programs(home: Path, initdb: str) -> Binaries:
    """Lay out programs as the wheel does, with ``initdb`` as the text of a shell script."""
    binaries = Binaries(home=home, version="0")
    binaries.initdb.parent.mkdir(parents=True)
    binaries.initdb.write_text(f"#!/bin/sh\n{initdb}\n")
    binaries.initdb.chmod(0o755)
    binaries.postgres.write_text("#!/bin/sh\nexit 1\n")
    binaries.postgres.chmod(0o755)
    return binaries


def folders(server: EmbeddedServer) -> list[str]:
    return sorted(path.name for path in (server.data_home / "postgres").glob("data*"))


def test_a_process_killed_while_initdb_works_leaves_nothing_that_hinders_the_next(
    server: EmbeddedServer, place: Path
) -> None:
    slow = f"""{find_binaries().initdb} "$@"; for last; do :; done
for given; do case $given in --pgdata=*) echo $$ > "${{given#*=}}/pid";; esac; done
exec sleep 60"""
    binaries = programs(place / "slow", slow)
    arguments = [str(server.data_home), str(server.system_home), str(binaries.home)]
    process = subprocess.Popen([sys.executable, "-c", ENSURE, *arguments], cwd=REPOSITORY)
    while not (found := list(server.data_home.glob("postgres/data.unfinished-*/pid"))):
        assert process.poll() is None
        time.sleep(0.01)
    while not (orphan := found[0].read_text()):
        time.sleep(0.01)
    process.kill()
    process.wait()
    assert folders(server) == [found[0].parent.name]
    (server.data_home / "postgres" / "data.backup").mkdir()

    assert answers(server.ensure_running())  # while the orphan still runs

    assert folders(server) == ["data", "data.backup"]
    os.kill(int(orphan), signal.SIGKILL)


@pytest.mark.parametrize(
    ("said", "advice"),
    [
        ("could not write to file: No space left on device", "Free disk space"),
        ("error while loading shared libraries: libz.so.1", "Install the library"),
        ("could not look up effective user ID 1: user does not exist", "an entry in /etc/passwd"),
        ("something nobody foresaw", "The server's log says more"),
    ],
)
def test_a_failed_initdb_is_told_in_its_own_words_with_advice_and_leaves_nothing(
    make_server: MakeServer, place: Path, said: str, advice: str
) -> None:
    binaries = programs(place / "programs", f"echo '{said}' >&2; exit 1")
    server = make_server(find_binaries=lambda: binaries)

    with pytest.raises(DatabaseUnavailable) as caught:
        server.ensure_running()

    assert said in str(caught.value)
    assert advice in str(caught.value)
    assert "CONTENT_PIPELINE_DATABASE_URL" in str(caught.value)
    assert folders(server) == []


def test_a_database_that_could_not_be_created_leaves_no_cluster(
    make_server: MakeServer, place: Path
) -> None:
    binaries = programs(place / "programs", "exit 0")
    binaries.postgres.write_text("#!/bin/sh\necho 'ERROR:  out of luck'\n")
    server = make_server(find_binaries=lambda: binaries)

    with pytest.raises(DatabaseUnavailable, match="out of luck"):
        server.ensure_running()

    assert folders(server) == []
