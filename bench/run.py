"""All figures in one table, each beside a reference of the same run.

    python -m bench.run [--quick] [--json FILE] [--svg FILE] [--hundred FILE] [--only AREA,...]

Areas: requests, peers, originals, streams, stuck, model, turns, start, stdio, gateway, memory,
engine, commands, search, loop, store, growth, terminal. Exit code 1: a bar is missed.
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


def gather(options: argparse.Namespace, folder: str) -> tuple[list[Row], list[str]]:
    """Run every measure that is wanted."""
    rounds = 3 if options.quick else 7
    only = set(options.only.split(",")) if options.only else None
    rows: list[Row] = []
    notes = [f"no {what}: its references are left out" for what, there in _found() if not there]

    def wanted(area: str) -> bool:
        return only is None or area in only

    def add(made: tuple[list[Row], list[str]]) -> None:
        rows.extend(made[0])
        notes.extend(made[1])

    if wanted("memory"):
        rows += sizes.idle(folder, 3)
    with daemon(os.path.join(folder, "quick"), ["hello"]) as host:
        if wanted("requests"):
            rows += dialects.measure(host, folder, rounds)
            add(visits.measure(host, folder, rounds))
        if wanted("peers"):
            add(peers.measure(host, folder, rounds))
        if wanted("originals"):
            add(originals.measure(host, folder, rounds))
        if wanted("start"):
            rows += starts.measure(host, folder, 5 if options.quick else 15)
        if wanted("requests"):
            rows += dialects.listing(host, folder, rounds)
    if wanted("streams"):
        with daemon(os.path.join(folder, "stream"), STREAM) as host:
            rows += streams.fan_out(host, rounds)
        add(fanout.measure(folder, rounds))
    if wanted("stuck"):
        rows += stuck.healthy(folder, rounds)
        rows += stuck.measure(folder, 3_000 if options.quick else 20_000)
    if wanted("model"):
        add(model.measure(folder, rounds))
    if wanted("turns"):
        add(prompts.measure(folder, rounds))
    if wanted("stdio"):
        add(pipes.measure(folder, rounds))
    if wanted("gateway"):
        add(websockets.measure(folder, rounds))
    if wanted("engine"):
        rows += inside.measure(rounds, 2_000 if options.quick else 5_000)
    if wanted("commands"):
        rows += commands.measure(folder, rounds)
    if wanted("search"):
        add(search.measure(folder, rounds))
    if wanted("loop"):
        rows += resident.measure(folder, 2.0 if options.quick else 4.0)
    if wanted("store"):
        rows += stored.measure(folder, rounds, options.quick)
    if wanted("fleet"):
        add(_fleet(folder, rounds, options.quick))
    if wanted("growth"):
        rows += growth.measure(folder, rounds, options.quick)
    if wanted("terminal"):
        rows += terminal.measure(folder, rounds, options.quick)
    return rows, notes


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
        rows, notes = gather(options, folder)
    print(table(rows))
    print(told())
    for note in notes:
        print(note)
    missed = [row for row in rows if row.held is False]
    took = time.monotonic() - began
    print(f"{len(rows)} figures, {len(missed)} bars missed, {took:.0f} s")
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
