"""Batches written as a group, and each by itself: random work ends the same on both ways."""

import random
from pathlib import Path
from typing import Any

import pytest
from tests.store.making import make_answer, make_ask, make_batch, make_info

from dragoman.engine.faults import Fault
from dragoman.engine.info import SessionQuery
from dragoman.store import writer
from dragoman.store.sqlite import SqliteStore

Step = tuple[str, int, int, int, str]  # session, epoch to add, first to add, how many, what else


def steps(chance: random.Random) -> list[list[Step]]:
    """Rounds of batches that come together; some are late, doubled, foreign or ask something."""
    return [
        [_step(chance, plain=number % 3 > 0) for _ in range(chance.randrange(1, 8))]
        for number in range(60)
    ]


def _step(chance: random.Random, *, plain: bool) -> Step:
    session, count = f"s{chance.randrange(4)}", chance.choice([1, 1, 2, 5])
    if plain or chance.random() < 0.5:
        return session, 0, 0, count, ""
    what = chance.choice(["foreign", "late", "doubled", "title", "ask", "settle"])
    return session, int(what == "foreign"), {"late": 1, "doubled": -1}.get(what, 0), count, what


async def played(path: Path, rounds: list[list[Step]]) -> tuple[list[Any], Any]:
    """What every batch was answered, and all that is stored in the end."""
    store = SqliteStore(path, idle=60)
    epochs = {f"s{n}": await store.create(make_info(f"s{n}"), "me") for n in range(4)}
    heads = dict.fromkeys(epochs, 0)
    answers: list[Any] = []
    number = 0
    for batches in rounds:
        posted = []
        for session, wrong, skip, count, more in batches:
            number += 1
            first = heads[session] + 1 + skip
            how: dict[str, Any] = {"updated_at": 1000 + number}
            if more == "title":
                how["title"] = f"t{number}"
            elif more == "ask":
                how["asked"] = [make_ask(f"a{number % 5}", session)]
            elif more == "settle":
                how["settled"] = [make_answer(f"a{number % 5}")]
            batch = make_batch(session, epochs[session] + wrong, first, count, **how)
            future = store.post(batch)
            if not wrong and not skip and more not in ("ask", "settle"):
                heads[session] += count
            posted.append((session, more, count, future))
        for session, more, count, future in posted:
            try:
                answers.append(await future)
                if more in ("ask", "settle"):
                    heads[session] += count
            except Fault as fault:
                answers.append((type(fault).__name__, fault.message))
            heads[session] = len(await store.entries(session))
    page = await store.list(SessionQuery())
    stored = (
        page.sessions,
        [await store.entries(session) for session in epochs],
        await store.entries_since(0, 10_000),
        await store.asks(None, pending=False),
    )
    await store.close()
    return answers, stored


@pytest.mark.parametrize("seed", range(6))
async def test_both_ways_to_write_end_the_same(
    tmp_path: Path, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    rounds = steps(random.Random(seed))
    gather, groups = writer.gather, []

    def counted(jobs: Any, known: Any) -> Any:
        groups.append(gather(jobs, known))
        return groups[-1]

    monkeypatch.setattr(writer, "gather", counted)
    grouped = await played(tmp_path / "grouped.db", rounds)
    assert sum(one is not None for one in groups) > 10  # both ways were gone
    monkeypatch.setattr(writer, "gather", lambda jobs, known: None)
    alone = await played(tmp_path / "alone.db", rounds)
    assert grouped[0] == alone[0]
    assert grouped[1] == alone[1]
    assert sum(isinstance(one, int) for one in grouped[0]) > 20
    assert any(isinstance(one, tuple) for one in grouped[0])
