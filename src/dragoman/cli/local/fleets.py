"""`dragoman fleet`: what the shared database knows of its nodes, asked straight."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import TypeVar

from dragoman.engine.faults import BadInput
from dragoman.fleet.desk import Desk, NodeRow
from dragoman.host.stores import database_of
from dragoman.host.tokens import read_settings
from dragoman.store.postgres import PostgresStore
from dragoman.store.postgres.roles import Role

T = TypeVar("T")


def nodes(config_dir: str | None) -> list[NodeRow]:
    return _with_desk(config_dir, lambda desk: desk.nodes())


def drain(config_dir: str | None, node: str, *, back: bool = False) -> None:
    if not _with_desk(config_dir, lambda desk: desk.drain(node, not back)):
        raise BadInput(f"There is no node {node}.", "See: dragoman fleet")


def move(config_dir: str | None, session: str, node: str) -> str:
    return _with_desk(config_dir, lambda desk: desk.move(session, node))


def grant(config_dir: str | None, role: str, kind: Role) -> None:
    _with_desk(config_dir, lambda desk: desk.store.grant(role, kind))


def _with_desk(config_dir: str | None, work: Callable[[Desk], Awaitable[T]]) -> T:
    _, settings = read_settings(config_dir)
    address = database_of(settings)
    if not address:
        raise BadInput(
            "This daemon is no node of a fleet.",
            "Name the database that the nodes share: [fleet] database.",
        )

    async def run() -> T:
        store = await PostgresStore.open(address)
        try:
            return await work(Desk(store, ""))
        finally:
            await store.close()

    return asyncio.run(run())
