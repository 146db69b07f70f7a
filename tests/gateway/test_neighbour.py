"""`require_pairing = false`: the owner's own programs are let in, commands and others are not."""

import asyncio
import os
import resource
import signal
import socket
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest
from tests.gateway.making import Served, serving

from dragoman.sandbox import brand
from dragoman.transports.neighbour import is_ours, is_refused

ASK = """
import http.client, sys
c = http.client.HTTPConnection("127.0.0.1", int(sys.argv[1]), timeout=60)
for method, path, body in (("GET", "/api/status", None), ("PUT", "/api/config", "{}"),
                           ("POST", "/api/tokens", "{}"), ("POST", "/api/pair-codes", "{}")):
    c.request(method, path, body, {"content-type": "application/json"})
    answer = c.getresponse()
    text = answer.read().decode()
    print(answer.status, end=" ")
    if answer.status == 401:
        c.close()
"""


async def ask(
    served: Served, before: Callable[[], None] | None = None, **how: Any
) -> tuple[str, str, int | None]:
    process = await asyncio.create_subprocess_exec(
        sys.executable if not how else "/usr/bin/env", *(["python3"] if how else []),
        "-c", ASK, str(served.port), stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        preexec_fn=before, **how,
    )  # fmt: skip
    out, err = await process.communicate()
    return out.decode(), err.decode(), process.returncode


async def test_a_program_of_the_owner_is_let_in():
    async with serving(require_pairing=False, token=False) as served:
        out, err, _ = await ask(served)
        assert out.startswith("200 ") and out.endswith(" 201 201 "), out + err


@pytest.mark.parametrize("lower", [None, 7, 0])
async def test_a_command_is_not_even_with_its_mark_lowered(lower: int | None):
    mark = brand.new()
    brand.live.discard(mark)

    def before() -> None:
        brand.burn(mark)()
        if lower is not None:
            resource.setrlimit(resource.RLIMIT_RTTIME, (lower, lower))
        os.setsid()

    async with serving(require_pairing=False, token=False) as served:
        out, err, code = await ask(served, before)
        assert (out, code) == ("401 401 401 401 ", 0), out + err


@pytest.mark.root  # nobody else can be somebody else
async def test_another_user_is_not():
    async with serving(require_pairing=False, token=False) as served:
        out, err, _ = await ask(served, user=65534, group=65534, extra_groups=[], cwd="/")
        assert out == "401 401 401 401 ", out + err


async def test_a_command_with_a_token_of_its_own_is_nobody_new():
    """The mark closes what is open to all; a token is a token."""
    async with serving(require_pairing=False) as served, served.client() as client:
        assert (await client.get("/api/status")).status_code == 200


@pytest.mark.parametrize("family", [socket.AF_INET, socket.AF_INET6])
def test_who_is_at_the_other_end(family: socket.AddressFamily) -> None:
    host = "127.0.0.1" if family == socket.AF_INET else "::1"
    with socket.create_server((host, 0), family=family) as server:
        here = server.getsockname()[:2]
        with socket.create_connection(here) as client:
            peer = client.getsockname()[:2]
            seen: list[int | None] = []

            def refuses(pid: int | None) -> bool:
                seen.append(pid)
                return False

            assert is_ours(peer, here, refuses) and os.getpid() in seen
            assert not is_ours(peer, here, lambda pid: pid == os.getpid())
            assert not is_ours((peer[0], 1), here, refuses)
            accepted, _ = server.accept()
            accepted.close()
        assert not is_ours(peer, here, refuses)  # closed: nobody holds it


def test_a_program_of_ipv4_at_a_server_of_both() -> None:
    with socket.create_server(("::", 0), family=socket.AF_INET6, dualstack_ipv6=True) as server:
        with socket.create_connection(("127.0.0.1", server.getsockname()[1])) as client:
            accepted, name = server.accept()
            with accepted:
                assert name[0].startswith("::ffff:") and client
                assert is_ours(name[:2], accepted.getsockname()[:2], lambda pid: False)


class Children:
    """Children that have our sockets, and are gone as soon as they are looked at."""

    def __init__(self, chain: bool = False) -> None:
        self.there: set[int] = set()
        self.chain = chain  # each is followed by another one before it goes
        self.gone = 0

    def make(self) -> None:
        if not (pid := os.fork()):
            signal.pause()
            os._exit(0)
        self.there.add(pid)

    def end(self, pid: int) -> None:
        os.kill(pid, signal.SIGKILL)
        self.there.remove(pid)
        os.waitpid(pid, 0)
        self.gone += 1

    def refuses(self, pid: int | None) -> bool:
        """As the daemon judges one that vanishes while it looks at it."""
        if pid is None or pid not in self.there:
            return False
        if self.chain:
            self.make()
        self.end(pid)
        return True


@pytest.mark.parametrize("chain", [False, True])
def test_a_child_that_is_gone_again_keeps_nobody_out_unless_another_follows(chain: bool) -> None:
    """Between fork and exec it has its parent's sockets; who is gone holds nothing."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        here = server.getsockname()[:2]
        with socket.create_connection(here) as client:
            peer = client.getsockname()[:2]
            for look in (is_ours, is_refused):
                children = Children(chain)
                children.make()
                try:
                    assert look(peer, here, children.refuses) is ((look is is_ours) is not chain)
                    assert children.gone >= 1
                finally:
                    for pid in tuple(children.there):
                        children.end(pid)
