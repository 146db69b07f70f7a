"""A look for an Ollama: what it says is taken, whatever else happens is a no, and soon."""

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from dragoman.providers.probe import ollama_model


@contextmanager
def server(answer: bytes) -> Iterator[tuple[str, list[bytes]]]:
    """Answers one connection with these bytes."""
    asked: list[bytes] = []
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def serve() -> None:
            connection, _ = listening.accept()
            with connection:
                asked.append(connection.recv(1000))
                connection.sendall(answer)

        thread = threading.Thread(target=serve)
        thread.start()
        yield f"http://127.0.0.1:{listening.getsockname()[1]}/x", asked
        thread.join()


def test_the_first_model_with_a_name() -> None:
    body = b'{"models":[{"name":""},{"name":"llama3:8b","size":4},{"name":"other"}],"more":1}'
    with server(b"HTTP/1.0 200 OK\r\n\r\n" + body) as (address, asked):
        assert ollama_model(address) == "llama3:8b"
    assert asked[0].startswith(b"GET /api/tags HTTP/1.0\r\nHost: 127.0.0.1:")


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{}",
        b'{"models":[]}',
        b'{"models":5}',
        b"not json",
        b"\xff",
        b"[1]",
        b'{"x":' * 30_000,
    ],
)
def test_whatever_is_no_list_of_models_is_a_no(body: bytes) -> None:
    with server(b"HTTP/1.0 200 OK\r\n\r\n" + body) as (address, _):
        assert ollama_model(address) is None


@pytest.mark.parametrize("address", ["https://127.0.0.1:1", "unix:///x", "http://", "nonsense"])
def test_addresses_that_are_not_looked_at(address: str) -> None:
    assert ollama_model(address) is None


def test_nobody_there() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    assert ollama_model(f"http://127.0.0.1:{port}") is None
