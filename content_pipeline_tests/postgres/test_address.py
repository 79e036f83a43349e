"""Alive means answering."""

import socket
from pathlib import Path

import psycopg
import pytest

from content_pipeline.postgres.address import ServerAddress, answers
from content_pipeline.postgres.server import EmbeddedServer


def administer(address: ServerAddress, statement: str) -> None:
    with psycopg.connect(
        host=str(address.socket_dir), user="postgres", dbname="postgres", autocommit=True
    ) as connection:
        connection.execute(statement)


def test_a_server_whose_connections_are_all_taken_is_alive(
    shared: EmbeddedServer, address: ServerAddress
) -> None:
    pid = shared.status().pid
    administer(address, "ALTER ROLE content_pipeline CONNECTION LIMIT 0")
    try:
        with pytest.raises(psycopg.OperationalError, match="too many connections"):
            psycopg.connect(host=str(address.socket_dir), user=address.user)
        assert answers(address)
        assert shared.ensure_running() == address
        assert shared.status().pid == pid
    finally:
        administer(address, "ALTER ROLE content_pipeline CONNECTION LIMIT -1")


def test_nobody_answers_where_there_is_no_socket(short_tmp: Path) -> None:
    assert not answers(ServerAddress(socket_dir=short_tmp / "missing"))


def test_a_listener_that_never_answers_is_not_alive(place: Path) -> None:
    address = ServerAddress(socket_dir=place)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(address.socket))
        listener.listen()

        assert not answers(address)


def test_the_socket_has_the_name_postgresql_gives_it(
    shared: EmbeddedServer, address: ServerAddress
) -> None:
    assert address.socket.is_socket()
