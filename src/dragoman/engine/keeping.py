"""What calls change is kept before it is changed, so that a turn can be undone.

That it cannot be kept must not stop the work: it is reported, and that turn cannot be undone.
"""

import asyncio
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from typing import Any

from .faults import Fault
from .ledger import Ledger
from .ports import Tool, ToolEnv
from .ports.checkpoints import Touching
from .ports.tools import LOOKING
from .question import CallSite

_UNTOUCHING = LOOKING | {"fetch"}


class Keeping:
    """Around one call, several of a hosted agent, or a hook's command: `async with`."""

    __slots__ = ("_failed", "_ledger", "_paths", "_turn")

    def __init__(self, ledger: Ledger, turn: str, paths: Sequence[str] | None) -> None:
        self._ledger = ledger
        self._turn = turn
        self._paths = paths
        self._failed = False

    async def __aenter__(self) -> None:
        work = self._ledger.home.spawn(self._tell("before"))
        try:
            await asyncio.shield(work)
        except asyncio.CancelledError:  # there will be no call, and it must not stay open
            self._ledger.home.spawn(self._unused(work))
            raise

    async def __aexit__(self, *failure: object) -> None:
        if not self._failed:  # also when the call was cancelled: what it did is done
            work = self._ledger.home.spawn(self._tell("after"))
            await asyncio.shield(work)

    async def _unused(self, began: "asyncio.Task[None]") -> None:
        await asyncio.wait({began})
        if not self._failed:
            await self._tell("after")

    async def _tell(self, what: str) -> None:
        home = self._ledger.home
        if home.checkpoints is None:
            return
        info = self._ledger.state.info()
        try:
            await getattr(home.checkpoints, what)(info, self._turn, self._paths)
        except Exception as error:
            self._failed = True
            home.trouble("changes are not kept", error, session=info.id)


NOTHING = nullcontext()


def kept(
    place: CallSite, tool: Tool, args: dict[str, Any], env: ToolEnv
) -> AbstractAsyncContextManager[None]:
    """What is to be kept around a call of a tool."""
    if tool.spec.kind in _UNTOUCHING or place.ledger.home.checkpoints is None:
        return NOTHING
    if not isinstance(tool, Touching):
        return Keeping(place.ledger, place.turn.id, None)
    try:
        paths = tool.touches(args, env)
    except Fault:  # the call will say so itself
        return NOTHING
    return Keeping(place.ledger, place.turn.id, paths) if paths else NOTHING
