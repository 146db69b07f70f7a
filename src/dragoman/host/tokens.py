"""Tokens and pairing codes from the command line: straight in the store, daemon or not."""

import asyncio
import os
from collections.abc import Awaitable, Callable
from typing import TypeVar

from dragoman.engine.faults import BadInput
from dragoman.engine.ports import Shelf, Store
from dragoman.gateway import tokens
from dragoman.gateway.tokens import Token
from dragoman.host.stores import database_of, file_of, kept_at, open_store
from dragoman.settings.load import Loaded, load
from dragoman.settings.model import Settings
from dragoman.settings.places import Places, places

T = TypeVar("T")


def new_token(config_dir: str | None, name: str = "", kind: str = "client") -> tuple[Token, str]:
    return _with_store(config_dir, lambda shelf: tokens.new_token(shelf, name, kind))


def list_tokens(config_dir: str | None) -> list[Token]:
    return _with_store(config_dir, tokens.list_tokens)


def revoke_token(config_dir: str | None, id: str) -> bool:
    return _with_store(config_dir, lambda shelf: tokens.revoke_token(shelf, id))


def new_code(config_dir: str | None) -> str:
    return _with_store(config_dir, tokens.new_code)


def address(where: Places, settings: Settings) -> str:
    """Where the gateway listens: as the running daemon noted it, else as it is configured."""
    return noted(where)[0] or configured(settings)


def configured(settings: Settings) -> str:
    """Where the gateway listens when nothing else has its port."""
    given = settings.gateway
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(given.host, given.host)
    host = f"[{host}]" if ":" in host else host
    scheme = "https" if given.tls_cert or given.tls_self_signed else "http"
    prefix = given.path_prefix.strip("/")
    return f"{scheme}://{host}:{given.port}" + (f"/{prefix}" if prefix else "")


def noted(where: Places) -> tuple[str, int]:
    """The address that a daemon has noted for as long as it runs, and its process, if any has."""
    import json

    try:
        with open(os.path.join(where.data_dir, "gateway.json"), encoding="utf-8") as file:
            row = json.load(file)
        return str(row["address"]), int(row.get("pid") or 0)
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return "", 0


def read_settings(config_dir: str | None) -> tuple[Places, Settings]:
    where, loaded = read(config_dir)
    return where, loaded.settings


def read(config_dir: str | None) -> tuple[Places, Loaded]:
    where = places(os.environ, config_dir)
    return where, load(where.config_file)


def _with_store(config_dir: str | None, work: Callable[[Shelf], Awaitable[T]]) -> T:
    where = places(os.environ, config_dir)
    settings = kept_at(where).settings
    if settings.store.path == ":memory:" and not database_of(settings):
        raise BadInput(
            "The store is in the daemon's memory, so only the daemon can change its tokens.",
            "Pair in the browser, or set store.path to a file.",
        )

    async def run() -> T:
        store = await _open(settings, where)
        try:
            return await work(store)
        finally:
            await store.close()

    return asyncio.run(run())


async def _open(settings: Settings, where: Places) -> Store:
    """The store as it is: a damaged file is left alone."""
    if database_of(settings):
        return await open_store(settings, where, [])
    from dragoman.store.sqlite import SqliteStore

    return SqliteStore(file_of(settings, where))
