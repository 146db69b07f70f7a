"""Which commands a session left running, written down: after a crash they are told to be gone."""

from collections.abc import Mapping, Sequence

from dragoman.engine import events as ev
from dragoman.engine.host import Host
from dragoman.engine.ports.agents import PromptTurn
from dragoman.engine.traits import Background

_MOST = 24  # commands of one session that are remembered
_LONGEST = 200  # characters of a command
_TITLE = (
    "These background commands of yours ended with the host that ran them, or when it let this "
    "session go:"
)
GONE = "gone with the host that ran it (stopped, crashed or let the session go), exit code unknown"


class LeftRunning:
    """One for a host (`tools.background.JobBook`)."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._here: set[tuple[str, str]] = set()  # those that are this process's own

    def began(self, session: str, command: str) -> str:
        """Write a command down; returns its id, which no other command of the session had."""
        known = self._known(session)
        numbers = [int(id[2:]) for id in known.commands if id[2:].isdigit()]
        id = f"bg{max(numbers, default=0) + 1}"
        self._here.add((session, id))
        brief = command if len(command) <= _LONGEST else f"{command[:_LONGEST]}…"
        left = dict(list(known.commands.items())[1 - _MOST :]) | {id: brief}
        self._write(session, Background(left, _of(left, known.ends)))
        return id

    def ended(self, session: str, id: str, how: str) -> None:
        known = self._known(session)
        if id in known.commands:
            self._write(session, Background(known.commands, {**known.ends, id: how}))

    def left(self, session: str) -> None:
        """The session is let go here, and its commands with it."""
        self._here = {one for one in self._here if one[0] != session}

    def lost(self, session: str) -> Mapping[str, str]:
        """The commands that this process has not: a line about each, by id."""
        known = self._known(session)
        return {
            id: f"{id}: {known.ends.get(id, GONE)}: {command}"
            for id, command in known.commands.items()
            if (session, id) not in self._here
        }

    async def said(self, turn: PromptTurn) -> Sequence[str]:
        """A part of the system prompt: which commands are gone; told once."""
        known = Background.of(turn.info.extra)
        session = turn.info.id
        gone = [
            id for id in known.commands if id not in known.ends and (session, id) not in self._here
        ]
        if not gone:
            return ()
        lines = [f"- {id}: {known.commands[id]}" for id in gone]
        ends = {**known.ends, **dict.fromkeys(gone, GONE)}
        self._write(session, Background(known.commands, ends))
        return ("\n".join([_TITLE, *lines, "Start again what you still need."]),)

    def _known(self, session: str) -> Background:
        live = self._host.live.get(session)
        return Background.of(live.state.extra) if live is not None else Background()

    def _write(self, session: str, found: Background) -> None:
        live = self._host.live.get(session)
        if live is None or live.ledger.closing or live.ledger.parked:
            return  # what nobody could write down is told to be gone
        body = ev.ExtraSet({found.NAME: {"commands": found.commands, "ends": found.ends}}, None)
        live.ledger.put(body).add_done_callback(live.ledger.unheard)


def _of(commands: Mapping[str, str], ends: Mapping[str, str]) -> dict[str, str]:
    return {id: how for id, how in ends.items() if id in commands}
