"""What is followed of a session that was lost, and what is refused."""

import pytest

from dragoman.engine.faults import StaleEpoch
from dragoman.engine.work import Losses, Work


def begun(work: Work) -> Work:
    work.begin()
    return work


def stored(work: Work) -> Work:
    work.stored = True
    return work


def refused(work: Work) -> Work:
    work.fail(StaleEpoch("lost"))
    return work


async def test_only_what_another_node_knows_of_is_followed() -> None:
    losses = Losses()
    told: list[tuple[str, int, Work]] = []
    losses.await_turn = lambda session, seen, work: told.append((session, seen, work))
    running, waiting = begun(Work("prompt", "t1")), stored(Work("prompt", "t2"))
    others = [
        Work("prompt", "t3"),
        refused(Work("prompt", "t4")),
        begun(Work("compact", "t5")),
        begun(Work("resume", "t6")),
    ]
    assert losses.follow("s", 7, running) and losses.follow("s", 7, waiting)
    assert not any(losses.follow("s", 7, work) for work in others)
    assert told == [("s", 7, running), ("s", 7, waiting)]


@pytest.mark.parametrize("fleet", [False, True])
async def test_without_a_fleet_there_is_nobody_to_go_on(fleet: bool) -> None:
    losses = Losses()
    if fleet:
        losses.await_turn = lambda session, seen, work: None
    losses.add("s", 3)
    assert losses.follow("s", 7, begun(Work("prompt", "t"))) is fleet
    assert losses.epochs == ({"s": 3} if fleet else {})
