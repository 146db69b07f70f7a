"""A list that was read before is the list that would be read now."""

import random

import pytest

from dragoman.engine import pages
from dragoman.engine.host import OpenSpec
from dragoman.engine.info import Page, SessionQuery
from dragoman.engine.pages import Pages
from dragoman.testing.host import memory_door
from dragoman.testing.script import Scripted


def test_a_page_is_good_until_something_is_written_or_a_second_is_over(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    now = 100.0
    monkeypatch.setattr(pages, "monotonic", lambda: now)
    kept, query, page = Pages(), SessionQuery(), Page(())
    assert kept.get(query, 1) is None
    kept.put(query, 1, page)
    assert kept.get(query, 1) is page
    assert kept.get(query, 2) is None
    assert kept.get(SessionQuery(limit=5), 1) is None
    now += 1.5
    assert kept.get(query, 1) is None


def test_only_so_many_are_kept() -> None:
    kept = Pages()
    for number in range(100):
        kept.put(SessionQuery(limit=number), 1, Page(()))
    assert kept.get(SessionQuery(limit=0), 1) is None
    assert kept.get(SessionQuery(limit=99), 1) is not None


@pytest.mark.parametrize("seed", range(5))
async def test_both_ways_to_a_list_give_the_same(seed: int) -> None:
    """`Door.listed` (from memory) and `Door.list` (from the store), between random changes."""
    chance = random.Random(seed)
    door = memory_door(Scripted([]))
    ids: list[str] = []
    answered = 0
    for _ in range(60):
        what = chance.random()
        if what < 0.2 or not ids:
            ids.append((await door.open(OpenSpec(cwd="/"))).id)
        elif what < 0.3:
            await door.rename(chance.choice(ids), f"t{chance.random()}")
        elif what < 0.35:
            await door.archive(chance.choice(ids), chance.random() < 0.5)
        query = SessionQuery(archived=chance.choice([None, False]), limit=chance.choice([3, 50]))
        quick = door.listed(query)
        read = await door.list(query)
        if quick is not None:
            answered += 1
            assert quick == read
        assert door.listed(query) == read
    assert answered
