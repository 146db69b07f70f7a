"""Steady mixed load on one daemon, and whether its memory stays where it is.

Clients of all protocols come, open sessions, let turns with text and tools run, read, and leave;
a few sessions go on for long, and some clients watch all the time. Some close what they opened;
most just leave, and some come back to a session that somebody left (`--left` is the share of those
that nobody closes). The number of sessions that anybody uses is flat, so memory must be, too: the
slope after the warm-up counts, in megabytes per 1,000 turns.

    python -m tests.cross.soak --minutes 10 --left 0.8
"""

import argparse
import asyncio
import random
import sys
import tempfile
from collections import deque
from collections.abc import Awaitable, Callable
from pathlib import Path
from time import monotonic
from typing import Any, NamedTuple

from tests.cross.house import House, Speaker

MOST_SLOPE = 0.3  # MB per 1,000 turns
MOST_DESCRIPTORS = 24  # that those who are there just now may have more than others had
LEFT = 0.8  # the share of sessions that nobody closes
WARM_UP = 5_000  # turns, at least: caches of the database, log lines and sessions fill till then
LEAST_TURNS = 1_500  # after the warm-up: less says nothing
_WORKERS = 5
_VISIT = 4  # turns of a session that is left again
_LONG = 60  # turns of one that stays
_EVERY = 100  # turns between two looks
_STRETCH = 4  # looks of which the lowest counts
_RETURN = 0.25  # the share of visits to a session that somebody left
_KNOWN = 400  # sessions that somebody may come back to


class Look(NamedTuple):
    """How much memory, and how many descriptors, the daemon has after how many turns."""

    turns: int
    megabytes: float
    descriptors: int = 0


def slope(looks: list[Look]) -> float:
    """Megabytes per 1,000 turns: the line through the looks that is nearest to them all."""
    turns = [look.turns / 1_000 for look in looks]
    sizes = [look.megabytes for look in looks]
    middle, mean = sum(turns) / len(turns), sum(sizes) / len(sizes)
    spread = sum((one - middle) ** 2 for one in turns)
    return sum((t - middle) * (s - mean) for t, s in zip(turns, sizes, strict=True)) / spread


def settled(looks: list[Look]) -> list[Look]:
    """The looks after the warm-up: the later half of the turns, when what is bounded is full."""
    return [look for look in looks if look.turns >= max(WARM_UP, looks[-1].turns / 2)]


def floor(looks: list[Look]) -> list[Look]:
    """The lowest look of each whole stretch.

    What waits for a client that does not read just now comes and goes by megabytes; what is never
    freed raises the lowest ones, too.
    """
    whole = len(looks) - len(looks) % _STRETCH
    stretches = (looks[at : at + _STRETCH] for at in range(0, whole, _STRETCH))
    return [min(some, key=lambda look: look.megabytes) for some in stretches]


def memory(pid: int) -> float:
    """The megabytes of the process; not its share of them, which falls while it has a child."""
    for line in Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines():
        if line.startswith("Rss:"):
            return int(line.split()[1]) / 1024
    raise RuntimeError("the kernel does not tell how much memory a process has")


def descriptors(pid: int) -> int:
    return len(list(Path(f"/proc/{pid}/fd").iterdir()))


