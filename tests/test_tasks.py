"""The task bench in short: a few tasks to their end, and every task well made."""

from pathlib import Path

from bench.tasks.repos import TASKS
from bench.tasks.run import run, written


def test_there_are_enough_and_each_is_whole() -> None:
    assert len(TASKS) >= 25 and len({task.name for task in TASKS}) == len(TASKS)
    for task in TASKS:
        assert any(name.startswith("test_") for name in task.files)
        for file, old, new in task.changes:
            assert new != old
            assert task.files[file].count(old) == 1 if old else file not in task.files


async def test_a_fix_a_near_miss_and_a_new_file() -> None:
    wanted = {"average", "bounds", "missing"}
    plain, missed, new = await run([task for task in TASKS if task.name in wanted])
    assert plain.mended and missed.mended and new.mended
    assert (plain.steps, plain.calls, plain.failed) == (6, 6, 1)
    assert (missed.steps, missed.failed) == (7, 2)
    # Prompt and tools are sent with every step: together they stay small.
    assert plain.sent / plain.steps < 24_000


def test_the_table_takes_the_place_of_the_last_one(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("before\n<!-- tasks -->\nold\n<!-- end of tasks -->\nafter\n")
    written(page, "| new |")
    assert page.read_text() == "before\n<!-- tasks -->\n\n| new |\n\n<!-- end of tasks -->\nafter\n"
