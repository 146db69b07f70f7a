"""The engine alone, in this process: a delta to its watchers, a long history, transactions."""

from bench.engine import commits_per_step, delta_cost, loop_cost, open_long
from dragoman.transports.loop import run

from .rows import Row, compared, held_to


def measure(rounds: int, deltas: int) -> list[Row]:
    """Interleaved, process time; the reference is the same stream read by nobody."""
    return run(_measure(rounds, deltas))


async def _measure(rounds: int, deltas: int) -> list[Row]:
    counts = (1, 10, 100)
    floor: list[float] = []
    taken: dict[int, list[float]] = {count: [] for count in counts}
    for _ in range(rounds):
        floor.append(await loop_cost(deltas))
        for count in counts:
            taken[count].append(await delta_cost(count, deltas))
    rows = [
        compared("engine", f"a delta to {count} in process, encoded", taken[count],
                 "provider and loop alone", floor, "us cpu")
        for count in counts
    ]  # fmt: skip
    ours = [whole - min(floor) for whole in taken[1]]
    rows.append(held_to("engine", "a delta to one in process, our part", ours, "us cpu", "<= 25"))
    long = [await open_long(1_000)]
    rows.append(held_to("engine", "opening a session of 1,000 messages", long, "ms", "<= 20"))
    made, _ = await commits_per_step()
    rows.append(held_to("engine", "transactions of a plain turn", [made], "", digits=0))
    return rows
