"""Undo and redo of a session's turns, by a call or by the words `/undo [TURN]` and `/redo`.

The words work in every dialect: the prompt is a turn that asks no model, and its answer stays in
the history, so that the model knows of it.
"""

from . import events as ev
from .content import Text, Usage, text_of
from .faults import BadInput, Busy, Fault
from .info import SessionInfo
from .ledger import Home, Ledger
from .ports import TurnResult
from .ports.checkpoints import Checkpoints, Restored
from .state import State
from .traits import PutBack
from .turn import Turn
from .visible import many

_SHOWN = 50
WORDS = ("undo", "redo")


def checkpoints_of(home: Home) -> Checkpoints:
    """Raises BadInput where none are kept."""
    if home.checkpoints is None:
        raise BadInput(
            "No checkpoints are kept here.", "Set checkpoints.enabled, and keep sessions in a file."
        )
    return home.checkpoints


async def restored(home: Home, info: SessionInfo, turn: str | None) -> Restored:
    """Undo a turn; None: redo."""
    keeper = checkpoints_of(home)
    return await (keeper.redo(info) if turn is None else keeper.undo(info, turn))


async def undone(
    ledger: Ledger, busy: bool, turn: str | None, by: ev.Who | None, handled: str = ""
) -> Restored:
    """Undo a turn (None: redo) of a session that rests, and tell everybody, the model too."""
    if busy:
        raise Busy("A turn runs in this session.", "Wait for its end or cancel it, then try again.")
    info = ledger.state.info()
    done = await restored(ledger.home, info, turn)
    verb = "redone" if turn is None else "undone"
    facts = {"checkpoint": verb, "turns": list(done.turns)}
    files = tuple(file.path for file in done.files)[:_SHOWN]
    trait = PutBack(verb, files, info.turns)
    await ledger.put(
        ev.Noted("info", verb.capitalize(), sentence(done, verb), facts),
        ev.ExtraSet({trait.NAME: trait.kept()}, by),
        handled=handled,
    )
    return done


def words_of(state: State) -> tuple[str, str] | None:
    """`undo` or `redo` and what comes after it, when that is all the prompt says."""
    last = state.messages[-1] if state.messages else None
    if last is None or last.role != "user" or len(last.content) != 1:
        return None
    first, _, rest = text_of(last.content).strip().partition(" ")
    return (first[1:], rest.strip()) if first[:1] == "/" and first[1:] in WORDS else None


async def answered(turn: Turn, home: Home, word: str, rest: str) -> TurnResult:
    """The turn of `/undo` or `/redo`."""
    turn.step_began(1)
    try:
        if word == "undo" and rest in ("list", "?"):
            text = await _listed(home, turn.info)
        else:
            done = await restored(home, turn.info, rest if word == "undo" else None)
            text = sentence(done, f"{word}ne")
    except Fault as fault:
        text = str(fault)
    turn.stream_opened(1)
    turn.text(text)
    await turn.spoke(1, (Text(text),), "end_turn", Usage(), 0.0)
    return TurnResult()


async def _listed(home: Home, info: SessionInfo) -> str:
    found = await checkpoints_of(home).listed(info)
    lines = [
        f"{number}. {one.turn}{' (undone)' if one.undone else ''}: "
        + ", ".join(f"{file.path} ({file.fate})" for file in one.files[:_SHOWN])
        for number, one in enumerate(found, 1)
    ]
    return "\n".join(lines) or "No turn of this session changed a file that was kept."


def sentence(done: Restored, verb: str) -> str:
    """What was done, for people and for the model."""
    lines = [f"{many(len(done.turns), 'turn')} {verb}."]
    lines += [f"{file.fate}: {file.path}" for file in done.files[:_SHOWN]]
    if len(done.files) > _SHOWN:
        lines.append(f"and {many(len(done.files) - _SHOWN, 'more file')}")
    if not done.files:
        lines.append("All files were so already.")
    if done.note:
        lines.append(done.note)
    return "\n".join(lines)
