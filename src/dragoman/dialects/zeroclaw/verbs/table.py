"""How a method of this protocol is written down for the shell."""

from collections.abc import Callable
from typing import Any

import msgspec

from dragoman.engine.faults import BadInput
from dragoman.wire.verbs import Quick, Verb

from ..spelling import heard

_decode = msgspec.json.Decoder().decode


def verb(
    run: Callable[..., Any],
    params: Any = None,
    *,
    direct: bool = False,
    native: bool = False,
    nested: tuple[str, ...] = (),
    quick: Quick | None = None,
) -> Verb:
    """One method.

    The results of a `native` one are engine structs, whatever the connection's spelling. `nested`
    are params whose own names are taken in both spellings as well.
    """
    fields = {field.encode_name for field in msgspec.structs.fields(params)} if params else ()
    made = Verb(run, direct=direct, plain=native, quick=quick, takes=params)
    if params is not None:
        made.read = read_as(params, nested)
    if made.waits and "session_id" in fields:
        made.run = _after_opening(run, direct)
    return made


def read_as(params: Any, nested: tuple[str, ...] = ()) -> Callable[[Any], Any]:
    """Reads params by name, in both spellings, or by position."""
    names = tuple(field.encode_name for field in msgspec.structs.fields(params))

    def read(raw: Any) -> Any:
        given = members(raw, names)
        return msgspec.convert(heard(given, nested), params)

    return read


def members(raw: Any, names: tuple[str, ...]) -> dict[str, Any]:
    """The params as a client wrote them. Raises BadInput when there are none."""
    if not raw:
        raise BadInput("Invalid params: this method needs params.")
    given = _decode(raw)
    if isinstance(given, list):  # by position
        given = dict(zip(names, given, strict=False))
    found: dict[str, Any] = given
    return found


def _after_opening(run: Callable[..., Any], direct: bool) -> Callable[..., Any]:
    """Let a `session/new` of the same id that came before on this connection end first."""

    async def later(caller: Any, params: Any) -> Any:
        if params.session_id is not None:
            await (caller.conn if direct else caller).opened(params.session_id)
        return await run(caller, params)

    return later
