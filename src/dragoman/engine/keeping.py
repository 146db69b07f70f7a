"""What calls change is kept before it is changed, so that a turn can be undone.

That it cannot be kept must not stop the work: it is reported, and that turn cannot be undone.
"""

import asyncio
from collections.abc import Sequence
from typing import Any, Protocol

from .faults import Fault
from .ledger import Ledger
from .ports import Tool, ToolEnv
from .ports.checkpoints import Touching
from .ports.tools import LOOKING
from .underway import Underway

_UNTOUCHING = LOOKING | {"fetch"}


class Place(Protocol):
    """The calls of a turn (`engine/calls.py`)."""

    @property
    def ledger(self) -> Ledger: ...

    @property
    def turn(self) -> Underway: ...


class Kept:
    """Around one call, or several of a hosted agent: `async with`."""

    __slots__ = ("_paths", "_place", "_skips")

    def __init__(self, place: Place, paths: Sequence[str] | None, *, skips: bool = False) -> None:
        self._place = place
        self._paths = paths
        self._skips = skips or place.ledger.home.checkpoints is None

    async def __aenter__(self) -> None:
        await self._tell("before")

    async def __aexit__(self, *failure: object) -> None:
        if not self._skips:  # also when the call was cancelled: what it did is done
            work = self._place.ledger.home.spawn(self._tell("after"))
            await asyncio.shield(work)

    async def _tell(self, what: str) -> None:
        home = self._place.ledger.home
        if self._skips or home.checkpoints is None:
            return
        info = self._place.ledger.state.info()
        try:
            await getattr(home.checkpoints, what)(info, self._place.turn.id, self._paths)
        except Exception as error:
            self._skips = True
            home.trouble("changes are not kept", error, session=info.id)


def kept(place: Place, tool: Tool, args: dict[str, Any], env: ToolEnv) -> Kept:
    """What is to be kept around a call of a tool."""
    if tool.spec.kind in _UNTOUCHING or place.ledger.home.checkpoints is None:
        return Kept(place, (), skips=True)
    if not isinstance(tool, Touching):
        return Kept(place, None)
    try:
        paths = tool.touches(args, env)
    except Fault:  # the call will say so itself
        return Kept(place, (), skips=True)
    return Kept(place, paths, skips=not paths)
