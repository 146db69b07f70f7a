"""Connections over TLS, also those that never become one; on both event loops."""

import asyncio
import errno
import socket
import ssl
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest
import uvloop

from dragoman.gateway import secure
from dragoman.settings.host import Limits

from .making import Served, serving

ASK = b"GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\n"
Main = Callable[[], Coroutine[Any, Any, None]]


@pytest.fixture(params=["asyncio", "uvloop"])
def run(request: pytest.FixtureRequest) -> Callable[[Main], None]:
    def run(main: Main) -> None:
        factory = uvloop.new_event_loop if request.param == "uvloop" else None
        with asyncio.Runner(loop_factory=factory) as runner:
            runner.run(asyncio.wait_for(main(), 60))

    return run


def trusting() -> ssl.SSLContext:
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


async def connect(served: Served, **more: Any) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    return await asyncio.open_connection("127.0.0.1", served.port, **more)


async def answers(served: Served) -> None:
    """A client that speaks TLS gets an answer."""
    reader, writer = await connect(served, ssl=trusting())
    writer.write(ASK)
    assert b"200 OK" in await reader.readuntil(b"ok\n")
    writer.close()
    await writer.wait_closed()


def test_silent_ones_of_one_address_take_a_quarter_and_keep_nobody_out(
    run: Callable[[Main], None], tmp_path: Path
) -> None:
    async def main() -> None:
        limits = Limits(max_clients=16)
        async with serving(limits=limits, tls_self_signed=True, data_dir=str(tmp_path)) as served:
            held = []
            for number in range(40):
                held.append(await connect(served))
                if number % 2:
                    held[-1][1].write(b"\x16\x03\x01")  # the beginning of a greeting
            await answers(served)
            for reader, _ in held[:36]:  # the oldest went; the last four may still speak
                assert await reader.read() == b""
            assert served.gate.meter.refusals["crowded_out"] >= 36
            assert not served.gate.connections
            for _, writer in held:
                writer.close()
                await writer.wait_closed()

    run(main)


def test_all_of_them_together_have_a_bound(run: Callable[[Main], None], tmp_path: Path) -> None:
    async def main() -> None:
        limits = Limits(max_clients=8)
        async with serving(limits=limits, tls_self_signed=True, data_dir=str(tmp_path)) as served:
            held = []
            for number in range(20):  # one of each address
                held.append(await connect(served, local_addr=(f"127.0.0.{number + 2}", 0)))
            await answers(served)
            for reader, _ in held[:12]:
                assert await reader.read() == b""
            for _, writer in held:
                writer.close()
                await writer.wait_closed()

    run(main)


def test_what_is_no_greeting_ends_that_connection_alone(
    run: Callable[[Main], None], tmp_path: Path
) -> None:
    async def main() -> None:
        async with serving(tls_self_signed=True, data_dir=str(tmp_path)) as served:
            for nonsense in (ASK, b"\0" * 5_000, b"\x16\x03\x01\x00\x05hello"):
                reader, writer = await connect(served)
                writer.write(nonsense)
                assert b"200" not in await reader.read()
                writer.close()
            _, writer = await connect(served)
            writer.transport.abort()
            await answers(served)

    run(main)


def test_nobody_is_lost_while_there_is_no_descriptor(
    run: Callable[[Main], None], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    accept, tries = socket.socket.accept, 0

    def full(self: socket.socket) -> Any:
        nonlocal tries
        tries += 1
        if tries <= 2:
            raise OSError(errno.EMFILE, "Too many open files")
        return accept(self)

    async def main() -> None:
        async with serving(tls_self_signed=True, data_dir=str(tmp_path)) as served:
            with monkeypatch.context() as patch:
                patch.setattr(secure, "_AGAIN_SECONDS", 0.01)
                patch.setattr(socket.socket, "accept", full)
                await answers(served)
            assert tries > 2

    run(main)


def test_who_has_not_greeted_goes_with_the_gateway(
    run: Callable[[Main], None], tmp_path: Path
) -> None:
    async def main() -> None:
        async with serving(tls_self_signed=True, data_dir=str(tmp_path)) as served:
            reader, writer = await connect(served)
            await answers(served)  # the one before was accepted
        assert await reader.read() == b""
        writer.close()
        with pytest.raises(OSError):
            await connect(served)

    run(main)


def test_a_port_that_is_taken_is_said_so(run: Callable[[Main], None], tmp_path: Path) -> None:
    async def main() -> None:
        with socket.create_server(("127.0.0.1", 0)) as other:
            port = other.getsockname()[1]
            more = {"tls_self_signed": True, "data_dir": str(tmp_path)}
            async with serving(port=port, **more) as served:  # a free one, as nobody chose this one
                assert served.port != port
                await answers(served)

    run(main)
