"""The network by domain: a command reaches what is listed, by our proxy, and nothing else."""

import asyncio
import shutil
import socket
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
from tests.policy.test_ordinary_work import PYTHON, Desk, policy_of
from tests.tools.making import Env

from dragoman.engine.content import text_of
from dragoman.engine.faults import BadInput
from dragoman.policy.profiles import STANDARD
from dragoman.sandbox import proxy as proxying
from dragoman.sandbox.bubblewrap import Bubblewrap
from dragoman.sandbox.choose import choose
from dragoman.sandbox.landlock import Landlock, abi, networks
from dragoman.sandbox.proxy import AllowedHost, Proxy, ProxyRefusal
from dragoman.tools.registry import Registry

pytestmark = pytest.mark.skipif(abi() == 0 or not networks(), reason="no network namespaces here")

BACKENDS = [pytest.param(Landlock, id="landlock")]
if shutil.which("bwrap"):
    BACKENDS.append(pytest.param(Bubblewrap, id="bubblewrap"))

FETCH = """
import sys, urllib.request, urllib.error
try:
    with urllib.request.urlopen(sys.argv[1], timeout=60) as answer:
        print("got", answer.status, answer.read().decode())
except urllib.error.HTTPError as error:
    print("refused", error.code, error.read().decode())
except OSError as error:
    print("failed", error)
"""
TUNNEL = """
import http.client, sys
connection = http.client.HTTPConnection("127.0.0.1", 3128, timeout=60)
connection.set_tunnel(sys.argv[1], int(sys.argv[2]))
try:
    connection.request("GET", "/x")
    print("got", connection.getresponse().read().decode())
except OSError as error:
    print("failed", error)
"""
DIRECT = """
import socket, sys
for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM):
    one = socket.socket(socket.AF_INET, kind)
    one.settimeout(2)
    try:
        one.connect((sys.argv[1], int(sys.argv[2])))
        one.send(b"hello")
        print("sent", kind)
    except OSError as error:
        print("failed", kind, error)
"""


