"""`dragoman run`: one turn in the terminal, streamed, with approvals asked there.

Exit codes: 0 the turn completed, 1 it failed or could not begin, 3 the model refused or its answer
was cut, 130 it was cancelled.
"""

import asyncio
import os
import select
import signal
import sys
from collections.abc import Sequence
from shlex import quote
from typing import Any

from dragoman.cli.dialogue import Decision, Dialogue, by_rule, put, screen_size
from dragoman.cli.ends import exit_code
from dragoman.cli.parse import Args
from dragoman.cli.run.printing import Ink, JsonLines, Screen
from dragoman.cli.run.turns import RunSession, Wish, seat
from dragoman.client import attachments
from dragoman.engine import events as ev
from dragoman.engine.content import Image, Text
from dragoman.engine.events import Ask, Event
from dragoman.engine.faults import AlreadySettled, BadInput
from dragoman.engine.info import has_worktree
from dragoman.engine.visible import visible
from dragoman.transports.loop import ended_by_signals, run

_PATIENCE = 3.0  # seconds for the first byte of a standard input that may be nobody's


class Human:
    """Answers approvals: at the keyboard where there is one, else by the rule that was given."""

    def __init__(self, seat: RunSession, rule: str, screen: Screen | JsonLines) -> None:
        self._seat = seat
        self._rule = rule  # ask, all, none; nobody: none was given, and nobody sits here
        self._screen = screen
        self._ink = Ink(sys.stderr)
        self._queue: asyncio.Queue[Ask] = asyncio.Queue()
        self._open: set[str] = set()  # asked, and not answered by anybody yet
        self._shown = ""  # what waits for the keyboard
        self._line: asyncio.Future[str] | None = None
        self._stopped = False  # by whoever sits here
        self.ended = ""  # why the model stopped
        self.unread: OSError | None = None  # nobody takes our output: `| head`, a full disk

    def stop(self) -> None:
        """Cancel the turn: Ctrl-C."""
        self._stopped = True
        if isinstance(self._screen, Screen):
            self._screen.stopped = True
        self._seat.cancel()

    def speak(self, events: Sequence[Event]) -> None:
        try:
            self._screen.speak(events)
        except OSError as problem:
            if self.unread is None:
                self.unread = problem
                self._seat.cancel()
        for event in events:
            if isinstance(event.body, ev.Asked):
                self._open.add(event.body.ask.id)
                self._queue.put_nowait(event.body.ask)
            elif isinstance(event.body, ev.Settled):
                self._open.discard(event.body.ask_id)
                if event.body.ask_id == self._shown and self._line is not None:
                    self._line.cancel()
            elif isinstance(event.body, ev.TurnEnded):
                self.ended = event.body.stop

    async def answer_all(self) -> None:
        while True:
            ask = await self._queue.get()
            if ask.id not in self._open:
                continue
            self._shown = ask.id
            deciding = asyncio.ensure_future(self._decide(ask))
            try:
                await asyncio.wait((deciding,))
            finally:
                deciding.cancel()
            self._shown = ""
            if deciding.cancelled():
                self._say("\n  you cancelled it" if self._stopped else "\n  answered elsewhere")
                continue
            decided = deciding.result()
            try:
                await self._seat.answer(ask, decided)
            except AlreadySettled as problem:
                self._say(f"  {visible(str(problem))}")

    async def _decide(self, ask: Ask) -> Decision:
        if self._rule == "ask":
            return await self._converse(ask)
        decided, said = by_rule(ask, self._rule)
        if said:
            self._say(said)
        return decided

    async def _converse(self, ask: Ask) -> Decision:
        """Show all of it, then take an answer."""
        dialogue = Dialogue(ask, screen_size())
        while True:
            decided = dialogue.typed(await self._type(dialogue.prompt()))
            if decided is not None:
                return decided

    def _say(self, text: str) -> None:
        if isinstance(self._screen, Screen):
            self._screen.fresh_line()
        sys.stderr.write(self._ink(text, "33") + "\n")
        sys.stderr.flush()

    async def _type(self, prompt: str) -> str:
        """A line from the keyboard, without a thread that could not be interrupted."""
        if isinstance(self._screen, Screen):
            self._screen.fresh_line()
        put(self._ink(prompt, "1;33"), sys.stderr)
        loop = asyncio.get_running_loop()
        typed_line: asyncio.Future[str] = loop.create_future()
        self._line = typed_line

        def typed() -> None:
            try:
                data = os.read(0, 65536)
            except OSError:  # the terminal is gone: nobody will say yes
                data = b""
            if not typed_line.done():
                typed_line.set_result(data.decode(errors="replace").strip() if data else "n")

        loop.add_reader(0, typed)
        os.set_blocking(0, True)  # what is printed goes to the same terminal, and must all arrive
        try:
            return await typed_line
        finally:
            loop.remove_reader(0)


