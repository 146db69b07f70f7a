"""How a method is written down: its params, what runs, and how it is answered."""

import asyncio
from collections.abc import Callable
from typing import Any

import msgspec


class Verb:
    """One method.

    A plain function is answered on the spot; a coroutine function gets a task. A `direct` one is
    given the call instead of the connection and answers by itself. The results of a `native` one
    are engine structs, whatever the connection's spelling. `nested` are params whose own names
    are taken in both spellings as well. With `sees_names` the connection's `named` are the names
    as the client wrote them.
    """

    __slots__ = ("awaits", "direct", "names", "native", "nested", "params", "run", "sees_names")

    def __init__(
        self,
        run: Callable[..., Any],
        params: Any = None,
        *,
        direct: bool = False,
        native: bool = False,
        nested: tuple[str, ...] = (),
        sees_names: bool = False,
    ) -> None:
        self.run = run
        self.params = params
        self.awaits = asyncio.iscoroutinefunction(run)
        self.direct = direct
        self.native = native
        self.nested = nested
        self.sees_names = sees_names
        fields = msgspec.structs.fields(params) if params is not None else ()
        self.names = tuple(field.encode_name for field in fields)
