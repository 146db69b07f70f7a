"""What nodes say to each other: commands, and what came of them."""

from functools import cache
from typing import Any

import msgspec

from dragoman.engine.ask import AskReply
from dragoman.engine.content import Image, Text
from dragoman.engine.events import Ask, Kept, Settled, Who
from dragoman.engine.ports.checkpoints import Checkpoint, Restored
from dragoman.engine.refusal import CarriedFault


class Prompt(msgspec.Struct, frozen=True, tag="prompt"):
    turn: str  # that it will be
    content: tuple[Text | Image, ...]
    by: Who | None
    key: str
    metadata: dict[str, Any] | None
    limit: int
    wait: float | None
    compacts: bool = False


class Steer(msgspec.Struct, frozen=True, tag="steer"):
    content: tuple[Text | Image, ...]
    by: Who | None


class Cancel(msgspec.Struct, frozen=True, tag="cancel"):
    """Stop one turn, begun or not; when it is over nothing happens."""

    turn: str
    cause: str
    interrupt: bool = False


class Retract(msgspec.Struct, frozen=True, tag="retract"):
    key: str


class Answer(AskReply, frozen=True, tag="answer"):
    """An answer to a question of the session."""


class Question(msgspec.Struct, frozen=True, tag="question"):
    ask: Ask


class Configure(msgspec.Struct, frozen=True, tag="configure"):
    """Facts to be kept: another model, mode, title, …"""

    bodies: tuple[Kept, ...]


class Equip(msgspec.Struct, frozen=True, tag="equip"):
    servers: list[dict[str, Any]]


class Undo(msgspec.Struct, frozen=True, tag="undo"):
    """Put files back to before a turn; None: redo."""

    turn: str | None
    by: Who | None


class Checkpoints(msgspec.Struct, frozen=True, tag="checkpoints"):
    """Which turns changed files: only the node that ran them knows."""


class Delete(msgspec.Struct, frozen=True, tag="delete"):
    by: Who | None


Command = (
    Prompt | Steer | Cancel | Retract | Answer | Question | Configure | Equip | Undo | Checkpoints
    | Delete
)  # fmt: skip


class Result(msgspec.Struct, frozen=True):
    """What came of a command: a turn, an answer, or why not."""

    seq: int = 0  # how far the session was then
    turn: str = ""
    settled: Settled | None = None
    restored: Restored | None = None
    checkpoints: tuple[Checkpoint, ...] = ()
    refusal: CarriedFault | None = None


_encoder = msgspec.json.Encoder()
_decoder = cache(msgspec.json.Decoder)  # wide unions take milliseconds to build: on first use


def encode(value: Any) -> bytes:
    return _encoder.encode(value)


def command_of(data: bytes) -> Command:
    command: Command = _decoder(Command).decode(data)
    return command


def result_of(data: bytes | None) -> Result:
    if data is None:  # its effect was stored, and its owner died before it could say so
        return Result()
    result: Result = _decoder(Result).decode(data)
    return result


def kind_of(command: Command) -> str:
    return str(type(command).__struct_config__.tag)
