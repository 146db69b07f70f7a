"""Things that store tests put into stores."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from dragoman.engine.events import Ask, Noted, Settled, Who, encode_body
from dragoman.engine.info import SessionInfo
from dragoman.engine.ports import Batch, Entry

ROOT = Path(__file__).parents[2]  # where child processes find `tests`


def make_info(session: str, at: int = 1000, **other: Any) -> SessionInfo:
    values: dict[str, Any] = {
        "agent": "main",
        "cwd": "/home/ann",
        "model": "demo/demo",
        "mode": "supervised",
        "status": "idle",
        "created_at": at,
        "updated_at": at,
    }
    values.update(other)
    return SessionInfo(id=session, **values)


def make_entries(first: int, count: int, text: str = "x") -> list[Entry]:
    body = encode_body(Noted("info", text))
    return [Entry(seq, 1000 + seq, "noted", body) for seq in range(first, first + count)]


def make_batch(
    session: str,
    epoch: int,
    first: int = 1,
    count: int = 1,
    *,
    text: str = "x",
    asked: Sequence[Ask] = (),
    settled: Sequence[Settled] = (),
    **info: Any,
) -> Batch:
    info.setdefault("last_seq", first + count - 1)
    row = make_info(session, **info)
    return Batch(session, epoch, make_entries(first, count, text), row, asked, settled)


def make_ask(ask_id: str, session: str, at: int = 1000) -> Ask:
    return Ask(ask_id, session, "tool", "Run a command", at, tool="bash", args={"command": "ls"})


def make_answer(ask_id: str, verdict: Any = "allow", name: str = "ann") -> Settled:
    return Settled(ask_id, verdict, by=Who("acp", name=name))
