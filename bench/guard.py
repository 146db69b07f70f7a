"""A guard against slowdowns: CPU of our hot paths as multiples of a fixed piece of work.

Each path and the yardstick run in turns within one process, the best of many short rounds counts,
so neighbours on the machine do not show. A path that needs 1.3 times its recorded multiple fails;
a slowdown of 1.5 times cannot pass.

    python -m bench.guard            compare with guard.json
    python -m bench.guard --runs 10  the same ten times, to see how steady it is
    python -m bench.guard --record   write guard.json anew
"""

import argparse
import asyncio
import json
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec

from dragoman.dialects.zeroclaw.speak import Updates
from dragoman.engine.content import Text
from dragoman.engine.events import TextDelta, Who
from dragoman.engine.host import OpenSpec
from dragoman.host.desks import Desks
from dragoman.settings.model import Settings
from dragoman.testing.host import host_of, memory_door
from dragoman.testing.script import Scripted, say, turn, wait
from dragoman.wire.link import Blob, Peer

RECORD = Path(__file__).with_name("guard.json")
LIMIT = 1.3
ROUNDS = 25
BATCH = 32

_REGISTER = {
    "id": "r", "type": "request", "timestamp": 1, "method": "app.register",
    "params": {"manifest": {"id": "@bench/app", "name": "b", "version": "1.0.0", "type": "app",
                            "main": "x", "protocol": {"version": "1.0"}, "capabilities": {}}},
}  # fmt: skip
_HELLO = b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1}}'


class Sink:
    """A link that only counts what is sent."""

    peer = Peer("guard", "memory")
    paused = False
    buffered = 0
    closed = False

    def __init__(self) -> None:
        self.sent = 0

    def send(self, message: bytes) -> None:
        self.sent += 1

    def send_blob(self, blob: Blob) -> None:
        self.sent += len(blob.lines)

    def on_resume(self, callback: Callable[[], None]) -> None:
        return None

    def eof(self) -> None:
        return None

    def close(self) -> None:
        self.closed = True

    abort = close


def yardstick() -> None:
    """The fixed work: decode and encode small messages, make objects, call functions."""
    line = b'{"jsonrpc":"2.0","id":12,"method":"status","params":{"cursor":7}}'
    for number in range(400):
        message = msgspec.json.decode(line)
        answer = {
            "jsonrpc": "2.0",
            "result": {"n": number, **message["params"]},
            "id": message["id"],
        }
        msgspec.json.encode(answer)


async def paths(times: int = 8) -> dict[str, Callable[[], Any]]:
    """Every guarded path as a function that does a little of it."""
    door = memory_door(Scripted(["hello"], loop=True))
    desks = Desks(door, Settings())
    found: dict[str, Callable[[], Any]] = {}
    requests = {
        "zeroclaw status": ("zeroclaw", [_HELLO], b'{"jsonrpc":"2.0","id":2,"method":"status"}'),
        "humanlayer health": ("humanlayer", [], b'{"jsonrpc":"2.0","id":2,"method":"health"}'),
        "openclawos heartbeat": (
            "openclawos", [msgspec.json.encode(_REGISTER)],
            b'{"id":"h","type":"request","timestamp":1,"method":"app.heartbeat","params":{}}',
        ),
        "zot ping": ("zot", [], b'{"id":"9","type":"ping"}'),
        "acp cancel": (
            "acp", [_HELLO],
            b'{"jsonrpc":"2.0","id":2,"method":"session/cancel","params":{"sessionId":"x"}}',
        ),
    }  # fmt: skip
    for name, (dialect, greeting, line) in requests.items():
        sink = Sink()
        hearer = desks.desk(dialect).hearer(sink)
        for one in greeting:
            hearer.hear([one])
            await asyncio.sleep(0)
        before = sink.sent
        hearer.hear([line])
        await asyncio.sleep(0)
        if sink.sent == before:
            raise RuntimeError(f"{name} was not answered")
        batch = [line] * BATCH

        def ask(hearer: Any = hearer, batch: list[bytes] = batch) -> None:
            for _ in range(times):
                hearer.hear(batch)

        found[name] = ask
    for watchers in (1, 100):
        found[f"delta to {watchers}"] = await _fan_out(door, desks, watchers, 2 * times)
    found["turn"] = await _turns(times)
    return found


async def _turns(times: int) -> Callable[[], Any]:
    """Whole turns of twenty deltas, with somebody who watches."""
    pieces = tuple(part for _ in range(20) for part in (say("some text ", deltas=1), wait(0)))
    door = memory_door(Scripted([turn(*pieces)], loop=True))
    who = Who("zeroclaw", id="g")
    sink = Sink()

    async def play() -> None:
        # A session of its own each time: its history stays as short as it is.
        session = (await door.open(OpenSpec(cwd="/"), who)).id
        shape = Updates(door, session, True)
        watch = await door.watch(session, who, shape, sink.send_blob)
        for _ in range(times):
            await (await door.prompt(session, (Text("go"),), who)).done
        watch.close()
        await door.close(session)

    return play


async def _fan_out(door: Any, desks: Desks, watchers: int, times: int) -> Callable[[], Any]:
    info = await door.open(OpenSpec(cwd="/"), Who("guard", id="g"))
    desk = desks.desk("zeroclaw")
    for number in range(watchers):
        sink = Sink()
        hearer = desk.hearer(sink)
        hearer.hear([_HELLO])
        join = {"jsonrpc": "2.0", "id": number, "method": "session/new"}
        join["params"] = {"agentAlias": "default", "sessionId": info.id}
        hearer.hear([msgspec.json.encode(join)])
    for _ in range(50):
        await asyncio.sleep(0)
    session = host_of(door).live[info.id]
    hub = session.ledger.hub
    if len(hub.watches) != watchers:
        raise RuntimeError(f"{len(hub.watches)} of {watchers} watch")

    def stream() -> None:
        for _ in range(times):
            for _ in range(16):
                hub.stream(session.id, TextDelta, "t", "some text ", 0)
            hub.flush()

    return stream


async def cpu(work: Callable[[], Any]) -> int:
    start = time.thread_time_ns()
    done = work()
    if done is not None:
        await done
    return time.thread_time_ns() - start


async def measure(times: int = 8) -> dict[str, float]:
    """The multiple of the yardstick for every path; more `times` is more work."""
    found = await paths(times)
    best = dict.fromkeys([*found, ""], 1 << 62)
    for _ in range(ROUNDS):
        for name, work in [("", yardstick), *found.items()]:
            best[name] = min(best[name], await cpu(work))
            await asyncio.sleep(0)
    return {name: round(best[name] / best[""], 3) for name in found}


def verdicts(found: dict[str, float]) -> list[str]:
    """One sentence for each path that became too slow."""
    record = json.loads(RECORD.read_text())
    return [
        f"{name}: {value:.2f} times the yardstick, recorded {record[name]:.2f}"
        for name, value in found.items()
        if value > record[name] * LIMIT
    ]


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--record", action="store_true")
    parser.add_argument("--runs", type=int, default=1)
    options = parser.parse_args()
    failed = 0
    for _ in range(options.runs):
        found = asyncio.run(measure())
        if options.record:
            RECORD.write_text(json.dumps(found, indent=2) + "\n")
        slow = verdicts(found)
        failed += bool(slow)
        print("  ".join(f"{name} {value:.2f}" for name, value in found.items()))
        for line in slow:
            print(f"TOO SLOW {line}", file=sys.stderr)
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
