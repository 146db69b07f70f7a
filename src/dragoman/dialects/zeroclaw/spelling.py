"""Two spellings of every name on the wire, and methods written down so that both are heard.

Requests are taken in both. A connection is answered in the one that its `initialize` used.
"""

import re
from collections.abc import Callable, Iterable
from time import gmtime, strftime
from typing import Any

import msgspec

from dragoman.engine.faults import BadInput
from dragoman.wire.verbs import C, Order, P, Quick, Verb

_UPPER = re.compile(r"(?<=[a-z0-9])([A-Z])")
_QUOTED = re.compile(r"`(\$?\.?)([a-z0-9_.\[\]]+)`")
_LIMIT = 4_096  # names that are remembered; clients choose them, so there is a bound
_snakes: dict[str, str] = {}
_camels: dict[str, str] = {}


def snake(name: str) -> str:
    """`sessionId` as `session_id`; other names stay as they are."""
    found = _snakes.get(name)
    if found is None:
        found = _UPPER.sub(r"_\1", name).lower() if name[:1].islower() else name
        if len(_snakes) < _LIMIT and len(name) < 100:
            _snakes[name] = found
    return found


def camel(name: str) -> str:
    """`session_id` as `sessionId`."""
    found = _camels.get(name)
    if found is None:
        head, *rest = name.split("_")
        found = head + "".join(part[:1].upper() + part[1:] for part in rest) if head else name
        if len(_camels) < _LIMIT and len(name) < 100:
            _camels[name] = found
    return found


def heard(params: dict[str, Any], nested: Iterable[str] = ()) -> dict[str, Any]:
    """Params as a client wrote them, top-level names (and those of `nested` parts) in snake_case.

    A name that is there in both spellings counts as written in snake_case.
    """
    found: dict[str, Any] = {}
    for name, value in params.items():
        plain = _snakes.get(name) or snake(name)
        if plain == name or plain not in params:
            found[plain] = value
    for name in nested:
        value = found.get(name)
        if isinstance(value, dict):
            found[name] = heard(value)
        elif isinstance(value, list):
            found[name] = [heard(one) if isinstance(one, dict) else one for one in value]
    return found


def spoken(value: Any) -> Any:
    """A result with all names of its tables in camelCase. What is `Raw` or a struct is left."""
    if isinstance(value, dict):
        return {camel(name): spoken(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [spoken(one) for one in value]
    return value


def spoken_text(text: str) -> str:
    """A message in which names between backticks are in camelCase."""
    return _QUOTED.sub(lambda found: f"`{found[1]}{camel(found[2])}`", text)


def rfc3339(ms: int) -> str:
    """Milliseconds since the epoch as `2026-01-31T12:00:00.000Z`."""
    return f"{strftime('%Y-%m-%dT%H:%M:%S', gmtime(ms // 1000))}.{ms % 1000:03d}Z"


_decode = msgspec.json.Decoder().decode


def verb(
    run: Callable[[C, P], object],
    params: type[P] | None = None,
    *,
    direct: bool = False,
    native: bool = False,
    nested: tuple[str, ...] = (),
    quick: Quick | None = None,
    alone: bool = False,
    queues: bool = False,
    serial: bool = False,
) -> Verb:
    """One method.

    The results of a `native` one are engine structs, whatever the connection's spelling. `nested`
    are params whose own names are taken in both spellings as well. What a connection asks of a
    session behind one that is `alone` waits for its end; one that `queues` does so by itself.
    Those that are `serial` run one after the other.
    """
    fields = () if params is None else _names(params)
    order: Order = "serial" if serial else "free"
    made = Verb(run, order=order, direct=direct, plain=native, quick=quick, takes=params)
    if params is not None:
        made.read = read_as(params, nested)
    if made.waits and not queues:
        if alone:
            made.run = _alone(run, direct, "session_id" if "session_id" in fields else "id")
        elif "session_id" in fields:
            made.run = _in_order(run, direct)
    return made


def read_as(params: type[P], nested: tuple[str, ...] = ()) -> Callable[[Any], P]:
    """Reads params by name, in both spellings, or by position."""
    names = _names(params)

    def read(raw: Any) -> P:
        given = _decode(raw) if raw else None
        if type(given) is not dict:
            given = members(raw, names)
        return msgspec.convert(heard(given, nested), params)

    return read


def _names(params: type) -> tuple[str, ...]:
    return tuple(field.encode_name for field in msgspec.structs.fields(params))


def members(raw: Any, names: tuple[str, ...]) -> dict[str, Any]:
    """The params as a client wrote them. Raises BadInput when there are none."""
    if not raw:
        raise BadInput("Invalid params: this method needs params.")
    given = _decode(raw)
    if isinstance(given, list):  # by position
        given = dict(zip(names, given, strict=False))
    found: dict[str, Any] = given
    return found


def _alone(run: Callable[..., Any], direct: bool, field: str) -> Callable[..., Any]:
    """Let what this connection asks of the same session next wait for the end of this."""

    async def in_line(caller: Any, params: Any) -> Any:
        session_id = getattr(params, field)
        if not session_id:  # a new one, whose id nobody knows, or all of them
            return await run(caller, params)
        async with (caller.conn if direct else caller).in_line(session_id):
            return await run(caller, params)

    return in_line


def _in_order(run: Callable[..., Any], direct: bool) -> Callable[..., Any]:
    """Let what this connection asked of the same session before, and must end first, do so."""

    async def later(caller: Any, params: Any) -> Any:
        conn = caller.conn if direct else caller
        if conn.order is not None:
            await conn.order.passed(params.session_id)
        return await run(caller, params)

    return later
