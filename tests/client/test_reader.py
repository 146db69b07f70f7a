"""Waiting for something to print ends when nobody reads it any more."""

import os
import socket
import tempfile
import threading

import pytest

from dragoman.client.reader import ready


def test_what_came_is_told_before_a_reader_that_left() -> None:
    ours, theirs = socket.socketpair()
    reader, writer = os.pipe()
    os.close(reader)
    with ours, theirs:
        theirs.send(b"x")
        assert ready((ours,), writer) == [ours]
        ours.recv(1)
        with pytest.raises(BrokenPipeError):
            ready((ours,), writer)
        theirs.close()
        assert ready((ours,), writer) == [ours]  # its end is something to read
    os.close(writer)


def test_a_socket_may_be_what_is_written_to() -> None:
    ours, theirs = socket.socketpair()
    out, other = socket.socketpair()
    with ours, theirs, out:
        other.close()
        with pytest.raises(BrokenPipeError):
            ready((ours,), out.fileno())


def test_files_terminals_and_closed_descriptors_have_no_reader_that_leaves() -> None:
    ours, theirs = socket.socketpair()
    main, terminal = os.openpty()
    gone = os.dup(main)
    os.close(gone)
    with ours, theirs, tempfile.TemporaryFile() as file, open(os.devnull, "wb") as null:
        for fd in (file.fileno(), null.fileno(), terminal, gone, -1):
            timer = _later(theirs)
            assert ready((ours,), fd) == [ours]
            timer.join()
            ours.recv(1)
    os.close(main)
    os.close(terminal)


def _later(sock: socket.socket) -> threading.Timer:
    timer = threading.Timer(0.05, sock.send, (b"x",))
    timer.start()
    return timer
