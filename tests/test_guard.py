"""Our hot paths cost what they were recorded to cost; half as much again would be noticed."""

import pytest
from bench.guard import LIMIT, measure, verdicts

pytestmark = pytest.mark.timed
TRIES = 5  # a neighbour on the machine slows some tries; our own doing slows all of them


async def best(times: int, enough) -> dict[str, float]:
    """The lowest figures of several tries; no more of them than are needed."""
    found = await measure(times)
    for _ in range(TRIES - 1):
        if enough(found):
            break
        again = await measure(times)
        found = {name: min(value, again[name]) for name, value in found.items()}
    return found


async def test_no_hot_path_became_slow():
    found = await best(8, lambda found: not verdicts(found))
    assert verdicts(found) == []


async def test_half_as_much_again_is_noticed_everywhere():
    missed: list[str] = []
    for _ in range(TRIES):  # the yardstick has neighbours, too
        now, slower = await measure(), await measure(times=12)
        missed = [name for name in now if slower[name] <= now[name] * LIMIT]
        if not missed:
            break
    assert missed == []
