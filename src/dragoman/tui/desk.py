"""One session at the terminal: opened, read from its end backwards, followed, driven."""

import asyncio
from collections.abc import Awaitable, Callable
from time import time
from uuid import uuid4

from dragoman.client.host import HostClient
from dragoman.client.problems import beginning
from dragoman.engine.content import Image, Text
from dragoman.engine.events import Event, ExtraSet, TurnBegan
from dragoman.engine.faults import Fault, NothingRunning
from dragoman.engine.info import has_worktree

from .begin import Wish
from .link import ScreenLink
from .story import Story

_PAGE = 400  # kept events that are read at once, from the end backwards


class ShownSession:
    """The session that is shown. `changed` is called when there is something new to draw."""

    def __init__(
        self,
        link: ScreenLink,
        wish: Wish,
        changed: Callable[[], None],
        heard: Callable[[Event], None] = lambda event: None,
    ) -> None:
        self.link = link
        self.wish = wish
        self.story = Story(link.name)
        self.session = ""
        self.cwd = wish.cwd
        self.agent = ""  # the session's
        self.worktree = False  # of its own, and not ended yet
        self._first = 1  # the first kept event that was read
        self._reading = False
        self._changed = changed
        self._heard = heard
        self._task: asyncio.Task[None] | None = None
        self._keys: list[str] = []  # prompts of ours that wait
        self._opening = asyncio.Lock()

    # --- which session ---

    def leave(self) -> None:
        """No session: the next prompt begins one."""
        if self._task is not None:
            self._task.cancel()
            self._task = None
        self.session = ""
        self.cwd = self.wish.cwd
        self.agent, self.worktree = "", False
        self._keys.clear()
        self.story = Story(self.link.name)

    async def open(self, session_id: str) -> None:
        """Show a session, its newest part first, and follow it."""
        host = await self.link.ready()
        facts = await host.session(session_id)
        self.leave()
        info = facts.session
        self.session, self.cwd = session_id, info.cwd
        self.agent, self.worktree = info.agent, has_worktree(info.extra)
        story = self.story
        events = await self._tail(host, info.last_seq)
        for event in events:
            story.take(event)
        story.model, story.mode = info.model, info.mode
        story.cost, story.usage, story.present = info.cost, info.last_usage, facts.present
        story.asks = {ask.id: ask for ask in facts.asks}
        last = events[-1].seq if events else info.last_seq
        self._begin(session_id, last)

    def _begin(self, session_id: str, since: int) -> None:
        self._task = asyncio.create_task(self._follow(session_id, since))
        self._task.add_done_callback(self._ended)

    async def _follow(self, session_id: str, since: int) -> None:
        story, changed, heard = self.story, self._changed, self._heard

        def take(event: Event) -> None:
            if type(event.body) is TurnBegan and event.body.key in self._keys:
                self._keys.remove(event.body.key)
            elif type(event.body) is ExtraSet:
                tree = event.body.values.get("worktree") or {}
                self.worktree = self.worktree and not tree.get("ended")
            story.take(event)
            heard(event)
            changed()

        def begin() -> None:
            story.drop_draft()
            changed()

        try:
            await self.link.follow(session_id, since, take, begin)
        except Fault as fault:
            story.note(
                f"This session is not followed any more: {fault}", int(time() * 1000), "error"
            )
            changed()

    def _ended(self, task: "asyncio.Task[None]") -> None:
        """A mistake of ours must not end the following in silence."""
        if task.cancelled() or (problem := task.exception()) is None:
            return
        said = mistake("the session is not followed any more; /resume opens it again", problem)
        if task is self._task:
            self.story.note(said, int(time() * 1000), "error")
            self._changed()
        told = {"message": "following a session failed", "exception": problem, "task": task}
        task.get_loop().call_exception_handler(told)

    @property
    def waiting(self) -> int:
        """How many prompts of ours have not begun yet."""
        return len(self._keys)

    async def _tail(self, host: HostClient, last: int) -> list[Event]:
        """The last events, beginning with a prompt, so that no turn is cut in two."""
        found: list[Event] = []
        end = last
        while True:
            start = max(end - _PAGE, 0)
            page = [e async for e in host.history(self.session, start, end - start or 1)]
            page = [event for event in page if event.seq <= end]
            found = page + found
            at = next((n for n, e in enumerate(page) if type(e.body) is TurnBegan), None)
            if start == 0:
                self._first = 1
                return found
            if at is not None:
                self._first = page[at].seq
                return found[at:]
            end = start

    async def older(self) -> int:
        """Read what was before; returns how many pieces were put before all others."""
        if self._reading or self._first <= 1 or not self.session:
            return 0
        self._reading = True
        story, session = self.story, self.session
        try:
            host = await self.link.ready()
            first = self._first
            events = await self._tail(host, first - 1)
        except Fault:
            return 0  # asked for again when the reader comes near once more
        finally:
            self._reading = False
        if story is not self.story or session != self.session:
            return 0
        before = Story(story.me)
        for event in events:
            before.take(event)
        before.gather()
        story.prepend(before.pieces)
        return len(before.pieces)

    # --- driving ---

    async def _ensure(self) -> str:
        async with self._opening:
            if not self.session:
                host = await self.link.ready()
                wish = self.wish
                made = await self.link.answered(host.open(
                    agent=wish.agent, cwd=self.cwd, model=wish.model, mode=wish.mode,
                    title=wish.prompt[:60] if wish.worktree else "", worktree=wish.worktree,
                ))  # fmt: skip
                self.session, self._first = made.id, 1
                self.agent, self.worktree = made.agent, has_worktree(made.extra)
                self._begin(made.id, 0)
            return self.session

    async def send(self, content: tuple[Text | Image, ...]) -> None:
        """Give a prompt; it waits its turn."""
        self.link.want()
        session = await self._ensure()
        key = uuid4().hex
        self._keys.append(key)
        try:
            host = await self.link.ready()
            await self.link.answered(host.submit(session, content, key=key))
        except BaseException:
            if key in self._keys:
                self._keys.remove(key)
            raise

    async def steer(self, text: str) -> bool:
        """Say something into the running turn; False when it has ended meanwhile."""
        return await _done(self.link.answered(self.link.host.steer(self.session, text)))

    async def interrupt(self) -> bool:
        """Stop the running turn; what is queued comes next. False when nothing runs."""
        if not self.session:
            return False
        return await _done(self.link.answered(self.link.host.cancel(self.session)))

    async def newest(self) -> str:
        """The newest conversation of the folder, or nothing."""
        found = await (await self.link.ready()).newest(self.wish.cwd)
        return found.id if found is not None else ""

    async def find(self, given: str) -> str:
        """The whole id for a beginning of one. Raises the host's Fault."""
        host = await self.link.ready()
        rows = await host.list(limit=10_000, archived=None)
        found = beginning((row.id for row in rows), given)
        return found[0] if len(found) == 1 else given


async def _done(work: Awaitable[str]) -> bool:
    """Whether something could be done to the running turn; False when none runs."""
    try:
        await work
    except NothingRunning:
        return False
    return True


def mistake(what: str, problem: BaseException) -> str:
    """What to say of a mistake of ours."""
    said = f"{type(problem).__name__}: {problem}"
    return f"This is a mistake of the terminal's own: {what}. Please report it ({said})."
