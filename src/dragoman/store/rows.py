"""Between the engine's structs and the rows of the database."""

from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from typing import Any

import msgspec

from dragoman.engine.events import Ask, Settled
from dragoman.engine.faults import BadInput
from dragoman.engine.info import SessionInfo, plain_model
from dragoman.engine.ports import AskRow, Entry, row_of

from .old_extra import OLD, regrouped, renewed

# The columns of a session that follow from its info, in the order of `info_values`: first those
# that every turn changes, then those that hardly ever change.
MOVING = ("updated_at", "status", "info")
LASTING = (
    "created_at",
    "archived",
    "agent",
    "cwd",
    "parent",
    "origin",
    "run_id",
    "key",
    "title",
    "query",
)
INFO_COLUMNS = (*MOVING, *LASTING)
# Fields of traits that have a column.
INDEXED = {("humanlayer", "run_id"): "run_id", ("correspondent", "key"): "key"}
_WITH_COLUMNS = frozenset(trait for trait, _ in INDEXED)
_NO_COLUMNS = (None,) * len(INDEXED)

# Events that are stored together share a row of an empty kind, up to this many and these bytes.
PACKED = ""
PACK_COUNT = 64
PACK_BYTES = 256 * 1024

_encoder = msgspec.json.Encoder()
_pack = msgspec.msgpack.Encoder().encode
_unpack = msgspec.msgpack.Decoder(list[tuple[int, str, bytes]]).decode
_decoder = cache(msgspec.json.Decoder)  # by what it reads


def encode(value: Any) -> bytes:
    try:
        return _encoder.encode(value)
    except (UnicodeEncodeError, TypeError, ValueError) as error:
        raise BadInput(f"This cannot be stored as JSON: {error}.") from error


def _decode(kind: type, data: bytes) -> Any:
    return _decoder(kind).decode(data)


def info_values(info: SessionInfo) -> tuple[Any, ...]:
    return (
        info.updated_at,
        info.status,
        encode(info),
        info.created_at,
        int(info.archived),
        info.agent,
        info.cwd,
        info.parent,
        info.origin,
        *columns_of(info.extra),
        info.title,
        info.query,
    )


class Torn(Exception):
    """A row does not hold what was written into it."""


def pack(entries: Sequence[Entry]) -> list[tuple[int, int, str, bytes]]:
    """Entries as rows of (how many, time of the last, kind, body)."""
    if len(entries) == 1 and entries[0].kind != PACKED:
        entry = entries[0]
        return [(1, entry.at, entry.kind, entry.body)]
    rows = []
    part: list[tuple[int, str, bytes]] = []
    size = 0
    try:
        for entry in entries:
            if len(part) == PACK_COUNT or (part and size + len(entry.body) > PACK_BYTES):
                rows.append((len(part), part[-1][0], PACKED, _pack(part)))
                part, size = [], 0
            part.append((entry.at, entry.kind, entry.body))
            size += len(entry.body)
        if part:
            rows.append((len(part), part[-1][0], PACKED, _pack(part)))
    except (TypeError, ValueError, OverflowError):
        # Something in it is no number, text or bytes: the database says so.
        return [(1, entry.at, entry.kind, entry.body) for entry in entries]
    return rows


def entries_of(rows: Iterable[tuple[Any, ...]], after: int = 0, since: int = 0) -> Iterator[Entry]:
    """The entries with seq > `after` and gseq > `since` in rows of (seq, at, kind, body, gseq,
    session id).
    """
    for seq, at, kind, body, gseq, session in rows:
        if kind != PACKED:
            yield Entry(seq, at, kind, renewed(kind, body), gseq, session)
            continue
        try:
            packed = _unpack(body)
        except msgspec.DecodeError as error:
            raise Torn(f"event {gseq}: {error}") from error
        ahead = gseq - seq
        seq -= len(packed)
        for at, kind, body in packed:
            seq += 1
            if seq > after and ahead + seq > since:
                yield Entry(seq, at, kind, renewed(kind, body), ahead + seq, session)


def info_of(data: bytes) -> SessionInfo:
    info: SessionInfo = _decode(SessionInfo, data)
    model = plain_model(info.model)
    if model is not info.model:
        info = msgspec.structs.replace(info, model=model)
    if OLD.keys().isdisjoint(info.extra):
        return info
    return msgspec.structs.replace(info, extra=regrouped(info.extra))


def columns_of(extra: dict[str, Any]) -> tuple[str | None, ...]:
    """The values of the fields that have a column."""
    if _WITH_COLUMNS.isdisjoint(extra):  # nearly all sessions, at every write
        return _NO_COLUMNS
    found = ((extra.get(trait), field) for trait, field in INDEXED)
    return tuple(_text(kept.get(name)) if isinstance(kept, dict) else None for kept, name in found)


def sorted_out(extra: dict[str, Any]) -> tuple[dict[str, str], dict[str, Any], dict[str, str]]:
    """What a query says of `extra`: by column, what is looked for in each row, and its texts."""
    columns: dict[str, str] = {}
    rest: dict[str, Any] = {}
    texts: dict[str, str] = {}
    for name, wanted in extra.items():
        fields = wanted if isinstance(wanted, dict) and wanted else {"": wanted}
        for field, value in fields.items():
            column = INDEXED.get((name, field))
            if column is not None and isinstance(value, str):
                columns[column] = value
                continue
            if field:
                rest.setdefault(name, {})[field] = value
            else:
                rest[name] = value
            if isinstance(value, str):
                texts[field or name] = value
    return columns, rest, texts


def ask_of(row: Sequence[Any]) -> AskRow | None:
    """An approval from (ask, settled, settled_at); None: it cannot be read, and hides no other."""
    ask, settled = row_of(row[0], Ask), row_of(row[1], Settled)
    if ask is None or row[1] is not None and settled is None:
        return None
    return AskRow(ask, settled, row[2])


def settled_of(data: bytes) -> Settled:
    settled: Settled = _decode(Settled, data)
    return settled


def _text(value: Any) -> str | None:
    return value if isinstance(value, str) else None
