"""Nodes in one process, each with a store, a host and a life of its own."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from dragoman.engine.content import Text
from dragoman.engine.door import Door
from dragoman.engine.host import OpenSpec
from dragoman.engine.ports import Tool
from dragoman.fleet.desk import GUEST, Desk, owner_name
from dragoman.fleet.node import Node
from dragoman.providers.scripted import Scripted
from dragoman.store.postgres import PostgresStore
from dragoman.store.postgres.changes import Node as Named
from dragoman.testing.host import host_of, memory_door

LEASE = 1.0


class Place(msgspec.Struct, frozen=True):
    """Where a session is: who writes it, and where it belongs."""

    owner: str
    home: str
    pinned: bool
    alive: bool  # its owner is
    epoch: int


async def place_of(desk: Desk, session: str) -> Place:
    rows = await desk.store.fetch(
        "SELECT owner, home, pinned, epoch, coalesce((SELECT lease > clock_timestamp()"
        " FROM nodes WHERE nodes.owner = sessions.owner), false) AS alive"
        " FROM sessions WHERE id = $1",
        session,
    )
    row = rows[0]
    return Place(row["owner"] or "", row["home"], row["pinned"], row["alive"], row["epoch"])


class Member:
    """One node, and the door of its host."""

    def __init__(self, door: Door, node: Node, store: PostgresStore) -> None:
        self.door = door
        self.node = node
        self.store = store
        self.host = host_of(door)
        self.gone = False

    async def open(self, cwd: str = "/", **spec: Any) -> str:
        return (await self.door.open(OpenSpec(cwd=cwd, **spec))).id

    async def say(self, session: str, text: str, **more: Any) -> Any:
        return await self.door.prompt(session, (Text(text),), **more)

    async def leave(self) -> None:
        """A clean stop."""
        self.gone = True
        await self.host.stop(1.0)
        await self.node.stop()
        await self.store.close()

    async def die(self) -> None:
        """As if killed: nothing is released, nothing more is written."""
        self.gone = True
        for task in self.node._tasks:
            task.cancel()
        await asyncio.gather(*self.node._tasks, return_exceptions=True)
        for session in tuple(self.host.live.values()):
            session.ledger.parked = True
            if session.inbox.task is not None:
                session.inbox.task.cancel()
        for task in tuple(self.host._tasks):
            task.cancel()
        await asyncio.gather(*self.host._tasks, return_exceptions=True)
        await self.store.close()


class Fleet:
    def __init__(self, url: str) -> None:
        self.url = url
        self.members: list[Member] = []

    async def join(
        self,
        name: str,
        script: Scripted,
        tools: Sequence[Tool] = (),
        *,
        labels: tuple[str, ...] = (),
        roots: tuple[str, ...] = ("/",),
        lease: float = LEASE,
        url: str = "",
        guest: bool = False,
        life: str = "",
        has_ended: Callable[[str], bool] = lambda life: False,
        **profile: Any,
    ) -> Member:
        store = await PostgresStore.open(url or self.url)
        store.node = Named(name, labels, roots)
        door = memory_door(script, tools, store=store, **profile)
        row = f"{name}{GUEST}{len(self.members)}" if guest else name
        desk = Desk(store, owner_name(row, f"{len(self.members)}"))
        host = host_of(door)
        host.whereabouts = desk.whereabouts
        node = Node(
            host, desk, lease=lease, version="test", life=life, has_ended=has_ended,
            front=store.front,
        )  # fmt: skip
        try:
            await node.start()
        except BaseException:
            await store.close()
            raise
        member = Member(door, node, store)
        self.members.append(member)
        for one in self.members:  # each knows at once that it is not alone
            one.node._others = len(self.members) - 1
        return member

    async def close(self) -> None:
        for member in self.members:
            if not member.gone:
                await member.leave()


async def until(fits: Callable[[], Any], seconds: float = 60.0) -> Any:
    """Wait for something that no event tells of."""
    async with asyncio.timeout(seconds):
        while True:
            found = fits()
            if asyncio.iscoroutine(found):
                found = await found
            if found:
                return found
            await asyncio.sleep(0.01)
