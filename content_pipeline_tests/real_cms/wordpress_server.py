"""A real WordPress on a MariaDB of its own, for one test session, and the hands of its people.

What belongs here: starting and ending both by their process ids, emptying the site, and what a
person or a plugin does to it. What is asked as a person goes over REST as another user than ours.
"""

import base64
import http.client
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from content_pipeline.config import environment
from content_pipeline_tests.real_cms.presence import Programs

HERE = Path(__file__).parent / "wordpress"
GUARD = (
    Path(__file__).parent.parent.parent / "companions" / "wordpress" / "content-pipeline-guard.php"
)
HOST = "127.0.0.1"
START_S = 60.0
"""Both are up within two seconds; on a machine with every core busy ten times that is seen."""
POLL_S = 0.05
WORKERS = 4
TRIES = 3
"""Requests that PHP serves at once."""

Json = Any


@dataclass(slots=True, kw_only=True)
class WordPressServer:
    """A running site."""

    programs: Programs
    folder: Path
    port: int
    users: dict[str, str] = field(default_factory=dict)
    """Login: application password."""
    version: str = ""

    @property
    def url(self) -> str:
        return f"http://{HOST}:{self.port}"

    # --- what is so ----------------------------------------------------------------------------

    def sql(self, statement: str) -> list[list[str]]:
        """The rows that the database itself answers."""
        command = [self.programs.mariadb, "--no-defaults", "-uroot", "-S", self._socket]
        command += ["--batch", "--skip-column-names", "wordpress", "-e", statement]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
        return [line.split("\t") for line in done.stdout.splitlines()]

    def visible(self, path: str) -> str | None:
        """What a visitor sees at ``path``, comments left out; None when there is nothing."""
        connection = http.client.HTTPConnection(HOST, self.port, timeout=START_S)
        try:
            connection.request("GET", path)
            answer = connection.getresponse()
            text = answer.read().decode()
        finally:
            connection.close()
        if answer.status != 200:
            return None
        return re.sub(r"<!--.*?-->", "", text, flags=re.DOTALL)

    def id_at(self, path: str) -> int:
        """The page that stands at ``path``, published or not."""
        slug = path.strip("/").rpartition("/")[2]
        rows = self.sql(
            f"SELECT ID FROM wp_posts WHERE post_name = '{slug}' AND post_type IN ('page', 'post') "
            "ORDER BY post_status = 'publish' DESC, ID LIMIT 1"
        )
        return int(rows[0][0])

    # --- what people do ------------------------------------------------------------------------

    def as_person(self, method: str, route: str, document: Mapping[str, Any] | None = None) -> Json:
        """A request of an editor who is not ours."""
        credentials = base64.b64encode(f"person:{self.users['person']}".encode()).decode()
        headers = {"Authorization": f"Basic {credentials}", "Content-Type": "application/json"}
        connection = http.client.HTTPConnection(HOST, self.port, timeout=START_S)
        try:
            body = None if document is None else json.dumps(document)
            connection.request(method, f"/wp-json/wp/v2/{route}", body, headers)
            answer = connection.getresponse()
            text = answer.read()
        finally:
            connection.close()
        assert answer.status < 300, f"{method} {route} is answered {answer.status}: {text[:500]!r}"
        return json.loads(text)

    def empty(self) -> None:
        """A site without a page, a fault or a plugin."""
        self.sql("TRUNCATE wp_posts; TRUNCATE wp_postmeta; TRUNCATE wp_term_relationships")
        self.set_faults({})
        (self.folder / "FAULTS.json.log").unlink(missing_ok=True)
        self.install_guard(wanted=False)
        self.install("world.php", None)
        (self.folder / "requests.log").unlink(missing_ok=True)

    def install_guard(self, *, wanted: bool) -> None:
        """Put our companion plugin there, or take it away."""
        file = self._plugins / GUARD.name
        if wanted:
            shutil.copyfile(GUARD, file)
        else:
            file.unlink(missing_ok=True)

    def install(self, name: str, code: str | None) -> None:
        """Put a must-use plugin of ``code`` there; None takes it away."""
        file = self._plugins / name
        file.unlink(missing_ok=True)
        if code is not None:
            file.write_text(code)

    def set_faults(self, faults: Mapping[str, str]) -> None:
        """Let storing a page whose slug begins so go wrong afterwards, as in ``faults.php``."""
        file = self.folder / "FAULTS.json"
        new = file.with_suffix(".new")
        new.write_text(json.dumps(faults))
        new.replace(file)

    def struck(self) -> list[str]:
        """Every fault that struck since the site was emptied."""
        log = self.folder / "FAULTS.json.log"
        return log.read_text().split() if log.exists() else []

    @contextmanager
    def maintenance(self) -> Iterator[None]:
        """WordPress updates itself meanwhile."""
        file = self.programs.docroot / ".maintenance"
        file.write_text("<?php $upgrading = time();")
        try:
            yield
        finally:
            file.unlink()

    @contextmanager
    def without_database(self) -> Iterator[None]:
        """The database lets WordPress in no more."""
        self.sql("ALTER USER wordpress@localhost ACCOUNT LOCK")
        try:
            yield
        finally:
            self.sql("ALTER USER wordpress@localhost ACCOUNT UNLOCK")

    @contextmanager
    def option(self, name: str, value: str) -> Iterator[None]:
        """A setting of the site is another one meanwhile."""
        ((before,),) = self.sql(f"SELECT option_value FROM wp_options WHERE option_name = '{name}'")
        change = "UPDATE wp_options SET option_value = '{}' WHERE option_name = '" + name + "'"
        self.sql(change.format(value))
        try:
            yield
        finally:
            self.sql(change.format(before))

    def requests(self) -> list[str]:
        """Method and path of every request since the site was emptied."""
        log = self.folder / "requests.log"
        return log.read_text(errors="replace").splitlines() if log.exists() else []

    def locked(self) -> AbstractContextManager[None]:
        """Nothing can be written to the table of pages meanwhile, and everything be read."""
        return self.holding("LOCK TABLES wp_posts READ")

    @contextmanager
    def holding(self, statement: str) -> Iterator[None]:
        """A session of the database holds what ``statement`` takes, meanwhile."""
        command = [self.programs.mariadb, "--no-defaults", "-uroot", "-S", self._socket]
        command += ["--unbuffered", "--batch", "--skip-column-names", "wordpress"]
        session = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert session.stdin is not None
        assert session.stdout is not None
        try:
            session.stdin.write(f"{statement}; SELECT 'held';\n")
            session.stdin.flush()
            while session.stdout.readline().strip() != "held":
                assert session.poll() is None, f"{statement} was refused"
            yield
        finally:
            session.stdin.close()
            session.wait()
            session.stdout.close()

    # --- its processes -------------------------------------------------------------------------

    @property
    def _socket(self) -> str:
        return str(self.folder / "db.sock")

    @property
    def _plugins(self) -> Path:
        return self.folder / "wp-content" / "mu-plugins"

    @property
    def _environment(self) -> dict[str, str]:
        return {
            "PATH": environment().get("PATH", ""),
            "WORDPRESS_UNDER_TEST": str(self.folder),
            "PHP_CLI_SERVER_WORKERS": str(WORKERS),
        }

    @contextmanager
    def database(self) -> Iterator[None]:
        """MariaDB, as long as the block runs."""
        with self._running(self._database_command(), "db.log") as process:
            self._wait(process, lambda: self._server_sql("SELECT 1"), "db.log")
            self._server_sql(
                "CREATE DATABASE IF NOT EXISTS wordpress CHARACTER SET utf8mb4; "
                "CREATE USER IF NOT EXISTS wordpress@localhost IDENTIFIED BY 'wordpress'; "
                "GRANT ALL ON wordpress.* TO wordpress@localhost"
            )
            yield

    @contextmanager
    def site(self) -> Iterator[None]:
        """WordPress, as long as the block runs; the database must."""
        command = [self.programs.php, "-d", "memory_limit=256M", "-S", f"{HOST}:{self.port}"]
        command += ["-t", str(self.programs.docroot), str(HERE / "router.php")]
        with self._running(command, "php.log") as process:
            self._wait(process, self._answers, "php.log")
            yield

    def prepare(self) -> None:
        """The data folder of the database, and the folder of content."""
        as_root = ["--user=root"] if os.getuid() == 0 else []
        command = [self.programs.install_db, "--no-defaults", f"--datadir={self.folder / 'db'}"]
        command += ["--auth-root-authentication-method=normal", "--skip-test-db", *as_root]
        self._make_database(command)
        self._plugins.mkdir(parents=True)
        shutil.copyfile(HERE / "faults.php", self._plugins / "faults.php")
        themes = self.programs.docroot / "wp-content" / "themes"
        (self.folder / "wp-content" / "themes").symlink_to(themes)
        config = self.programs.docroot / "wp-config.php"
        if config.read_bytes() != (HERE / "config.php").read_bytes():
            shutil.copyfile(HERE / "config.php", config)

    def _make_database(self, command: list[str]) -> None:
        """Run ``command``, again if need be: on a busy machine it was seen to fail for once."""
        for _ in range(TRIES):
            made = subprocess.run(command, check=False, capture_output=True, text=True)
            if made.returncode == 0:
                return
            shutil.rmtree(self.folder / "db", ignore_errors=True)
        raise AssertionError(f"no database was made: {made.stdout[-2_000:]}{made.stderr[-2_000:]}")

    def install_wordpress(self) -> None:
        """Tables, users and settings."""
        out = self.folder / "installed.json"
        command = [self.programs.php, str(HERE / "install.php"), str(self.programs.docroot)]
        subprocess.run(
            [*command, self.url, str(out)], check=True, env=self._environment, capture_output=True
        )
        document = json.loads(out.read_text())
        self.users, self.version = document["users"], document["version"]

    def _database_command(self) -> list[str]:
        as_root = ["--user=root"] if os.getuid() == 0 else []
        return [
            self.programs.mariadbd,
            "--no-defaults",
            *as_root,
            f"--datadir={self.folder / 'db'}",
            f"--socket={self._socket}",
            "--skip-networking",
            "--innodb-buffer-pool-size=64M",
            # Test data: nobody misses it after a power cut.
            "--innodb-flush-log-at-trx-commit=0",
            "--skip-innodb-doublewrite",
        ]

    def _server_sql(self, statement: str) -> None:
        command = [self.programs.mariadb, "--no-defaults", "-uroot", "-S", self._socket]
        done = subprocess.run([*command, "-e", statement], capture_output=True, text=True)
        if done.returncode:
            raise OSError(done.stderr)

    def _answers(self) -> None:
        connection = http.client.HTTPConnection(HOST, self.port, timeout=START_S)
        try:
            connection.request("GET", "/wp-json/?_fields=name")
            answer = connection.getresponse()
            assert json.loads(answer.read())["name"]
        finally:
            connection.close()

    @contextmanager
    def _running(self, command: list[str], log: str) -> "Iterator[subprocess.Popen[bytes]]":
        """The program in a group of its own, which ends with the block."""
        with (self.folder / log).open("ab") as output:
            process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env=self._environment,
                start_new_session=True,
            )
        try:
            yield process
        finally:
            os.killpg(process.pid, signal.SIGKILL)
            process.wait()

    def _wait(self, process: "subprocess.Popen[bytes]", answers: Any, log: str) -> None:
        deadline = time.monotonic() + START_S
        while process.poll() is None and time.monotonic() < deadline:
            try:
                answers()
            except OSError:
                time.sleep(POLL_S)
            else:
                return
        said = (self.folder / log).read_text(errors="replace")[-2000:]
        raise AssertionError(f"{process.args!r} did not answer; it says:\n{said}")


@contextmanager
def serving(programs: Programs, folder: Path) -> Iterator[WordPressServer]:
    """A new, empty WordPress in ``folder``, from its first answer to the end of the block."""
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        port = probe.getsockname()[1]
    server = WordPressServer(programs=programs, folder=folder, port=port)
    server.prepare()
    with server.database():
        server.install_wordpress()
        with server.site():
            server.empty()
            yield server
