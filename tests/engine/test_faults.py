"""What a fault says, with its hint."""

import asyncio
import errno
import socket

import pytest

from dragoman.engine.faults import BadInput, in_words


@pytest.mark.parametrize(
    ("message", "hint", "said"),
    [
        ("No such file.", "Look again.", "No such file. Look again."),
        ("There is no a.txt", "Look again.", "There is no a.txt. Look again."),
        ("There is no a.txt", "", "There is no a.txt"),
        ("It changed:\n+mine\n", "Put it away.", "It changed:\n+mine\nPut it away."),
        ("", "Look again.", "Look again."),
    ],
)
def test_the_hint_follows_the_message(message: str, hint: str, said: str) -> None:
    assert str(BadInput(message, hint)) == said


@pytest.mark.parametrize(
    ("problem", "said"),
    [
        (FileNotFoundError(errno.ENOENT, "No such file or directory", "tracker-mcp"),
         "No such file or directory: tracker-mcp"),
        (ConnectionRefusedError(errno.ECONNREFUSED, "Connect call failed ('127.0.0.1', 1)"),
         "Connection refused"),
        (OSError(errno.EACCES, "error while attempting to bind on address ('127.0.0.1', 80): no"),
         "Permission denied"),
        (OSError("Multiple exceptions: [Errno 111] Connect call failed, [Errno 113] No route"),
         "Multiple exceptions: Connect call failed, No route"),
        (OSError(errno.EACCES, "the system gives no socket for it"),
         "the system gives no socket for it"),
        (socket.gaierror(-2, "Name or service not known"), "Name or service not known"),
        (RuntimeError("All connection attempts failed: [Errno 111] refused"),
         "All connection attempts failed: refused"),
        (ValueError(), "ValueError"),
    ],
)  # fmt: skip
def test_an_error_of_the_system_is_told_without_its_number(problem: Exception, said: str) -> None:
    assert in_words(problem) == said


async def test_a_refused_connection_is_told_in_words() -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        with pytest.raises(OSError) as found:
            await asyncio.open_connection(*taken.getsockname())
    assert in_words(found.value) == "Connection refused"
