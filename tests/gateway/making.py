"""Gateways for tests: a real one on a free port of loopback, in front of a host in memory."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from types import SimpleNamespace
from typing import Any

import httpx
import msgspec

from dragoman.daemon.guests import Guests
from dragoman.engine.door import Door
from dragoman.gateway import open_gateway, tokens
from dragoman.host.descendants import Descendants
from dragoman.host.desks import Desks
from dragoman.settings.host import Gateway, Limits
from dragoman.settings.model import Settings
from dragoman.testing.host import EchoTool, host_of, memory_door
from dragoman.testing.script import Scripted


class Served:
    """A listening gateway and what a test wants of it."""

    def __init__(self, gate: Any, token: str) -> None:
        self.gate = gate
        self.door: Door = gate.door
        self.address: str = gate.address
        self.ws = gate.address.replace("http", "ws", 1)
        self.port = int(gate.address.rpartition(":")[2])
        self.token = token

    def client(self, **options: Any) -> httpx.AsyncClient:
        headers = {"authorization": f"Bearer {self.token}", **options.pop("headers", {})}
        return httpx.AsyncClient(base_url=self.address, headers=headers, timeout=60, **options)

    def stranger(self, **options: Any) -> httpx.AsyncClient:
        return httpx.AsyncClient(base_url=self.address, timeout=60, **options)

    async def raw(self, data: bytes, *, until_closed: bool = True, within: float = 60.0) -> bytes:
        """Send bytes as they are; returns what came back."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port)
        try:
            writer.write(data)
            async with asyncio.timeout(within):
                return await (reader.read() if until_closed else reader.read(65536))
        finally:
            writer.close()


@contextlib.asynccontextmanager
async def serving(
    script: list[Any] | Scripted | None = None,
    *,
    door: Door | None = None,
    limits: Limits | None = None,
    tools: Any = None,
    token: bool = True,
    data_dir: str = "",
    **gateway: Any,
) -> AsyncIterator[Served]:
    """A gateway that is closed at the end; keyword arguments are keys of `[gateway]`."""
    if door is None:
        scripted = script if isinstance(script, Scripted) else Scripted(script or ["hello"])
        door = memory_door(scripted, [EchoTool()] if tools is None else tools)
    settings = msgspec.structs.replace(
        Settings(), gateway=Gateway(**{"port": 0, **gateway}), limits=limits or Limits()
    )
    composed = SimpleNamespace(
        door=door,
        settings=settings,
        config=SimpleNamespace(loaded=SimpleNamespace(sources={})),
        places=SimpleNamespace(data_dir=data_dir),
        descendants=Descendants(),
    )
    desks = Desks(door, settings)
    guests = Guests(settings.limits.max_clients, lambda link: None)
    gate = await open_gateway(composed, desks, guests)
    secret = ""
    if token:
        _, secret = await tokens.new_token(host_of(door).store, "test")
    try:
        yield Served(gate, secret)
    finally:
        await guests.dismiss(1.0)
        await gate.close()
        await desks.close()
        await host_of(door).stop(0.5)


def events_of(text: str) -> list[tuple[str, str]]:
    """Server-sent events as (name, data)."""
    found = []
    for block in text.split("\n\n"):
        fields = dict(line.partition(": ")[::2] for line in block.split("\n") if line[:1] != ":")
        if "data" in fields:
            found.append((fields.get("event", "message"), fields["data"]))
    return found
