"""Traces and figures as the configuration has them: begun, ended and begun anew while we run."""

import asyncio
import importlib
from typing import TYPE_CHECKING

from dragoman.engine.door import Door
from dragoman.observe.aloud import aloud
from dragoman.observe.log import get_log
from dragoman.settings.host import Telemetry as Settings

if TYPE_CHECKING:
    from dragoman.daemon.telemetry import Telemetry

log = get_log("daemon")


class Tracing:
    """What `[telemetry]` asks for."""

    def __init__(self, door: Door) -> None:
        self._door = door
        self._wanted = self._used = Settings()  # which is off
        self._telemetry: Telemetry | None = None
        self._following = asyncio.Lock()

    async def follow(self, wanted: Settings) -> None:
        """Do as these settings say; of changes that come at once, the last one counts."""
        self._wanted = wanted
        async with self._following:
            if self._used != self._wanted:
                self._used = wanted = self._wanted
                # The old one hears nothing from the first instant on; its end may take a while.
                await asyncio.gather(self._end(), self._begin(wanted))

    async def _begin(self, wanted: Settings) -> None:
        if not wanted.enabled:
            return
        importlib.invalidate_caches()  # the package may have been added since we looked
        try:
            from dragoman.daemon.telemetry import Telemetry

            self._telemetry = await Telemetry.begin(self._door, wanted)
        except ImportError as problem:
            from dragoman.observe.extras import adding

            hint = f"Install it: {adding('telemetry')}"
            said = "Telemetry needs a package that is not installed."
            aloud(f"dragoman: {said} {hint}")
            log.error(said, problem=problem, hint=hint)
        except ValueError as problem:  # the SDK could not read a variable of the environment
            said = "Telemetry could not begin: a variable OTEL_… is wrong."
            aloud(f"dragoman: {said} {problem}")
            log.error(said, problem=problem)
        except Exception as problem:  # of the SDK, its parts, or the store: we do without figures
            said = "Telemetry could not begin."
            aloud(f"dragoman: {said} {problem}")
            log.error(said, problem=problem)
        else:
            log.info("telemetry begins", endpoint=wanted.endpoint, contents=wanted.contents)

    async def _end(self) -> None:
        old, self._telemetry = self._telemetry, None
        if old is not None:
            await old.close()
            log.info("telemetry ended")

    async def close(self) -> None:
        """Send what is left."""
        async with self._following:
            await self._end()