@pytest.fixture
async def page() -> AsyncIterator[int]:
    """A server on this machine that the proxy may lead to when it is listed."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = await reader.readuntil(b"\r\n\r\n")
            assert b"proxy" not in head.lower().partition(b"\r\n")[2]
            body = head.split(b" ")[1]
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body) + body)
            await writer.drain()
        finally:  # who only says hello leaves without a request
            writer.close()

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    async with server:
        yield server.sockets[0].getsockname()[1]


async def run(desk: Desk, domains: tuple[str, ...], script: str, *args: object) -> str:
    (desk.work / "script.py").write_text(script)
    policy = policy_of(STANDARD, desk.home)
    registry = Registry(
        lambda env: policy.boundary(env.mode, env.cwd, env.roots, env.reach),
        confine=lambda: desk.backend(domains=domains),  # type: ignore[attr-defined]
        extra_env={"HOME": str(desk.home), "PATH": f"{Path(PYTHON).parent}:/usr/bin:/bin"},
    )
    tool = registry.toolbox().find("bash")
    assert tool is not None
    words = " ".join(str(arg) for arg in args)
    command = {"command": f"{PYTHON} script.py {words}", "timeout": 30}
    done = await tool.run(command, Env(str(desk.work)))  # type: ignore[arg-type]
    return text_of(done.content)


@pytest.fixture(params=BACKENDS)
def desk(tmp_path: Path, request: pytest.FixtureRequest) -> Desk:
    (tmp_path / "home").mkdir()
    found = Desk(tmp_path, tmp_path / "home")
    found.backend = request.param  # type: ignore[attr-defined]
    return found


async def test_a_listed_host_is_reached_and_no_other(desk: Desk, page: int) -> None:
    listed = (f"localhost:{page}", "*.example.org")
    assert "got 200 /x?y=1" in await run(desk, listed, FETCH, f"'http://localhost:{page}/x?y=1'")
    for address in (f"http://127.0.0.1:{page}/", "http://localhost:1/", "http://example.com/",
                    "http://example.org/", f"http://localhost.evil.test:{page}/"):  # fmt: skip
        assert "refused 403" in await run(desk, listed, FETCH, address), address


async def test_a_tunnel_leads_to_what_is_listed(desk: Desk, page: int) -> None:
    listed = (f"localhost:{page}",)
    assert "got /x" in await run(desk, listed, TUNNEL, "localhost", page)
    assert "failed" in await run(desk, listed, TUNNEL, "127.0.0.1", page)
    assert "failed" in await run(desk, listed, TUNNEL, "localhost", 22)


async def test_there_is_no_way_beside_the_proxy(desk: Desk, page: int) -> None:
    said = await run(desk, (f"localhost:{page}",), DIRECT, "127.0.0.1", page)
    assert "sent SocketKind.SOCK_STREAM" not in said and "sent 1" not in said
    said = await run(desk, (f"localhost:{page}",), DIRECT, "192.0.2.1", 53)
    assert "sent" not in said


async def test_the_proxy_ends_with_its_command(desk: Desk, page: int) -> None:
    from dragoman.sandbox import outlet

    await run(desk, (f"localhost:{page}",), FETCH, f"http://localhost:{page}/")
    async with asyncio.timeout(60):
        while outlet._serving:
            await asyncio.wait(set(outlet._serving))
    with pytest.raises(OSError), socket.socket() as other:  # it never listened in our network
        other.connect(("127.0.0.1", outlet.PORT))


@pytest.mark.parametrize(
    ("entry", "host", "port", "holds"),
    [
        ("example.org", "example.org", 443, True),
        ("example.org", "example.org", 80, True),
        ("example.org", "example.org", 22, False),
        ("example.org", "a.example.org", 443, False),
        ("*.example.org", "a.b.example.org", 443, True),
        ("*.example.org", "example.org", 443, False),
        ("*.example.org", "evilexample.org", 443, False),
        ("EXAMPLE.org.", "example.org", 443, True),
        ("example.org:8080", "example.org", 8080, True),
        ("example.org:8080", "example.org", 443, False),
        ("127.0.0.1:80", "127.0.0.1", 80, True),
    ],
)
def test_entries(entry: str, host: str, port: int, holds: bool) -> None:
    assert AllowedHost.of(entry).allows(host, port) is holds


@pytest.mark.parametrize("entry", ["", "*", "*.*", "a b", "http://x", "x/y", "a@b", "x:99999"])
def test_what_is_no_entry(entry: str) -> None:
    with pytest.raises(ValueError, match="no host"):
        AllowedHost.of(entry)


async def test_a_name_may_not_lead_to_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever owns a listed name cannot point it at our own ports."""
    proxy = Proxy(["rebound.test"])
    loop = asyncio.get_running_loop()
    for address in ("127.0.0.1", "169.254.169.254", "0.0.0.0", "::1", "::ffff:127.0.0.1"):

        async def found(*args: object, address: str = address, **more: object) -> object:
            return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, 80))]

        monkeypatch.setattr(loop, "getaddrinfo", found, raising=False)
        with pytest.raises(ProxyRefusal, match="this machine"):
            await proxy._open("rebound.test", 80)


def test_domains_are_never_forgotten_silently() -> None:
    with pytest.raises(BadInput, match="domains"):
        choose("none", domains=("example.org",))
    for backend in ("auto", "landlock", *(["bubblewrap"] if shutil.which("bwrap") else [])):
        assert choose(backend, domains=("example.org",)).domains == ("example.org",)  # type: ignore[attr-defined]


async def test_a_name_does_not_lead_to_another_address_of_this_machine(
    page: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever listens there would take the command for us: our own gateway, say."""
    loop = asyncio.get_running_loop()

    async def here(host: str, port: int, **more: object) -> list[object]:
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", port))]

    monkeypatch.setattr(loop, "getaddrinfo", here)
    monkeypatch.setattr(proxying, "_leads_home", lambda host, address: False)  # one of the network
    with pytest.raises(ProxyRefusal, match="leads to this machine"):
        await Proxy([f"evil.test:{page}"])._open("evil.test", page)
    _, writer = await Proxy([f"localhost:{page}"])._open("localhost", page)
    writer.close()
