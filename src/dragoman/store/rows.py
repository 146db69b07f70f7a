"""Between the engine's structs and the rows of the database."""

from typing import Any

import msgspec

from dragoman.engine.events import Ask, Settled
from dragoman.engine.faults import BadInput
from dragoman.engine.info import SessionInfo
from dragoman.engine.ports import AskRow

# The columns of a session that follow from its info, in the order of `info_values`.
INFO_COLUMNS = (
    "updated_at",
    "created_at",
    "status",
    "archived",
    "agent",
    "cwd",
    "parent",
    "origin",
    "run_id",
    "key",
    "title",
    "query",
    "info",
)
INDEXED = ("run_id", "key")  # keys of `extra` that have a column

_encoder = msgspec.json.Encoder()
_decoders: dict[type, msgspec.json.Decoder[Any]] = {}


def encode(value: Any) -> bytes:
    try:
        return _encoder.encode(value)
    except (UnicodeEncodeError, TypeError, ValueError) as error:
        raise BadInput(f"This cannot be stored as JSON: {error}.") from error


def _decode(kind: type, data: bytes) -> Any:
    decoder = _decoders.get(kind)
    if decoder is None:
        decoder = _decoders[kind] = msgspec.json.Decoder(kind)
    return decoder.decode(data)


def info_values(info: SessionInfo) -> tuple[Any, ...]:
    extra = info.extra
    return (
        info.updated_at,
        info.created_at,
        info.status,
        int(info.archived),
        info.agent,
        info.cwd,
        info.parent,
        info.origin,
        _text(extra.get("run_id")),
        _text(extra.get("key")),
        info.title,
        info.query,
        encode(info),
    )


def info_of(data: bytes) -> SessionInfo:
    info: SessionInfo = _decode(SessionInfo, data)
    return info


def ask_of(row: tuple[Any, ...]) -> AskRow:
    """An approval from (ask, settled, settled_at)."""
    ask, settled, settled_at = row
    return AskRow(_decode(Ask, ask), settled and _decode(Settled, settled), settled_at)


def settled_of(data: bytes) -> Settled:
    settled: Settled = _decode(Settled, data)
    return settled


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None