class Soak:
    """One run: the daemon, those who come and go, and what was looked at."""

    def __init__(self, folder: Path, seed: int = 1, left: float = LEFT) -> None:
        self.house = House(folder)
        self.left = left  # the share of sessions that nobody closes
        self.looks: list[Look] = []
        self.turns = 0
        self._apps = 0
        self._chance = random.Random(seed)
        self._open: deque[str] = deque(maxlen=_KNOWN)  # sessions that were left
        self._told: Callable[[Look], None] = lambda look: None

    async def run(
        self, enough: Callable[[], bool], told: Callable[[Look], None] = lambda look: None
    ) -> list[Look]:
        """Go on until it is enough; returns all looks."""
        self._told = told
        (self.house.work / "notes.txt").write_text("one line\n" * 200)
        await self.house.start()
        try:
            watcher = await self.house.zeroclaw()
            await watcher.call("dragoman/watch", {})
            await self.house.humanlayer()
            visits: tuple[Visit, ...] = (
                Visit("daemon", self._zeroclaw), Visit("acp", self._acp), Visit("any", self._zot),
                Visit("daemon", self._native), Visit("kernel", self._app),
            )  # fmt: skip
            async with asyncio.TaskGroup() as group:
                for number in range(_WORKERS):
                    group.create_task(self._work(visits[number % len(visits)], enough))
                group.create_task(self._forget(enough))
            return self.looks
        finally:
            await self.house.close()

    async def _work(self, visit: "Visit", enough: Callable[[], bool]) -> None:
        while not enough():
            speaker = await Speaker.connect(self.house.socket(visit.socket))
            try:
                turns = _LONG if self._chance.random() < 0.02 else _VISIT
                await visit.make(speaker, self._known(), turns)
            finally:
                await speaker.close()

    def _known(self) -> str:
        """A session to come back to; empty: a new one."""
        if not self._open or self._chance.random() >= _RETURN:
            return ""
        return self._chance.choice(self._open)

    def _closes(self, session: str) -> bool:
        """Whether this client closes the session: not one that others may be at, too."""
        if session in self._open:
            return False
        if self._chance.random() >= self.left:
            return True
        self._open.append(session)
        return False

    async def _forget(self, enough: Callable[[], bool]) -> None:
        """The watchers of this side need not remember all that they saw."""
        while not enough():
            for speaker in self.house._speakers:
                speaker.seen.clear()
            await asyncio.sleep(0.5)

    def _text(self) -> str:
        if self._chance.random() < 0.2:
            return "read notes.txt"
        words = " ".join(f"w{self._chance.randrange(10**6)}" for _ in range(40))
        return f"repeat: {words * self._chance.randrange(1, 9)}"

    def _ended(self) -> None:
        self.turns += 1
        if self.turns % _EVERY == 0:
            assert self.house.process is not None
            pid = self.house.process.pid
            self.looks.append(Look(self.turns, memory(pid), descriptors(pid)))
            self._told(self.looks[-1])

    async def _zeroclaw(self, speaker: Speaker, known: str, turns: int) -> None:
        await speaker.call("initialize", {"protocolVersion": 1})
        wanted = {"agentAlias": "default", "cwd": str(self.house.work)}
        made = await speaker.call(
            "session/new", {"agentAlias": "default", "sessionId": known} if known else wanted
        )
        of = {"sessionId": made["sessionId"]}
        for _ in range(turns):
            await self._said(speaker, "session/prompt", {**of, "prompt": self._text()})
        await speaker.call("session/messages", of)
        if self._closes(made["sessionId"]):
            await speaker.call("session/close", of)

    async def _acp(self, speaker: Speaker, known: str, turns: int) -> None:
        await speaker.call("initialize", {"protocolVersion": 1, "clientCapabilities": {}})
        where: dict[str, Any] = {"cwd": str(self.house.work), "mcpServers": []}
        if known:
            await speaker.call("session/load", {**where, "sessionId": known})
        else:
            known = (await speaker.call("session/new", where))["sessionId"]
        for _ in range(turns):
            text = {"type": "text", "text": self._text()}
            await self._said(speaker, "session/prompt", {"sessionId": known, "prompt": [text]})
        if self._closes(known):
            await speaker.call("session/close", {"sessionId": known})

    async def _native(self, speaker: Speaker, known: str, turns: int) -> None:
        await speaker.call("initialize", {"protocolVersion": 1})
        if not known:
            made = await speaker.call("dragoman/open", {"cwd": str(self.house.work)})
            known = made["session"]["id"]
        of = {"session_id": known}
        await speaker.call("dragoman/watch", {**of, "since": 0})
        for _ in range(turns):
            await self._said(speaker, "dragoman/prompt", {**of, "text": self._text()})
        if self._closes(known):
            await speaker.call("dragoman/close", of)

    async def _zot(self, speaker: Speaker, known: str, turns: int) -> None:
        """It closes nothing: its protocol has no word for it."""
        if known:
            await speaker.command("open", session=known)
        for _ in range(turns):
            since = len(speaker.seen)
            try:
                await speaker.command("prompt", message=self._text())
            except AssertionError as refused:
                if "busy" not in str(refused):
                    raise
                continue
            await speaker.until(lambda m: m.get("type") == "done", since)
            self._ended()

    async def _app(self, speaker: Speaker, known: str, turns: int) -> None:
        hooks = ["agent_completed"]
        self._apps += 1
        manifest = {
            "id": f"@soak/app{self._apps % 50}", "name": "Soak", "version": "1.0.0",
            "type": "app", "main": "index.js", "protocol": {"version": "1.0"},
            "capabilities": {"hooks": {"subscribes": hooks}},
        }  # fmt: skip
        await speaker.request("app.register", {"manifest": manifest})
        await speaker.request("hook.subscribe", {"events": hooks})
        await speaker.request("app.ready", {})
        key = known or f"soak-{self._apps}"
        for _ in range(turns):
            of = {"sessionKey": key, "text": self._text()}
            run = (await speaker.request("agent.queue", of))["runId"]
            await speaker.until(lambda m, run=run: _over(m, run))  # type: ignore[misc]
            self._ended()

    async def _said(self, speaker: Speaker, method: str, params: dict[str, Any]) -> None:
        """One turn; another client may be in the middle of its own."""
        try:
            await speaker.call(method, params)
        except AssertionError as refused:
            if "busy" not in str(refused).lower():
                raise
        else:
            self._ended()


