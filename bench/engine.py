"""The engine's own figures: a delta to its watchers, idle sessions, opening a long history.

Run: python bench/engine.py [--quick]
"""

import asyncio
import resource
import statistics
import sys
import tempfile
import time

from dragoman.engine.content import Message, Text, Usage
from dragoman.engine.events import Who
from dragoman.engine.host import OpenSpec
from dragoman.engine.ports import ModelOpened, ModelStop, ModelText, ModelUsage
from dragoman.store.sqlite import open_store
from dragoman.testing.host import MODEL, memory_door
from dragoman.transports.loop import run

ME = Who("bench", id="b")
QUICK = "--quick" in sys.argv


class Paced:
    """A provider whose deltas come one per loop tick, as from a network."""

    name = "paced"
    model = MODEL

    def __init__(self, deltas: int) -> None:
        self.deltas = deltas

    async def stream(self, request):
        yield ModelOpened()
        for _ in range(self.deltas):
            await asyncio.sleep(0)
            yield ModelText("some text ")
        yield ModelUsage(Usage(10, self.deltas))
        yield ModelStop("end_turn")

    async def close(self):
        return None


class Encoded:
    """A shape that does what a dialect does: one encoded line per event."""

    def __init__(self) -> None:
        import msgspec

        self._encode = msgspec.json.Encoder().encode

    def speak(self, events):
        return [
            self._encode(
                {"jsonrpc": "2.0", "method": "session/update", "params": {"text": e.body.text}}
            )
            for e in events
            if hasattr(e.body, "text")
        ] or None


async def delta_cost(watchers: int, deltas: int) -> float:
    """CPU microseconds per source delta, provider to watchers."""
    door = memory_door(Paced(deltas))
    info = await door.open(OpenSpec(cwd="/"), ME)
    shape = Encoded()
    for n in range(watchers):
        await door.watch(info.id, Who("bench", id=str(n)), shape, lambda said: None)
    start = time.process_time()
    await (await door.prompt(info.id, (Text("go"),), ME)).done
    return (time.process_time() - start) / deltas * 1e6


async def loop_cost(deltas: int) -> float:
    """The same stream read by nobody: what the provider and the loop cost alone."""
    start = time.process_time()
    async for _ in Paced(deltas).stream(None):
        pass
    return (time.process_time() - start) / deltas * 1e6


def resident() -> int:
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * resource.getpagesize()


async def idle_sessions(count: int) -> float:
    """Resident megabytes for so many live, idle sessions."""
    door = memory_door(Paced(3))
    await door.open(OpenSpec(cwd="/"), ME)
    before = resident()
    for _ in range(count):
        await door.open(OpenSpec(cwd="/"), ME)
    return (resident() - before) / 1e6


async def open_long(messages: int) -> float:
    """Milliseconds to bring a stored session with so many messages back."""
    with tempfile.TemporaryDirectory() as folder:
        store, _ = open_store(f"{folder}/s.db")
        door = memory_door(Paced(20), store=store)
        info = await door.open(OpenSpec(cwd="/"), ME)
        for _ in range(messages // 2):
            await (await door.prompt(info.id, (Text("q" * 200),), ME)).done
        await door.close(info.id)
        best = []
        for _ in range(5):
            start = time.perf_counter()
            await door.load(info.id)
            best.append(time.perf_counter() - start)
            assert len(await door.messages(info.id)) == messages
            await door.close(info.id)
        await store.close()
        return min(best) * 1e3


async def commits_per_step() -> tuple[int, int]:
    with tempfile.TemporaryDirectory() as folder:
        store, _ = open_store(f"{folder}/s.db")
        door = memory_door(Paced(5), store=store)
        info = await door.open(OpenSpec(cwd="/"), ME)
        before = store.commits
        await (await door.prompt(info.id, (Text("q"),), ME)).done
        made = store.commits - before
        await store.close()
        return made, 1


async def main() -> None:
    deltas = 5_000 if QUICK else 20_000
    rounds = 3 if QUICK else 7
    floor = min([await loop_cost(deltas) for _ in range(rounds)])
    print(f"provider and loop alone            {floor:7.2f} µs CPU per delta")
    for watchers in (1, 10, 100):
        runs = [await delta_cost(watchers, deltas) for _ in range(rounds)]
        ours = min(runs) - floor
        print(
            f"delta to {watchers:3d} watchers             {ours:7.2f} µs CPU of ours "
            f"(median {statistics.median(runs) - floor:.2f}, bar 25 + 1 per further watcher)"
        )
    print(f"1,000 idle sessions                {await idle_sessions(1_000):7.2f} MB (bar 20)")
    print(f"open a session of 1,000 messages   {await open_long(1_000):7.2f} ms (bar 20)")
    made, steps = await commits_per_step()
    print(f"a plain turn of {steps} step             {made:7d} transactions (admit, step, rest)")


if __name__ == "__main__":
    assert Message  # type: ignore[truthy-function]
    run(main())
