"""The terminal without a daemon: events come from the test, and calls of the host are kept."""

import asyncio
from collections.abc import Callable
from typing import Any

from textual.pilot import Pilot

from dragoman.engine import events as ev
from dragoman.engine.ask import Ask, Scope
from dragoman.engine.content import Text
from dragoman.engine.faults import Fault
from dragoman.tui.app import Terminal
from dragoman.tui.begin import Wish
from dragoman.tui.link import ScreenLink

SESSION = "s"


class Recorder:
    """Stands where the connection is: keeps every call, and fails those that it is told to."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = []
        self.refuse: Fault | None = None
        self.gate = asyncio.Event()  # every call waits for it
        self.gate.set()

    def __getattr__(self, name: str) -> Callable[..., Any]:
        async def call(*args: Any, **more: Any) -> Any:
            self.calls.append((name, args, more))
            await self.gate.wait()
            if self.refuse is not None:
                raise self.refuse
            return []

        return call

    def of(self, name: str) -> list[tuple[tuple[Any, ...], dict[str, Any]]]:
        return [(args, more) for called, args, more in self.calls if called == name]


class StagedLink(ScreenLink):
    """A connection that is always there."""

    def __init__(self, recorder: Recorder) -> None:
        super().__init__(None, lambda state, words: None)
        self._host = recorder  # type: ignore[assignment]

    async def keep(self) -> None:
        """Nothing is connected."""

    async def follow(self, *given: Any) -> None:
        """Nothing is followed."""

    async def follow_all(self, *given: Any) -> None:
        """Nothing is watched."""


class Stage(Terminal):
    """The terminal as it is; `host` is what it talks to."""

    def __init__(self, folder: str) -> None:
        super().__init__(Wish(folder))
        self.host = Recorder()
        self.link = self.desk.link = StagedLink(self.host)
        self.inbox._link = self.link
        self.desk.session = SESSION

    async def _begin(self) -> None:
        self.status.state = ""

    async def _facts(self) -> None:
        """There are no models."""

    def tell(self, *bodies: ev.Body) -> None:
        """Something happened in the session; it is drawn at once."""
        for body in bodies:
            self.desk.story.take(ev.Event(SESSION, 1, body, 1, 1))
        self._draw()

    def shown(self) -> str:
        """The screen as text."""
        return "\n".join(strip.text.rstrip() for strip in self.screen._compositor.render_strips())


def ask(number: int, command: str = "touch x") -> Ask:
    """A question about a command."""
    return Ask(
        f"ask_{number}", SESSION, "tool", f"Run command {number}?", number, tool="bash",
        args={"command": command}, scopes=(Scope("exact", "exact", f"the command {number}"),),
    )  # fmt: skip


def said(text: str) -> ev.TurnBegan:
    return ev.TurnBegan("t1", (Text(text),), None)


async def until(pilot: "Pilot[int]", true: Callable[[], object], tries: int = 400) -> None:
    """Let the terminal work until something is so."""
    for _ in range(tries):
        if true():
            return
        await pilot.pause(0.01)
    raise AssertionError(f"it did not become so; the screen:\n{pilot.app.shown()}")  # type: ignore[attr-defined]
