"""Deltas: from the provider through the daemon to 1, 10 and 100 subscribers; whole turns."""

import selectors
import time

from bench.echo import cpu_ns

from .host import Line, Running, greeted
from .rows import Row, compared, held_to

DELTAS = 2_000


def fan_out(host: Running, rounds: int) -> list[Row]:
    """Server CPU per source delta, for one turn watched by many connections."""
    costs: dict[int, list[float]] = {}
    for _ in range(rounds):
        for watchers in (1, 10, 100):
            costs.setdefault(watchers, []).append(one_turn(host, watchers, DELTAS))
    one = min(costs[1])
    rows = [held_to("streams", "a delta to one subscriber", costs[1], "us cpu", "<= 25")]
    for watchers in (10, 100):
        each = [max(0.0, cost - one) / (watchers - 1) for cost in costs[watchers]]
        rows.append(
            held_to("streams", f"each further subscriber of {watchers}", each, "us cpu", "<= 1.0",
                    digits=3)
        )  # fmt: skip
    rows.append(
        compared("streams", "a delta to 100 subscribers", costs[100], "to 1", costs[1], "us cpu",
                 "<= 15.0")
    )  # fmt: skip
    return rows


def one_turn(host: Running, watchers: int, deltas: int) -> float:
    """Server CPU per source delta of one turn that so many connections watch, in us."""
    driver = greeted(host)
    session = driver.call("session/new", agentAlias="default", cwd="/")["sessionId"]
    others = []
    for _ in range(watchers - 1):
        line = greeted(host)
        line.call("session/new", agentAlias="default", sessionId=session)
        others.append(line)
    before = cpu_ns(host.pid)
    driver.send(
        {"jsonrpc": "2.0", "id": 99, "method": "session/prompt",
         "params": {"sessionId": session, "prompt": "go"}}
    )  # fmt: skip
    _drain([driver, *others], driver)
    spent = (cpu_ns(host.pid) - before) / 1000
    for line in (driver, *others):
        line.close()
    return spent / deltas


def _drain(lines: list[Line], driver: Line) -> None:
    """Read everybody until the driver has its answer and nobody is sent anything more."""
    with selectors.DefaultSelector() as selector:
        for line in lines:
            line.socket.setblocking(False)
            selector.register(line.socket, selectors.EVENT_READ)
        tail = b""
        limit = time.monotonic() + 60
        while True:
            if time.monotonic() > limit:
                raise TimeoutError("the turn did not end")
            ended = b'"id":99' in tail
            ready = selector.select(0.02 if ended else 1)
            if ended and not ready:
                break
            for key, _ in ready:
                data = key.fileobj.recv(1 << 18)  # type: ignore[union-attr]
                if key.fileobj is driver.socket:
                    tail = (tail + data)[-4096:]
    for line in lines:
        line.socket.setblocking(True)
