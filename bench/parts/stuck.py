"""A client that never reads: what its neighbours feel, and what it costs the daemon."""

import os
import time

from .host import Line, daemon, greeted
from .rows import Row

_PACE = 0.003  # seconds between deltas: a quick model


def measure(folder: str, deltas: int) -> list[Row]:
    """A neighbour's `status` while a stuck client's session streams, against an idle daemon."""
    text = {"type": "say", "text": "some text " * deltas, "deltas": deltas, "delay": _PACE}
    with daemon(os.path.join(folder, "stuck"), [{"parts": [text]}]) as host:
        neighbour = greeted(host)
        _times(neighbour, 1.0)
        idle = _times(neighbour, 4.0)
        before = host.resident()
        stuck = greeted(host)
        session = stuck.call("session/new", agentAlias="default", cwd="/")["sessionId"]
        stuck.send(
            {"jsonrpc": "2.0", "id": 9, "method": "session/prompt",
             "params": {"sessionId": session, "prompt": "go"}}
        )  # fmt: skip
        busy = _times(neighbour, deltas * _PACE)
        grown = (host.resident() - before) / 1e6
        lost = _read_all(stuck, deltas)
        neighbour.close()
        stuck.close()
    return [
        Row("stuck", f"neighbour's p99 beside a client stuck for {deltas * _PACE:.0f} s",
            f"{_p99(busy):.0f} us", f"idle {_p99(idle):.0f} us", _p99(busy) / _p99(idle), "<= 3.0"),
        Row("stuck", f"memory for a client that did not read {deltas:,} deltas", f"{grown:.1f} MB",
            "its outbound bound, 16 MB", grown, "<= 16"),
        Row("stuck", "text lost to it in the end", f"{lost} characters", "0", float(lost), "<= 0"),
    ]  # fmt: skip


def _times(line: Line, seconds: float) -> list[float]:
    """Microseconds of `status`, one at a time, with a short rest after each."""
    found = []
    limit = time.perf_counter() + seconds
    while time.perf_counter() < limit:
        start = time.perf_counter()
        line.call("status")
        found.append((time.perf_counter() - start) * 1e6)
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
