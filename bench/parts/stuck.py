"""A client that never reads: what its neighbours feel, and what it costs the daemon."""

import os
import selectors
import time

from .host import Line, Running, daemon, greeted, settled
from .rows import Row, compared, held_to

_PACE = 0.003  # seconds between deltas: a quick model


def measure(folder: str, deltas: int) -> list[Row]:
    """A neighbour's `status` while a stuck client's session streams, in turn with an idle daemon's.

    Both are asked during the whole time, so that other programs on the machine disturb both.
    """
    text = {"type": "say", "text": "some text " * deltas, "deltas": deltas, "delay": _PACE}
    with (
        daemon(os.path.join(folder, "stuck"), [{"parts": [text]}]) as host,
        daemon(os.path.join(folder, "calm"), ["hello"]) as calm,
    ):
        neighbours = (greeted(host), greeted(calm))
        _times(neighbours, 1.0)
        before = host.resident()
        stuck = greeted(host)
        session = stuck.call("session/new", agentAlias="default", cwd="/")["sessionId"]
        stuck.send(
            {"jsonrpc": "2.0", "id": 9, "method": "session/prompt",
             "params": {"sessionId": session, "prompt": "go"}}
        )  # fmt: skip
        busy, idle = _times(neighbours, deltas * _PACE)
        grown = (host.resident() - before) / 1e6
        lost = _read_all(stuck, deltas)
        for line in (*neighbours, stuck):
            line.close()
    return [
        Row("stuck", f"neighbour's p99 beside a client stuck for {deltas * _PACE:.0f} s",
            f"{_p99(busy):.0f} us", f"idle {_p99(idle):.0f} us", _p99(busy) / _p99(idle), "<= 3.0"),
        Row("stuck", f"memory for a client that did not read {deltas:,} deltas", f"{grown:.1f} MB",
            "16 MB, its outbound bound", grown, "<= 16"),
        Row("stuck", "text lost to it in the end", f"{lost} characters", "0", float(lost), "<= 0"),
    ]  # fmt: skip


_HEALTHY, _EVENTS, _BURST = 9, 60_000, 16
_SAY = {"type": "say", "text": "some text " * _BURST, "deltas": _BURST}
_FAST = [{"parts": [_SAY, {"type": "wait", "seconds": 0}] * (_EVENTS // _BURST)}]


def healthy(folder: str, rounds: int) -> list[Row]:
    """What nine readers of a fast stream get while a tenth never reads, and with nobody stuck."""
    rates: dict[bool, list[float]] = {False: [], True: []}
    grown: dict[bool, list[float]] = {False: [], True: []}
    with daemon(os.path.join(folder, "healthy"), list(_FAST)) as host:
        for round in range(rounds + 1):
            for stuck in rates:
                rate, memory = _watched(host, stuck)
                if round:
                    rates[stuck].append(rate / 1000)
                    grown[stuck].append(memory / 1e6)
    words = f"{_HEALTHY} readers of {_EVENTS:,} deltas, one more stuck"
    return [
        compared("stuck", f"{words}: rate of the others", rates[True], "none stuck", rates[False],
                 "per ms", ">= 0.6"),
        held_to("stuck", f"{words}: memory during the turn", grown[True], "MB", "<= 8", digits=1,
                worst=True, note=f"none stuck {min(grown[False]):.1f}"),
    ]  # fmt: skip


def _watched(host: Running, stuck: bool) -> tuple[float, int]:
    """Deltas per second to the healthy ones, and the bytes that the daemon grew by."""
    driver = greeted(host)
    session = driver.call("session/new", agentAlias="default", cwd="/")["sessionId"]
    watchers = [greeted(host) for _ in range(_HEALTHY - 1 + stuck)]
    for line in watchers:
        line.call("session/new", agentAlias="default", sessionId=session)
    readers = [driver, *(watchers[:-1] if stuck else watchers)]
    settled(host.pid)
    before, start = host.resident(), time.perf_counter()
    driver.send(
        {"jsonrpc": "2.0", "id": 99, "method": "session/prompt",
         "params": {"sessionId": session, "prompt": "go"}}
    )  # fmt: skip
    took = _last_read(readers, driver) - start
    settled(host.pid)
    grown = host.resident() - before
    for line in (driver, *watchers):
        line.close()
    settled(host.pid)
    return _EVENTS / took, grown


def _last_read(readers: list[Line], driver: Line) -> float:
    """Read until the turn has ended and nothing more comes; returns when the last piece came."""
    last, tail = time.perf_counter(), b""
    with selectors.DefaultSelector() as selector:
        for line in readers:
            selector.register(line.socket, selectors.EVENT_READ)
        limit = last + 60
        while True:
            ended = b'"id":99' in tail
            ready = selector.select(0.05 if ended else 1)
            if ended and not ready:
                return last
            if time.perf_counter() > limit:
                raise TimeoutError("the turn did not end")
            for key, _ in ready:
                data = key.fileobj.recv(1 << 18)  # type: ignore[union-attr]
                if not data:
                    raise ConnectionError("a reader that reads was sent away")
                if key.fileobj is driver.socket:
                    tail = (tail + data)[-4096:]
            if ready:
                last = time.perf_counter()


def _times(lines: tuple[Line, ...], seconds: float) -> tuple[list[float], ...]:
    """Microseconds of `status` on each line in turn, with a short rest after each."""
    found: tuple[list[float], ...] = tuple([] for _ in lines)
    limit = time.perf_counter() + seconds
    while time.perf_counter() < limit:
        for line, times in zip(lines, found, strict=True):
            start = time.perf_counter()
            line.call("status")
            times.append((time.perf_counter() - start) * 1e6)
            time.sleep(0.001)
    return found


def _p99(times: list[float]) -> float:
    return sorted(times)[-1 - len(times) // 100]


def _read_all(line: Line, deltas: int) -> int:
    """Read what waited for the client; returns how many characters of the text are missing."""
    got = 0
    while True:
        message = line.read()
        if message.get("id") == 9:
            return max(0, 10 * deltas - got)
        got += len(message.get("params", {}).get("text", ""))  # type: ignore[attr-defined]
