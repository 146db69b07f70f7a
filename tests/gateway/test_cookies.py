"""A browser's cookie goes to every port of this machine, so it must be worth nothing to a tool."""

import asyncio
import os
import pwd
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest
from tests.gateway.making import Served, serving
from tests.gateway.test_auth import pair

from dragoman.sandbox import brand
from dragoman.transports import neighbour

# What a server that a tool started does with the cookie of whoever looks at its page.
STEAL = """
import ctypes, http.client, json, socket, sys
port, cookie, origin = int(sys.argv[1]), sys.argv[2], sys.argv[3]
if sys.argv[4] == "hides":
    ctypes.CDLL(None).prctl(4, 0, 0, 0, 0)  # nobody may look at its descriptors
token = cookie.partition("=")[2]
if sys.argv[4] == "several paths":  # MPTCP, whose sockets are in no table by the number they have
    plain = socket.socket
    def made(family=-1, kind=-1, proto=-1, fileno=None):
        return plain(family, kind, 262 if fileno is None else proto, fileno)
    socket.socket = made
ways = ({"cookie": cookie, "origin": origin, "x-dragoman": "1"},
        {"authorization": f"Bearer {token}"}, {"sec-websocket-protocol": f"bearer.{token}"})
for headers in ways:
    for method, path in (("GET", "/api/status"), ("PUT", "/api/config"), ("POST", "/api/sessions")):
        c = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
        body = None if method == "GET" else "{}"
        c.request(method, path, body, {"content-type": "application/json", **headers})
        if sys.argv[4] == "leaves":
            c.close()
            continue
        print(c.getresponse().status, end=" ")
        c.close()
"""


async def stolen(served: Served, how: str, before: Callable[[], None] | None, **user: Any) -> str:
    async with served.stranger() as browser:
        await pair(served, browser)
        assert (await browser.get("/api/status")).status_code == 200
        [(name, value)] = browser.cookies.items()
        process = await asyncio.create_subprocess_exec(
            *([sys.executable] if not user else ["/usr/bin/env", "python3"]), "-c", STEAL,
            str(served.port), f"{name}={value}", served.address, how,
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, preexec_fn=before, **user,
        )  # fmt: skip
        out, err = await process.communicate()
        assert process.returncode == 0, err
        assert (await browser.get("/api/status")).status_code == 200  # the browser stays in
        return out.decode()


def marked() -> Callable[[], None]:
    mark = brand.new()
    brand.live.discard(mark)

    def before() -> None:
        brand.burn(mark)()
        os.setsid()

    return before


async def test_the_cookie_is_good_for_the_owners_programs_and_only_as_a_cookie() -> None:
    async with serving(token=False) as served:
        out = (await stolen(served, "plainly", None)).split()
        assert out[0] == "200" and out[2] == "201" and out[3:] == ["401"] * 6, out


@pytest.mark.parametrize("how", ["plainly", "hides", "several paths"])
async def test_a_tool_that_was_told_the_cookie_is_let_in_nowhere(how: str) -> None:
    async with serving(token=False) as served:
        assert (await stolen(served, how, marked())).split() == ["401"] * 9


async def test_nor_one_that_does_not_wait_for_an_answer() -> None:
    async with serving(token=False) as served:
        await stolen(served, "leaves", marked())
        # One after the other: when the last answer is here, all that came before is done.
        assert not (await served.door.list()).sessions


@pytest.mark.root
async def test_nor_another_user_who_listened_at_our_port_before_us() -> None:
    """Who squats on a port is sent the cookies of its name, whatever their own port was."""
    async with serving(token=False) as served:
        nobody = pwd.getpwnam("nobody").pw_uid
        assert (await stolen(served, "plainly", None, user=nobody)).split() == ["401"] * 9
        assert not (await served.door.list()).sessions


@pytest.mark.parametrize(
    ("paired", "comes", "let_in"),
    [
        (1000, 1000, True),
        (1000, 1001, False),
        (1000, 0, True),  # what forwards ports for containers
        (1000, os.geteuid(), True),
        (1000, -1, True),  # of another machine, or of a system that tells nobody
        (-1, 1001, True),
    ],
)
async def test_a_browsers_token_is_good_for_the_user_who_paired_it(
    monkeypatch: pytest.MonkeyPatch, paired: int, comes: int, let_in: bool
) -> None:
    """Who runs the host may be another one than who sits at the browser: a user of its own, say."""
    async with serving(token=False) as served, served.stranger() as browser:
        monkeypatch.setattr(neighbour, "user_of", lambda peer, here: paired)
        await pair(served, browser)
        monkeypatch.setattr(neighbour, "user_of", lambda peer, here: comes)
        [(name, value)] = browser.cookies.items()
        async with served.stranger() as other:
            other.cookies.set(name, value)
            assert (await other.get("/api/status")).status_code == (200 if let_in else 401)
