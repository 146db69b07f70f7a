"""The ways of one prompt and of one approval are those that docs/architecture.md draws."""

import re

import pytest
from scripts.trace_ways import BEGIN, END, PAGE, TITLES, page_with, shortest

# So many files and functions at most. Lower them when a way gets shorter.
MOST = {"prompt": (40, 180), "approval": (50, 263)}


@pytest.mark.parametrize("name", TITLES)
async def test_a_way_is_drawn_as_it_is(name: str) -> None:
    files, functions = (await shortest())[name]
    page = PAGE.read_text(encoding="utf-8").partition(BEGIN)[2].partition(END)[0]
    line = page.partition(TITLES[name])[2].strip("*\n").split("\n\n")[0]
    told = "Draw it anew: python scripts/trace_ways.py --write"
    assert set(re.findall(r"`([^`]+)`", line)) == {one.removesuffix(".py") for one in files}, told
    most_files, most_functions = MOST[name]
    assert len(files) <= most_files and len(functions) <= most_functions


def test_drawing_replaces_what_was_drawn() -> None:
    ways = {"prompt": (["wire/a.py", "engine/b.py"], []), "approval": (["c.py"], [])}
    page = page_with(f"head\n{BEGIN}old\n{END}tail\n", ways)
    assert page.startswith("head\n") and page.endswith("tail\n") and "old" not in page
    assert "`wire/a` → `engine/b`" in page and page_with(page, ways) == page
