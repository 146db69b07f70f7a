"""A shape that keeps the events it is given, for tests that look at what watchers see."""

import asyncio
from collections.abc import Callable

from dragoman.engine import events as ev
from dragoman.engine.events import Event, Who

ME = Who("test", id="c1")


class Tape:
    def __init__(self) -> None:
        self.events: list[Event] = []
        self.changed = asyncio.Event()

    def speak(self, events):
        self.events.extend(events)
        self.changed.set()
        return None

    def kinds(self) -> list[str]:
        return [type(e.body).__name__ for e in self.events if type(e.body) is not ev.Presence]

    def of(self, kind: type) -> list:
        return [e.body for e in self.events if type(e.body) is kind]

    def text(self) -> str:
        return "".join(body.text for body in self.of(ev.TextDelta))

    async def until(self, kind: type, where: Callable[[Event], bool] = lambda e: True) -> Event:
        async with asyncio.timeout(60):
            while True:
                for event in self.events:
                    if type(event.body) is kind and where(event):
                        return event
                self.changed.clear()
                await self.changed.wait()