async def one_turn(wish: Wish, *, as_json: bool, rule: str) -> int:
    """Take one turn in a session, print it."""
    wish.check()
    at = await seat(wish)
    try:
        await at.open(wish)
        worktree = wish.worktree or (wish.old and has_worktree(await at.extra()))
        screen = JsonLines() if as_json else Screen()
        human = Human(at, rule, screen)
        answers = asyncio.ensure_future(human.answer_all())
        turn = asyncio.ensure_future(at.turn(wish.content, human))
        loop = asyncio.get_running_loop()

        def interrupted() -> None:
            loop.remove_signal_handler(signal.SIGINT)  # the second one ends the program
            human.stop()

        loop.add_signal_handler(signal.SIGINT, interrupted)
        both: set[asyncio.Future[Any]] = {turn, answers}
        try:
            await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
            if answers.done() and not turn.done():  # answering broke: nobody could go on
                answers.result()
            outcome = await turn
        finally:
            turn.cancel()  # it hears no more of a host that is being closed
            answers.cancel()
        if human.unread is not None:
            raise human.unread
        if isinstance(screen, Screen):
            screen.end()
            if worktree:
                where = f" --config-dir {quote(wish.config_dir)}" if wish.config_dir else ""
                ways = f"dragoman sessions worktree merge {at.session}{where} (or: drop)"
                screen.aside(f"It worked in a worktree of its own. Take it over: {ways}", "2")
    finally:
        await at.close()
    return exit_code(outcome, human.ended)


def _standard_input(*, patient: bool) -> str:
    """What was piped in. With a prompt it is context, and nobody waits long for its first byte."""
    if not patient and not select.select([0], [], [], _PATIENCE)[0]:
        print("dragoman: nothing came on standard input: going on without it", file=sys.stderr)
        return ""
    data = sys.stdin.buffer.read(attachments.LARGEST_IMAGE + 1)
    if len(data) > attachments.LARGEST_IMAGE:
        raise BadInput("More than 10 MB came on standard input.", "Give a part of it.")
    return data.decode(errors="replace")


def main(args: Args) -> int:
    """Run one turn with the command line's arguments."""
    if getattr(args, "demo", False):
        from dragoman.cli.run.showcase import show

        return show()
    prompt = " ".join(args.prompt or ())
    at_terminal = sys.stdin is not None and sys.stdin.isatty()
    given = "" if at_terminal or sys.stdin is None else _standard_input(patient=not prompt)
    if not prompt:
        prompt, given = given, ""
    prompt = prompt.encode(errors="replace").decode()  # bytes of the command line that are no text
    if not prompt.strip():
        raise BadInput("There is no prompt.", 'Give one: dragoman run "list the files here".')
    more: list[Text | Image] = [attachments.image(path) for path in args.image]
    if given.strip():
        more.append(attachments.context("standard input", given))
    rule = args.approve or ("ask" if at_terminal else "nobody")
    folder = os.path.expanduser(args.cwd or os.getcwd())
    if args.prompt and (missed := attachments.missed(prompt, folder)):
        print(f"dragoman: {visible(missed)}", file=sys.stderr)
    wish = Wish(
        attachments.prompt(prompt, folder, *more),
        args.config_dir,
        agent=args.agent or "",
        cwd=args.cwd or "",
        model=args.model or "",
        mode=args.mode,
        session=args.session or "",
        newest=bool(getattr(args, "continue")),
        worktree=bool(args.worktree),
    )
    return run(ended_by_signals(one_turn(wish, as_json=bool(args.json), rule=rule)))
