"""Any dialect on standard input and output: one process, one client, a host of its own."""

import sys
from typing import Any

from dragoman.engine.faults import Fault
from dragoman.host.compose import compose
from dragoman.host.desks import Desks
from dragoman.transports import stdio
from dragoman.transports.loop import Stopping, run


def main(
    dialect: str,
    *,
    config_dir: str | None = None,
    memory: bool = False,
    flags: dict[str, Any] | None = None,
) -> int:
    """Serve until the input ends; returns the exit code.

    `flags` are settings by their dotted names, as a command line has them.
    """
    wire = stdio.claim_stdout()  # before anything else can print on it
    try:
        return run(_serve(wire, dialect, config_dir, memory, flags or {}))
    except Fault as fault:
        print(f"dragoman speak: {fault}", file=sys.stderr)
        return 1


async def _serve(
    wire: int, dialect: str, config_dir: str | None, memory: bool, flags: dict[str, Any]
) -> int:
    composed = await compose(
        config_dir=config_dir, flags=flags, store="memory" if memory else "file"
    )
    try:
        for notice in composed.notices:
            print(f"dragoman speak: {notice}", file=sys.stderr)
        desks = Desks(composed.door, composed.settings)
        composed.config.applied.append(desks.apply)
        desks.desk(dialect)  # an unknown one is refused before anything is read
        stopping = Stopping()
        line = await stdio.serve(desks.opener(dialect), stdout=wire)
        await stopping.until(line.gone)
        await desks.close()
    finally:
        await composed.close()
    stopping.end()
    return 0
