"""The host's own methods without a daemon: the same answers, out of the store and configuration.

For commands that read, or change a row, while no daemon runs. No turn is run here.
"""

import asyncio
import os
from typing import Any, Self

import msgspec

from dragoman.client.problems import fault_of, no_text
from dragoman.dialects.zeroclaw import Desk
from dragoman.engine.faults import StoreFailed
from dragoman.host.compose import Composed, compose
from dragoman.host.stores import file_of, kept_at
from dragoman.settings.load import BadSettings, load
from dragoman.settings.places import places
from dragoman.standing import in_place_of_file
from dragoman.transports import memory

_WITHIN = 30.0
_WITHOUT_STORE = ("dragoman/agents", "dragoman/models")
_BY_SETTINGS = (*_WITHOUT_STORE, "dragoman/undo", "dragoman/redo", "dragoman/endWorktree")


class Offline:
    """Answers `call` as `client.plain.Plain` does."""

    def __init__(self, config_dir: str | None) -> None:
        self._runner = asyncio.Runner()
        self._composed: Composed | None = None
        self._client: memory.Client | None = None
        self._unread: BadSettings | None = None  # why the defaults hold
        self._next = 0
        try:
            self._runner.run(self._open(config_dir))
        except BaseException:
            self._runner.close()
            raise

    async def _open(self, config_dir: str | None) -> None:
        where = places(os.environ, config_dir)
        try:
            loaded = load(where.config_file)
        except BadSettings as bad:
            self._unread, loaded = bad, kept_at(where)
        self._composed = await compose(config_dir=config_dir, repair=False, loaded=loaded)
        await self._composed.host.recover()  # what a dead process left is not shown as running
        desk = Desk(self._composed.door, self._composed.settings.zeroclaw)
        self._client = memory.Client(desk.hearer)
        await self._ask("initialize", {"protocolVersion": 1})

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self._runner.run(self._close())
        self._runner.close()

    async def _close(self) -> None:
        if self._client is not None:
            self._client.drop()
            await asyncio.sleep(0)
        if self._composed is not None:
            await self._composed.close()

    def call(self, method: str, params: dict[str, Any] | None = None) -> Any:
        """The result of one method. Raises the host's Fault, StoreFailed without a store.

        Raises BadSettings where it is asked for what the configuration says.
        """
        assert self._composed is not None
        if self._unread and method in _BY_SETTINGS:
            raise self._unread
        problem = self._composed.host.store.problem
        if problem and method not in _WITHOUT_STORE:  # an empty answer would be a lie
            raise StoreFailed(problem, self._advice())
        return self._runner.run(self._ask(method, params or {}))

    def _advice(self) -> str:
        """What to do about a store that cannot be used."""
        assert self._composed is not None
        wrong = in_place_of_file(file_of(self._composed.settings, self._composed.places))
        return f"{wrong[1]}, or set store.path." if wrong else "See: dragoman doctor"

    async def _ask(self, method: str, params: dict[str, Any]) -> Any:
        assert self._client is not None
        self._next += 1
        request = {"jsonrpc": "2.0", "id": self._next, "method": method, "params": params}
        try:
            self._client.send(msgspec.json.encode(request))
        except UnicodeEncodeError as problem:
            raise no_text(problem) from None
        while True:
            message = msgspec.json.decode(await self._client.receive(_WITHIN))
            if message.get("id") == self._next and "method" not in message:
                if "error" in message:
                    raise fault_of(message["error"])
                return message["result"]
