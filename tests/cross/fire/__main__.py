"""`make fire SEEDS=… SECONDS=…`: many fires, some side by side; every report names its seed."""

import argparse
import asyncio
import json
import sys
import tempfile
from pathlib import Path
from traceback import print_exception

from tests.cross.fire.check import check
from tests.cross.fire.play import Fire
from tests.cross.fire.trace import Ashes


async def one(seed: int, seconds: float, keep: str) -> list[str]:
    with tempfile.TemporaryDirectory(prefix="fire") as folder:
        fire = Fire(Path(folder), seed)
        try:
            ashes = await fire.burn(seconds)
        except Exception as problem:
            print_exception(problem)
            if keep:
                write_down(Path(keep, f"seed-{seed}.json"), fire, Ashes({}, []))
            print(f"seed {seed}: the fire itself failed: {problem!r}", flush=True)
            return [repr(problem)]
        found = check(fire.trace, ashes)
        trace = fire.trace
        if found and keep:
            write_down(Path(keep, f"seed-{seed}.json"), fire, ashes)
        print(
            f"seed {seed}: {len(trace.frames)} frames, {len(trace.promises)} prompts, "
            f"{trace.lives} lives, {len(found)} reports",
            flush=True,
        )
        for text in found:
            print(f"seed {seed}: {text}", flush=True)
        return found


def write_down(path: Path, fire: Fire, ashes: Ashes) -> None:
    """All that the checker read, for whoever looks into a report: chance alone does not repeat."""
    trace = fire.trace
    kept = {id: vars(one) for id, one in ashes.sessions.items()}
    wires = [vars(wire) for wire in trace.wires.values()]
    found = {"frames": trace.frames, "promises": trace.promises, "deeds": trace.deeds}
    path.write_text(json.dumps({**found, "wires": wires, "sessions": kept, "ran": ashes.ran}))


async def apart(seed: int, seconds: float, keep: str) -> list[str]:
    """One fire in a process of its own: its checker keeps no other fire waiting."""
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "tests.cross.fire", "--first", str(seed), "--seeds", "1",
        "--seconds", str(seconds), "--together", "0", "--keep", keep,
        stdout=asyncio.subprocess.PIPE,
    )  # fmt: skip
    said, _ = await process.communicate()
    lines = said.decode().splitlines()
    print("\n".join(lines), flush=True)
    found = [line for line in lines if not line.endswith(" reports")]
    if process.returncode and not found:
        found = [f"seed {seed}: its process ended with {process.returncode}"]
    return found


async def burn(first: int, seeds: int, seconds: float, together: int, keep: str) -> int:
    places = asyncio.Semaphore(together)

    async def limited(seed: int) -> list[str]:
        async with places:
            return await apart(seed, seconds, keep)

    reports = await asyncio.gather(*(limited(first + n) for n in range(seeds)))
    wrong = [text for found in reports for text in found]
    for text in wrong:
        print(text)
    print(f"{seeds} seeds, {len(wrong)} reports")
    return 1 if wrong else 0


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--first", type=int, default=1)
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--seconds", type=float, default=20.0)
    parser.add_argument("--together", type=int, default=4, help="side by side; 0: one, right here")
    parser.add_argument("--keep", default="", help="where traces with reports are written to")
    given = parser.parse_args()
    if not given.together:
        return 1 if asyncio.run(one(given.first, given.seconds, given.keep)) else 0
    of = (given.first, given.seeds, given.seconds, given.together, given.keep)
    return asyncio.run(burn(*of))


if __name__ == "__main__":
    sys.exit(main())
