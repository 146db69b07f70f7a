"""The one way out of a network of its own: a proxy of ours that listens inside of it.

A command with listed domains gets an empty network. Before it starts, its process opens a socket
in there and hands it to us: sockets belong to the network that they were made in, so what listens
is reachable from the sandbox alone, and nothing else is reachable from the sandbox.
"""

import asyncio
import fcntl
import os
import socket
import struct
from collections.abc import Sequence

from dragoman.engine.faults import Refused

from .proxy import Proxy

PORT = 3128
_FLAGS, _UP = 0x8914, 0x1  # SIOCSIFFLAGS, IFF_UP
_serving: set[asyncio.Task[None]] = set()


def outlet_for(domains: Sequence[str]) -> "CommandProxy":
    """Raises Refused where a command can have no network of its own."""
    from .room import networks

    if not networks():
        raise Refused(
            "Commands of this agent reach listed domains only, and this system lets us give "
            "them no network of their own.",
            "Allow user namespaces, or set `domains` to nothing.",
        )
    return CommandProxy(domains)


class CommandProxy:
    """The proxy of one command."""

    def __init__(self, domains: Sequence[str]) -> None:
        self.proxy = Proxy(domains)
        self._ours, self._theirs = socket.socketpair()

    @property
    def keep(self) -> int:
        """The descriptor that the command holds as long as it lives."""
        return self._theirs.fileno()

    @property
    def env(self) -> dict[str, str]:
        address = f"http://127.0.0.1:{PORT}"
        names = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy")
        return {**dict.fromkeys(names, address), "NO_PROXY": "", "no_proxy": ""}

    def enter(self) -> None:
        """What the child calls in its own network, before it loses the right to."""
        with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
            fcntl.ioctl(any_socket, _FLAGS, struct.pack("16sH14x", b"lo", _UP))
        listener = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(("127.0.0.1", PORT))
        listener.listen(64)
        socket.send_fds(self._theirs, [b"."], [listener.fileno()])
        listener.close()

    def started(self) -> None:
        """What we do once the command runs, or has failed to."""
        self._theirs.close()
        self._ours.setblocking(False)
        try:
            _, found, _, _ = socket.recv_fds(self._ours, 1, 1)
        except BlockingIOError:  # it never came to be
            found = []
        if not found:
            self._ours.close()
            return
        for extra in found[1:]:
            os.close(extra)
        listener = socket.socket(fileno=found[0])
        task = asyncio.get_running_loop().create_task(self.proxy.serve(listener, self._ours))
        _serving.add(task)
        task.add_done_callback(_serving.discard)
