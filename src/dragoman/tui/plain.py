"""`--plain`: the same conversation in lines only, for screen readers and simple terminals.

Nothing is drawn over, nothing moves: every line is said once, beginning with who says it.
"""

import asyncio
import os
import signal
import sys

from dragoman.client import attachments
from dragoman.client.problems import ConnectionGone, NotRunning
from dragoman.engine import events as ev
from dragoman.engine import shown
from dragoman.engine.ask import Ask, Verdict
from dragoman.engine.content import ToolCall, not_streamed, text_of
from dragoman.engine.events import Event
from dragoman.engine.faults import Fault
from dragoman.engine.reading import counted
from dragoman.engine.visible import many, on_a_line, unpainted

from .begin import Wish, way_back
from .desk import ShownSession
from .link import ScreenLink
from .paint import told
from .question import ask_rows
from .rows import safe
from .story import noted
from .unknown import check

_LOOK = 0.5  # seconds in which a line is no answer to a question that was put just now
_OWN = ("quit", "exit", "help", "stop", "new", "sessions", "resume")
_HELP = """\
Type what the agent is to do. Lines of your own that mean something else:
/stop stops the turn. /new begins another session. /sessions lists them. /resume ID opens one.
/quit or ctrl+d leaves, ctrl+c stops the turn and leaves at the second time.
A question is answered with y, n, a and a number (always), or with words."""


