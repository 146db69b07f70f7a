"""Webhooks out: kept events posted to an address, signed, in order, tried again when it fails.

How far an address has been told is kept in the store, so that a restart loses nothing: every event
is posted at least once. An address that stays away for all tries loses that one event, which is
logged, and the next one is tried.
"""

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec

from dragoman.engine.events import Event
from dragoman.engine.faults import Fault
from dragoman.engine.ports import row_of
from dragoman.holding import Holder
from dragoman.observe.log import get_log

from . import views
from .signing import HEADER, sign

if TYPE_CHECKING:
    from dragoman.settings.host import Callback as Settings

    from .gate import Gate

SPACE = "callbacks"
_PAGE = 200
_FIRST_WAIT = 1.0
_LONGEST_WAIT = 300.0
_AGAIN_SECONDS = 5.0
log = get_log("gateway.callbacks")


class Nudge(Holder):
    """`engine.hub.Shape` that says nothing and wakes whoever posts."""

    woken: asyncio.Event = msgspec.field(default_factory=asyncio.Event)

    def speak(self, events: Sequence[Event]) -> None:
        if any(one.seq for one in events):
            self.woken.set()
        return None


class Callback(Holder):
    """One address that is told."""

    _gate: "Gate"
    name: str
    settings: "Settings"
    _nudge: Nudge = msgspec.field(default_factory=Nudge)
    at: int | None = None  # the place that was looked at last

    async def run(self) -> None:
        from dragoman.engine.events import Who

        who = Who("webhook", "out", self.name, f"callback-{self.name}")
        await self._gate.door.reached()
        watch = self._gate.door.watch_all(who, self._nudge, lambda said: None)
        try:
            while True:
                self._nudge.woken.clear()
                try:
                    await self.post_what_came()
                except Fault as problem:  # of the store: it goes on from where it stopped
                    log.warning("callbacks wait", callback=self.name, problem=str(problem))
                    await asyncio.sleep(_AGAIN_SECONDS)
                    continue
                await self._nudge.woken.wait()
        finally:
            watch.close()

    async def _start(self) -> int:
        place = row_of(await self._gate.door.shelf.get(SPACE, self.name), int)
        if place is not None:
            return place
        newest = await self._gate.door.newest()  # a new address is not told the past
        await self._keep(newest)
        return newest

    async def _keep(self, at: int) -> None:
        await self._gate.door.shelf.put(SPACE, self.name, str(at).encode())

    async def post_what_came(self) -> None:
        """Post what came since the last look, page by page."""
        if self.at is None:
            self.at = await self._start()
        while True:
            page = await self._gate.door.read_all(self.at, _PAGE)
            for event in page:
                wanted = self._wants(event)
                if wanted:
                    await self._post(event)
                self.at = event.gseq
                if wanted:
                    await self._keep(event.gseq)
            if len(page) < _PAGE:
                return

    def _wants(self, event: Event) -> bool:
        kinds = self.settings.events
        return not kinds or str(event.body.__struct_config__.tag) in kinds

    async def _post(self, event: Event) -> None:
        from dragoman.http.port import HttpFault

        body = views.encode(event)
        wait = _FIRST_WAIT
        tries = self.settings.retries + 1
        for number in range(1, tries + 1):
            headers = {
                "content-type": "application/json",
                "user-agent": f"dragoman/{self._gate.door.facts.version}",
                "x-dragoman-event": str(event.body.__struct_config__.tag),
                "x-dragoman-delivery": f"{event.gseq}",
                "x-dragoman-attempt": str(number),
            }
            if self.settings.secret:
                headers[HEADER] = sign(self.settings.secret, body)
            try:
                async with asyncio.timeout(self.settings.timeout_secs):
                    answer = await self._gate.client().fetch(
                        "POST", self.settings.url, headers=headers, body=body
                    )
                if answer.status < 300:
                    return
                problem = f"status {answer.status}"
                if answer.status in (400, 401, 403, 404, 410, 413, 415, 422):
                    break  # asking again would not change its mind
            except HttpFault as trouble:
                problem = str(trouble)
            except TimeoutError:
                problem = f"no answer within {self.settings.timeout_secs:g} s"
            if number < tries:
                await asyncio.sleep(wait * self.settings.retry_factor)
                wait = min(wait * 2, _LONGEST_WAIT)
        log.warning("not delivered", callback=self.name, gseq=event.gseq, problem=problem)
