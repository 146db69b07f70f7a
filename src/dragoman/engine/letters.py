"""Answers to questions of a session that another process has.

Nobody but its writer settles a question. So an answer that comes to another process of the same
store is left there as a letter; the writer looks for letters while it has questions open, answers
as if it had been told itself, and writes down what came of it. Nothing else tells one process of
the other, so both look again and again: for seconds, and only where somebody waits.
"""

import asyncio

import msgspec

from .ask import AskReply, Verdict
from .events import Settled, Who, already
from .faults import AlreadySettled, Fault, InUse
from .host import Host
from .ids import token
from .ports import row_of
from .refusal import CarriedFault, fault_of, refusal_of
from .session import Session

LETTERS = "letters"  # their space in the store
HOLDS_SECONDS = 10.0  # a letter counts for so long
_LOOK_SECONDS = 0.2  # between two looks of a writer
_ASK_SECONDS = 0.05  # between two looks of whoever waits for one


class Letter(msgspec.Struct, frozen=True, omit_defaults=True):
    """An answer, and what came of it once its reader has seen it."""

    session: str
    at: int
    ask_id: str
    verdict: Verdict
    by: Who | None = None
    comment: str = ""
    text: str = ""
    scope: str = ""
    lasts: str = ""
    digest: str = ""
    settled: Settled | None = None
    refusal: CarriedFault | None = None

    @property
    def is_read(self) -> bool:
        return self.settled is not None or self.refusal is not None

    async def given_to(self, session: Session) -> Settled:
        reply = AskReply(
            self.ask_id, self.verdict, self.by, self.comment, self.text, self.scope, self.lasts,
            self.digest,
        )  # fmt: skip
        return await session.asks.answer(reply)


async def answered(host: Host, letter: Letter) -> Settled:
    """Have the process that has the session answer; when it ends meanwhile, this one does.

    Raises what it refuses, AlreadySettled, InUse when it does not look.
    """
    store, key = host.store, f"{letter.ask_id}/{token()}"
    await store.put(LETTERS, key, msgspec.json.encode(letter))
    try:
        async with asyncio.timeout(HOLDS_SECONDS):
            while True:
                seen = row_of(await store.get(LETTERS, key), Letter) or letter
                if seen.settled is not None:
                    return seen.settled
                if seen.refusal is not None:
                    raise fault_of(seen.refusal)
                if not await _has_writer(host, letter.session):
                    return await letter.given_to(await host.get(letter.session))
                await asyncio.sleep(_ASK_SECONDS)
    except AlreadySettled:
        return await _ours(host, letter, None)
    except TimeoutError:
        silent = InUse(
            f"The process that has session {letter.session} does not take answers now.",
            "Try again, or answer where the session was begun.",
            session=letter.session,
        )
        return await _ours(host, letter, silent)
    finally:
        await store.put(LETTERS, key, None)


async def _ours(host: Host, letter: Letter, silent: Fault | None) -> Settled:
    """What is kept, if it is this answer: its reader may have ended before it could say so."""
    row = await host.store.ask(letter.ask_id)
    if row is None or row.settled is None:
        assert silent is not None  # else it was settled
        raise silent
    if row.settled.by == letter.by and row.settled.verdict == letter.verdict:
        return row.settled
    raise already(row.settled)


async def _has_writer(host: Host, session_id: str) -> bool:
    """Whether another living process has the session."""
    owner = await host.store.owner(session_id)
    return bool(owner) and owner != host.owner and host.is_alive(owner or "")


class Letters:
    """Reads the letters to one process, while it has questions open and for a little longer."""

    def __init__(self, host: Host) -> None:
        self._host = host
        self._task: asyncio.Task[None] | None = None

    def look(self) -> None:
        """A question is open now."""
        if self._task is None:
            self._task = self._host.spawn(self._look())

    async def _look(self) -> None:
        monotonic = self._host.clock.monotonic
        until = 0.0
        try:
            while self._asks() or monotonic() < until:
                if self._asks():
                    until = monotonic() + HOLDS_SECONDS
                await asyncio.sleep(_LOOK_SECONDS)
                await self._read_all()
        finally:
            self._task = None

    def _asks(self) -> bool:
        return any(one.own and one.state.asks for one in self._host.live.values())

    async def _read_all(self) -> None:
        store = self._host.store
        try:
            for key, data in await store.pairs(LETTERS):
                letter = row_of(data, Letter)
                age = self._host.clock.now_ms() - letter.at if letter is not None else 0
                if letter is None or age > HOLDS_SECONDS * 1000:
                    await store.put(LETTERS, key, None)
                elif not letter.is_read and (said := await self._answer(letter)) is not None:
                    await store.put(LETTERS, key, msgspec.json.encode(said))
        except Fault as problem:  # of the store, which tells it elsewhere too; look again
            self._host.trouble("letters were not read", problem)

    async def _answer(self, letter: Letter) -> Letter | None:
        session = self._host.live.get(letter.session)
        if session is None or not session.own:
            return None
        try:
            settled = await letter.given_to(session)
        except Fault as fault:
            return msgspec.structs.replace(letter, refusal=refusal_of(fault))
        return msgspec.structs.replace(letter, settled=settled)