class PlainScreen:
    """One conversation on standard input and output."""

    def __init__(self, wish: Wish) -> None:
        self.link = ScreenLink(wish.config_dir, self._told)
        self.desk = ShownSession(self.link, wish, lambda: None, self.take)
        self.wish = wish
        self._mid_line = ""
        self._streamed = ""  # of the message that is being said
        self._asks: dict[str, Ask] = {}
        self._invited = ""  # the question that the next line answers
        self._inviting: asyncio.TimerHandle | None = None
        self._warned = False  # the next ctrl+c leaves
        self._stopping: asyncio.Task[None] | None = None

    async def run(self) -> int:
        loop = asyncio.get_running_loop()
        keeper = loop.create_task(self.link.keep())
        lines = _Lines()
        talk = loop.create_task(self._talk(lines))
        loop.add_signal_handler(signal.SIGINT, self._ctrl_c, talk)
        try:
            await asyncio.wait({talk})
            if not talk.cancelled():
                talk.result()
        finally:
            loop.remove_signal_handler(signal.SIGINT)
            lines.close()
            back = way_back(self.desk.session, self.wish.config_dir, self.desk.worktree)
            self.desk.leave()
            ended = [keeper] if self._stopping is None else [keeper, self._stopping]
            for task in ended:
                task.cancel()
            await asyncio.gather(*ended, return_exceptions=True)
        if back:
            self._say(back)
        return 0

    async def _talk(self, lines: "_Lines") -> None:
        await self._begin()
        while (text := await lines.next()) is not None:
            self._warned = False
            try:
                if not await self.typed(text):
                    break
            except Fault as fault:
                self._say(f"problem: {fault}")

    def _ctrl_c(self, talk: "asyncio.Task[None]") -> None:
        """Stop the turn; leave at the second time, when no line was typed in between."""
        sys.stdout.write("\n")  # after the ^C that the terminal shows
        self._mid_line = ""
        if self._warned:
            talk.cancel()
            return
        self._warned = True
        self._stopping = asyncio.ensure_future(self._stop())

    async def _stop(self) -> None:
        try:
            stopped = await self.desk.interrupt()
        except Fault as fault:
            self._say(f"problem: {fault}")
            stopped = False
        self._say(f"{'the turn is stopped; ' if stopped else ''}ctrl+c again leaves")

    async def _begin(self) -> None:
        await self.link.ready()
        wish = self.wish
        if wish.session:
            await self.desk.open(await self.desk.find(wish.session))
        elif wish.newest and (newest := await self.desk.newest()):
            await self.desk.open(newest)
        self._say(f"dragoman in {self.desk.cwd}. /help tells the commands.")
        if told := await self.link.unused_keys(await self._model()):
            self._say(f"note: {told}")
        if self.desk.session:
            entries = many(len(self.desk.story.pieces), "entry", "entries")
            self._say(f"session {self.desk.session[:8]}, {entries}")
            for ask in self.desk.story.asks.values():
                self._question(ask)
        if wish.pick:
            await self.typed("/sessions")
        if wish.prompt:
            await self.typed(wish.prompt)

    async def _model(self) -> str:
        """The model of the session, or of the one that begins next."""
        if self.desk.session or self.wish.model:
            return self.desk.story.model or self.wish.model
        rows = await self.link.host.agents()
        named = [one for one in rows if one.alias == self.wish.agent] or rows
        return named[0].model if named else ""

    async def typed(self, text: str) -> bool:
        """Act on one line; False ends the conversation."""
        name, _, words = text.strip().partition(" ")
        if not text.strip():
            return True
        if self._asks and name not in ("/quit", "/exit", "/stop", "/help"):
            await self._take_answer(next(iter(self._asks.values())), text.strip())
        elif name in ("/quit", "/exit"):
            return False
        elif name == "/help":
            self._say(_HELP)
        elif name == "/stop":
            self._say("stopped" if await self.desk.interrupt() else "nothing runs")
        elif name == "/new":
            self.desk.leave()
            self._say("a new session begins with your next line")
        elif name == "/sessions":
            for info in await self.link.host.list(limit=20):
                title = " ".join((info.title or info.query or "(nothing yet)").split())
                self._say(f"{info.id[:8]}, {info.status}: {safe(title)[:60]}")
        elif name == "/resume":
            await self.desk.open(await self.desk.find(words.strip()))
            self._say(f"session {self.desk.session[:8]}")
        else:
            await check(text, _OWN, self.desk)
            if not (self.desk.story.turn and await self.desk.steer(text)):
                if missed := attachments.missed(text, self.desk.cwd):
                    self._say(f"note: {safe(missed)}")
                await self.desk.send(attachments.prompt(text, self.desk.cwd))
        return True

    async def _take_answer(self, ask: Ask, said: str) -> None:
        """A line that was on its way when the question came was meant for something else."""
        if self._invited != ask.id:
            self._say(f"not taken as an answer, it came too soon: {safe(said)}")
            self._put_question(ask)
            return
        try:
            await self._answer(ask, said)
        except (ConnectionGone, NotRunning):
            self._asks = {ask.id: ask, **self._asks}
            raise
        finally:
            if left := next(iter(self._asks.values()), None):
                self._put_question(left)

    async def _answer(self, ask: Ask, said: str) -> None:
        word = said.lower()
        if ask.kind == "question":
            if 0 < (counted(said) or 0) <= len(ask.choices):
                said = ask.choices[int(said) - 1]
            await self._settle(ask, "answer", text=said)
        elif word in ("y", "yes"):
            await self._settle(ask, "allow")
        elif word[:1] == "a" and (number := counted(word[1:].strip())) is not None:
            found = shown.options(ask)
            if not 0 < number <= len(found):
                self._say(f"there is no a{number}; nothing was answered")
                return
            _, scope, lasts = found[number - 1]
            await self._settle(ask, "allow_always", scope=scope.id, lasts=lasts)
        else:
            comment = "" if word in ("n", "no") else said
            await self._settle(ask, "deny", comment=comment)

    async def _settle(self, ask: Ask, verdict: Verdict, **more: str) -> None:
        self._asks.pop(ask.id, None)
        await self.link.host.answer(ask.id, verdict, digest=ask.digest, **more)

    # --- what is said ---

    def _told(self, state: str, words: str) -> None:
        if words:
            self._say(f"dragoman: {words}")

    def take(self, event: Event) -> None:
        """Write what happened."""
        body = event.body
        match body:
            case ev.TextDelta(text=text):
                self._streamed += text
                self._stream("agent: ", text)
            case ev.Spoke(content=content):
                self._rest_of(text_of(content))
                self._fresh()
                for block in content:
                    if isinstance(block, ToolCall):
                        self._say(f"tool: {safe(f'{block.name} {told(block.name, block.args)}')}")
            case ev.Progress(text=text):
                self._stream("output: ", unpainted(text))
            case ev.CallEnded(name=name, outcome=outcome, is_error=wrong):
                self._say(f"tool: {safe(name)} {'failed' if wrong else outcome}")
            case ev.TurnBegan(by=by) if by is not None and by.name != self.link.name:
                self._say(safe(f"{by.name or by.dialect}: {_text(body)}"))
            case ev.TurnEnded(outcome=outcome, error=error):
                self._say(f"turn {outcome}{f': {safe(error)}' if error else ''}")
            case ev.Asked(ask=ask):
                self._question(ask)
            case ev.Settled(ask_id=ask_id, verdict=verdict, by=by):
                self._settled(ask_id, f"{verdict} by {safe(str(by or 'the host'))}")
            case ev.Noted():
                self._say(f"note: {safe(noted(body))}")

    def _rest_of(self, text: str) -> None:
        rest, follows = not_streamed(text, self._streamed)
        self._streamed = ""
        if not follows:
            self._fresh()
        if rest:
            self._stream("agent: ", rest)

    def _settled(self, ask_id: str, how: str) -> None:
        first = next(iter(self._asks), "")
        if self._asks.pop(ask_id, None) is None:
            return  # we answered it
        self._say(f"answered elsewhere: {how}")
        if first == ask_id and (left := next(iter(self._asks.values()), None)):
            self._put_question(left)

    def _question(self, ask: Ask) -> None:
        """Ask; one after the other, so that it is clear what the next line answers."""
        self._asks[ask.id] = ask
        if len(self._asks) == 1:
            self._put_question(ask)
        else:
            self._say(f"another question waits: {on_a_line(ask.title)}")

    def _put_question(self, ask: Ask) -> None:
        self._invited = ""
        self._say(f"question: {on_a_line(ask.title)}")
        for row in ask_rows(ask, 10_000):
            self._say(f"  {row.shown.plain}")
        for number, choice in enumerate(ask.choices, 1):
            self._say(f"  {number}. {on_a_line(choice)}")
        for number, (words, _, _) in enumerate(shown.options(ask), 1):
            self._say(f"  a{number}: always {words}")
        if self._inviting is not None:
            self._inviting.cancel()
        self._inviting = asyncio.get_running_loop().call_later(_LOOK, self._invite, ask)

    def _invite(self, ask: Ask) -> None:
        """Say that the next line is the answer, when the question could be read."""
        if next(iter(self._asks), "") != ask.id:
            return  # it was answered elsewhere
        self._invited = ask.id
        if ask.kind == "question":
            self._say("answer: a number or words")
        else:
            self._say(f"answer: y, n{', a and its number' if ask.scopes else ''}, or say why not")

    def _stream(self, who: str, text: str) -> None:
        if self._mid_line != who:
            self._fresh()
            sys.stdout.write(who)
        self._mid_line = who
        sys.stdout.write(safe(text))
        if text.endswith("\n"):
            self._mid_line = ""
        sys.stdout.flush()

    def _fresh(self) -> None:
        if self._mid_line:
            sys.stdout.write("\n")
            self._mid_line = ""

    def _say(self, text: str) -> None:
        self._fresh()
        sys.stdout.write(text + "\n")
        sys.stdout.flush()


class _Lines:
    """Lines from the keyboard, without a thread that could not be ended."""

    def __init__(self) -> None:
        self._queue: asyncio.Queue[str | None] = asyncio.Queue()
        self._data = b""
        asyncio.get_running_loop().add_reader(0, self._read)
        os.set_blocking(0, True)  # what is printed goes to the same terminal, and must all arrive

    def _read(self) -> None:
        try:
            data = os.read(0, 65536)
        except OSError:  # the terminal is gone
            data = b""
        if not data:
            self._queue.put_nowait(None)
            self.close()
            return
        *lines, self._data = (self._data + data).split(b"\n")
        for line in lines:
            self._queue.put_nowait(line.decode(errors="replace"))

    async def next(self) -> str | None:
        return await self._queue.get()

    def close(self) -> None:
        asyncio.get_running_loop().remove_reader(0)


def _text(body: ev.TurnBegan) -> str:
    return " ".join(block.text for block in body.content if hasattr(block, "text"))


def talk(wish: Wish) -> int:
    """Hold the conversation; returns the exit code."""
    return asyncio.run(PlainScreen(wish).run())
