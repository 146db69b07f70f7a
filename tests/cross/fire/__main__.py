"""`make fire SEEDS=… SECONDS=…`: many fires, some side by side; every report names its seed."""

import argparse
import asyncio
import sys
import tempfile
from pathlib import Path
from traceback import print_exception

from tests.cross.fire.check import check
from tests.cross.fire.play import Fire


async def one(seed: int, seconds: float) -> list[str]:
    with tempfile.TemporaryDirectory(prefix="fire") as folder:
        fire = Fire(Path(folder), seed)
        try:
            ashes = await fire.burn(seconds)
        except Exception as problem:
            print_exception(problem)
            return [f"seed {seed}: the fire itself failed: {problem!r}"]
        found = check(fire.trace, ashes)
        trace = fire.trace
        print(
            f"seed {seed}: {len(trace.frames)} frames, {len(trace.promises)} prompts, "
            f"{trace.lives} lives, {len(found)} reports",
            flush=True,
        )
        for text in found:
            print(f"seed {seed}: {text}", flush=True)
        return [f"seed {seed}: {text}" for text in found]


async def burn(first: int, seeds: int, seconds: float, together: int) -> int:
    places = asyncio.Semaphore(together)

    async def limited(seed: int) -> list[str]:
        async with places:
            return await one(seed, seconds)

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
    parser.add_argument("--together", type=int, default=4)
    given = parser.parse_args()
    return asyncio.run(burn(given.first, given.seeds, given.seconds, given.together))


if __name__ == "__main__":
    sys.exit(main())