class Visit(NamedTuple):
    """One client's way to come, work and leave."""

    socket: str
    make: Callable[[Speaker, str, int], Awaitable[None]]  # a known session or "", turns


def _over(message: dict[str, Any], run: str) -> bool:
    """Whether an app is told that its run is over."""
    payload = message.get("payload") or {}
    data = payload.get("data") or {}
    return payload.get("hookName") == "agent_completed" and data.get("runId") == run


def verdict(looks: list[Look]) -> tuple[float, str]:
    """The slope, and what is wrong with it; empty: nothing."""
    later = settled(looks)
    if len(later) < 2 or later[-1].turns - later[0].turns < LEAST_TURNS:
        return 0.0, f"too few turns to judge: {looks[-1].turns if looks else 0}"
    found = slope(floor(later))
    more = later[-1].descriptors - min(look.descriptors for look in later)
    if more > MOST_DESCRIPTORS:
        return found, f"{more} descriptors more than before; at most {MOST_DESCRIPTORS}"
    if found > MOST_SLOPE:
        return found, f"memory grows by {found:.2f} MB per 1,000 turns; at most {MOST_SLOPE}"
    return found, ""


async def soak(minutes: float, left: float) -> int:
    until = monotonic() + minutes * 60

    def tell(look: Look) -> None:
        if look.turns % 500 == 0:
            print(
                f"{look.turns:7} turns  {look.megabytes:6.1f} MB  {look.descriptors} descriptors",
                flush=True,
            )

    with tempfile.TemporaryDirectory() as folder:
        run = Soak(Path(folder), left=left)
        looks = await run.run(lambda: monotonic() > until, tell)
    found, wrong = verdict(looks)
    print(f"{found:+.2f} MB per 1,000 turns after the warm-up")
    if wrong:
        print(wrong, file=sys.stderr)
    return int(bool(wrong))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=10.0)
    parser.add_argument("--left", type=float, default=LEFT, help="share of sessions left open")
    given = parser.parse_args()
    return asyncio.run(soak(given.minutes, given.left))


if __name__ == "__main__":
    sys.exit(main())
