"""Timers that a test lets come due when it likes, however busy the machine is."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

LONG = 500.0  # seconds; nobody waits so long


class Timers:
    """The timers of the loop that are due after a long time."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        loop = asyncio.get_running_loop()
        self.arranged = asyncio.Event()
        self._made: list[tuple[asyncio.TimerHandle, Callable[..., object], Any]] = []
        usual = loop.call_later

        def call_later(delay: float, run: Callable[..., object], *given: Any, **more: Any) -> Any:
            timer = usual(delay, run, *given, **more)
            if delay > LONG / 2:
                self._made.append((timer, run, given))
                self.arranged.set()
            return timer

        monkeypatch.setattr(loop, "call_later", call_later)

    def come_due(self) -> None:
        """Do now what was arranged for later."""
        made, self._made = self._made, []
        for timer, run, given in made:
            if not timer.cancelled():
                timer.cancel()
                run(*given)
