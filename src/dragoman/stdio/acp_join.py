"""`dragoman acp` beside a running daemon: the editor's lines go to the daemon's own ACP socket.

So the sessions of an editor are the daemon's sessions, and every other client can see, drive and
approve them. The first line and its answer are carried before anything is imported; a relay takes
over from there.
"""

import os
import select
import socket

from dragoman.stdio.joining import CHUNK, write

_LONGEST = 1024 * 1024  # of a first line that is carried so early


class Begun:
    """A conversation with the daemon that has begun."""

    def __init__(self, sock: socket.socket) -> None:
        self.sock = sock
        self.heard: list[bytes] = []  # lines of the editor that the daemon has
        self.told: list[bytes] = []  # lines of the daemon that the editor has
        self.rest = b""  # of the editor's input: not sent yet
        self.left = b""  # of the daemon's output: not a whole line yet


def greet(sock: socket.socket, stdin: int = 0, stdout: int = 1) -> Begun:
    """Carry the first line to the daemon and its answer back.

    Returns early when the input ends, the line is long or the daemon leaves: the relay, which has
    patience, goes on with what there is.
    """
    begun = Begun(sock)
    while not begun.told:
        ready = select.select([stdin, sock.fileno()], [], [])[0]
        if stdin in ready and not begun.heard:
            data = os.read(stdin, CHUNK)
            begun.rest = (begun.rest + data).lstrip()  # blank lines say nothing
            line, end, rest = begun.rest.partition(b"\n")
            if not data or len(begun.rest) > _LONGEST:
                break
            if end:
                begun.heard.append(line)
                begun.rest = rest
                sock.sendall(line + b"\n")
        elif stdin in ready:
            break  # more than one line at once: a client in a hurry
        if sock.fileno() in ready:
            data = sock.recv(CHUNK)
            *lines, begun.left = (begun.left + data).split(b"\n")
            for line in lines:
                write(stdout, line + b"\n")
                begun.told.append(line)
            if not data:
                break
    return begun
