"""All figures in one table, each beside a reference of the same run.

    python -m bench.run [--quick] [--json FILE] [--svg FILE] [--hundred FILE] [--only AREA,...]

Areas: requests, peers, originals, streams, stuck, model, turns, start, stdio, gateway, memory,
engine, commands, search, loop, store, fleet, growth, terminal. Exit code 1: a bar is missed, or a
measure broke; then no file is written.
"""

import argparse
import json
import os
import platform
import resource
import shutil
import sys
import tempfile
import time
import traceback
from collections.abc import Callable
from pathlib import Path

from bench.parts import (
    commands,
    dialects,
    fanout,
    growth,
    inside,
    model,
    originals,
    peers,
    picture,
    pipes,
    prompts,
    resident,
    search,
    sizes,
    starts,
    stored,
    streams,
    stuck,
    terminal,
    visits,
    websockets,
)
from bench.parts.host import daemon
from bench.parts.rows import Row, table
from bench.place import told

STREAM = [{"parts": [{"type": "say", "text": "some text " * streams.DELTAS,
                      "deltas": streams.DELTAS}]}]  # fmt: skip


Made = list[Row] | tuple[list[Row], list[str]]


class Gathering:
    """What the measures gave. One that breaks is told, and costs the others nothing."""

    def __init__(self, only: str) -> None:
        self.only = set(only.split(",")) if only else None
        self.rows: list[Row] = []
        self.notes: list[str] = []
        self.broken: list[str] = []

    def wants(self, *areas: str) -> bool:
        return self.only is None or not self.only.isdisjoint(areas)

    def take(self, area: str, measure: Callable[[], Made]) -> None:
        if not self.wants(area):
            return
        try:
            made = measure()
        except Exception as problem:
            traceback.print_exc()
            self.broken.append(area)
            self.notes.append(f"{area}: broke, so figures are missing: {problem}")
            return
        rows, notes = made if isinstance(made, tuple) else (made, [])
        self.rows += rows
        self.notes += notes


def gather(options: argparse.Namespace, folder: str) -> Gathering:
    """Run every measure that is wanted."""
    quick = options.quick
    rounds = 3 if quick else 7
    found = Gathering(options.only)
    found.notes += [
        f"no {what}: its references are left out" for what, there in _found() if not there
    ]
    take = found.take
    take("memory", lambda: sizes.idle(folder, 3))
    if found.wants("requests", "peers", "originals", "start"):
        with daemon(os.path.join(folder, "quick"), ["hello"]) as host:
            take("requests", lambda: dialects.measure(host, folder, rounds))
            take("requests", lambda: visits.measure(host, folder, rounds))
            take("peers", lambda: peers.measure(host, folder, rounds))
            take("originals", lambda: originals.measure(host, folder, rounds))
            take("start", lambda: starts.measure(host, folder, 5 if quick else 15))
            take("requests", lambda: dialects.listing(host, folder, rounds))
    take("streams", lambda: _streams(folder, rounds))
    take("streams", lambda: fanout.measure(folder, rounds))
    take("stuck", lambda: stuck.healthy(folder, rounds))
    take("stuck", lambda: stuck.measure(folder, 3_000 if quick else 20_000))
    take("model", lambda: model.measure(folder, rounds))
    take("turns", lambda: prompts.measure(folder, rounds))
    take("stdio", lambda: pipes.measure(folder, rounds))
    take("gateway", lambda: websockets.measure(folder, rounds))
    take("engine", lambda: inside.measure(rounds, 2_000 if quick else 5_000))
    take("commands", lambda: commands.measure(folder, rounds))
    take("search", lambda: search.measure(folder, rounds))
    take("loop", lambda: resident.measure(folder, 2.0 if quick else 4.0))
    take("store", lambda: stored.measure(folder, rounds, quick))
    take("fleet", lambda: _fleet(folder, rounds, quick))
    take("growth", lambda: growth.measure(folder, rounds, quick))
    take("terminal", lambda: terminal.measure(folder, rounds, quick))
    return found


def _streams(folder: str, rounds: int) -> list[Row]:
    with daemon(os.path.join(folder, "stream"), STREAM) as host:
        return streams.fan_out(host, rounds)


def _fleet(folder: str, rounds: int, quick: bool) -> tuple[list[Row], list[str]]:
    """The figures of the database, where there is one."""
    from bench.parts import fleet
    from dragoman.engine.faults import StoreFailed

    try:
        return fleet.measure(folder, rounds, quick), []
    except StoreFailed as problem:
        return [], [f"fleet: left out: {problem}"]


def _found() -> tuple[tuple[str, object], ...]:
    """What the references are built with or run by."""
    go = shutil.which("go") or shutil.which("go", path=os.path.dirname(sys.executable))
    return (("C compiler", shutil.which("cc")), ("Node", shutil.which("node")), ("Go", go))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--json", default="")
    parser.add_argument("--svg", default="")
    parser.add_argument("--hundred", default="", help="a picture of 100 streaming sessions")
    parser.add_argument("--only", default="")
    options = parser.parse_args()
    began = time.monotonic()
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))  # many idle connections
    with tempfile.TemporaryDirectory(prefix="drb-") as folder:
        os.environ.setdefault("GOCACHE", str(Path(__file__).with_name("out") / "gocache"))
        found = gather(options, folder)
    rows = found.rows
    print(table(rows))
    print(told())
    for note in found.notes:
        print(note)
    missed = [row for row in rows if row.held is False]
    took = time.monotonic() - began
    print(f"{len(rows)} figures, {len(missed)} bars missed, {took:.0f} s")
    if found.broken:  # what was written down before is whole; this is not
        return 1
    if options.json:
        about = {"python": platform.python_version(), "cores": os.cpu_count()}
        with open(options.json, "w") as file:
            json.dump({"about": about, "rows": [row.plain() for row in rows]}, file, indent=2)
            file.write("\n")
    if options.svg:
        with open(options.svg, "w") as file:
            file.write(picture.svg(rows))
    if options.hundred and (drawn := picture.hundred(rows)):
        with open(options.hundred, "w") as file:
            file.write(drawn)
    return int(bool(missed))


if __name__ == "__main__":
    sys.exit(main())
