"""A transcript as a server plays it: what the client is to say, what it is told.

Read from `.talk` files and from recordings (`dragoman tap --record`). Ids that a client chooses
itself are learnt from what it says and put into what it is told.
"""

import json
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal
from uuid import uuid4

from .sample import sample
from .talk import AnyOrder, Direct, Expect, Say, TalkError, differ, read

FIRST = "the client"


@dataclass(frozen=True, slots=True)
class Move:
    """One step: the client says `value`, is told it, ends its side, or is hung up on."""

    line: int
    kind: Literal["hear", "tell", "ended", "close"]
    text: str = ""
    value: Any = None


@dataclass(slots=True)
class Score:
    """The moves of every connection of a transcript, in order."""

    path: Path
    parts: dict[str, list[Move]] = field(default_factory=dict)


def load(path: Path) -> Score:
    """Read a transcript. Raises TalkError, OSError."""
    score = Score(path)
    if path.suffix == ".talk":
        _from_talk(path, score)
    else:
        _from_recording(path, score)
    if not any(score.parts.values()):
        raise TalkError(f"{path}: nothing is said in it")
    return score


def _from_talk(path: Path, score: Score) -> None:
    current = score.parts.setdefault(FIRST, [])
    for step in read(path).steps:
        match step:
            case Say():
                current.append(Move(step.line, "hear", step.text, _value(step.text)))
            case Expect():
                _tell(current, step)
            case AnyOrder():
                for one in step.parts:
                    _tell(current, one)
            case Direct(word="as"):
                current = score.parts.setdefault(step.rest, [])
            case Direct(word="raw"):
                current.append(Move(step.line, "hear", step.rest))
            case Direct(word="eof"):
                current.append(Move(step.line, "ended"))
            case Direct(word="closed"):
                current.append(Move(step.line, "close"))
            case Direct():
                pass  # directions for the host that a talk tests; here everything is written down


def _tell(moves: list[Move], step: Expect) -> None:
    if step.kind in ">=":  # what may be said, or not, is not
        value = step.pattern if step.kind == ">" else _value(step.text)
        moves.append(Move(step.line, "tell", step.text, value))


def _from_recording(path: Path, score: Score) -> None:
    for number, row in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        if not row.strip():
            continue
        try:
            told = json.loads(row)
            text, direction = told["line"], told["direction"]
            moves = score.parts.setdefault(str(told.get("connection", FIRST)), [])
        except (ValueError, KeyError, TypeError):
            raise TalkError(f"{path}:{number}: not a line of a recording") from None
        moves.append(Move(number, "hear" if direction == "in" else "tell", text, _value(text)))


def _value(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        return None


class PlayedConnection:
    """One connection as it is played."""

    def __init__(self, moves: list[Move], names: dict[str, Any] | None = None) -> None:
        self._moves = moves
        self._at = 0
        self._names = {} if names is None else names  # shared by all parts of one performance
        self._ids: dict[Any, Any] = {}  # as written: as this client says it

    @property
    def next(self) -> Move | None:
        """What comes now; None when all is done."""
        return self._moves[self._at] if self._at < len(self._moves) else None

    def done(self) -> None:
        self._at += 1

    def compare(self, move: Move, line: bytes) -> tuple[bool, str]:
        """Whether a line is the one that is waited for, and how it differs."""
        if move.value is None:  # not JSON in the transcript
            same = line.decode("utf-8", "replace") == move.text
            return True, "" if same else "the bytes differ"
        try:
            got = json.loads(line)
        except ValueError:
            return False, "not JSON"
        if _kind(got) != _kind(move.value):
            return False, f"expected {_kind(move.value)}, got {_kind(got)}"
        self._learn(move.value, got)
        return True, differ(self._known(move.value), got, dict(self._names))

    def _learn(self, written: Any, got: Any, key: str = "") -> None:
        if isinstance(written, dict) and isinstance(got, dict):
            for name, value in written.items():
                if name in got:
                    self._learn(value, got[name], name)
        elif isinstance(written, list) and isinstance(got, list):
            for one, other in zip(written, got, strict=False):
                self._learn(one, other, key)
        elif _is_id(key) and isinstance(written, str | int) and not _placeholder(written):
            self._ids[written] = got

    def _known(self, written: Any, key: str = "") -> Any:
        """The written value with what was learnt put in."""
        if isinstance(written, dict):
            return {name: self._known(value, name) for name, value in written.items()}
        if isinstance(written, list):
            return [self._known(value, key) for value in written]
        if _is_id(key) and isinstance(written, str | int) and written in self._ids:
            return self._ids[written]
        return written

    def spoken(self, move: Move) -> bytes:
        """The line to send now."""
        if move.value is None:
            return move.text.encode()
        said = json.dumps(self._made(self._known(move.value)), ensure_ascii=False)
        return said.encode()

    def _made(self, value: Any, key: str = "") -> Any:
        if isinstance(value, dict):
            return {k: self._made(v, k) for k, v in value.items() if (k, v) != ("...", "<more>")}
        if isinstance(value, list):
            return [self._made(one, key) for one in value if one != "<more>"]
        return self._placed(value[1:-1], key) if _placeholder(value) else value

    def _placed(self, word: str, key: str) -> Any:
        kind, _, rest = word.partition(":")
        if kind == "id":
            text = _is_id(key) or any(part in key.lower() for part in _TEXTS)
            return self._names.setdefault(rest, str(uuid4()) if text else 1)
        if kind == "re":
            return sample(rest)
        made = {"any": "", "int": 1, "number": 1.0, "text": "text", "time": _now()}
        return made.get(word, f"<{word}>")


# A remembered value is a text where its name says so; elsewhere it is a number, such as tokens.
_TEXTS = ("token", "name", "path", "session", "key", "dir", "model", "title", "text")


def _now() -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime())


def _placeholder(value: Any) -> bool:
    return isinstance(value, str) and value.startswith("<") and value.endswith(">")


def _is_id(key: str) -> bool:
    return key == "id" or key.endswith(("_id", "Id"))


def _kind(value: Any) -> str:
    """What sort of message it is: its method or type, or that it is an answer."""
    if isinstance(value, list):
        return "a batch"
    if not isinstance(value, dict):
        return "a value"
    words = [str(value[name]) for name in ("type", "method") if isinstance(value.get(name), str)]
    return " ".join(words) or ("an answer" if "id" in value else "a message")
