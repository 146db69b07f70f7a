"""What the terminal keeps: `bag`, `past`, `files`, `inbox`."""

import asyncio
import os
import subprocess
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from dragoman.engine import events as ev
from dragoman.engine.ask import Ask
from dragoman.engine.content import Image, Text
from dragoman.engine.events import Event
from dragoman.engine.faults import UnknownSession
from dragoman.settings.places import places
from dragoman.tui import files
from dragoman.tui.inbox import Inbox
from dragoman.tui.past import Past
from dragoman.tui.writing import Bag

# --- bag ---


def test_bag_drops_the_last_and_holds_no_more_than_twenty() -> None:
    bag = Bag()
    assert bag.drop() is False
    for number in range(25):
        bag.add(f"f{number}", Text(str(number)))
    assert len(bag.things) == 20 and bag.things[0][0] == "f5"
    assert bag.drop() is True and bag.take()[-1] == ("f23", Text("23"))
    bag.add("p\x1b[1m", Image("image/png", b"x"))
    assert bag.shown().plain.startswith("  ▣ p\ufffd[1m  ")


# --- past ---


@pytest.fixture
def past(tmp_path: Path) -> Past:
    return Past("/some/folder", str(tmp_path))


def test_past_walks_back_and_forth_with_the_draft_at_its_end(past: Past) -> None:
    assert past.older("draft") is None and past.newer() is None
    for text in ("one", "two", "two", "  ", "three"):
        assert past.add(text) == ""
    assert past.said == ["one", "two", "three"]
    assert [past.older("draft"), past.older("three"), past.older("two")] == ["three", "two", "one"]
    assert past.older("one") is None
    assert [past.newer(), past.newer(), past.newer(), past.newer()] == [
        "two", "three", "draft", None,
    ]  # fmt: skip


def test_past_is_of_one_folder_and_survives_a_line_cut_by_a_crash(tmp_path: Path) -> None:
    first = Past("/a", str(tmp_path))
    first.add("kept \ud800")
    (path,) = tmp_path.rglob("*.jsonl")
    assert path.stat().st_mode & 0o777 == 0o600
    with path.open("ab") as file:
        file.write(b'{"no": "text"}\n"half')
    assert Past("/a", str(tmp_path)).said == ["kept ?"]
    assert Past("/b", str(tmp_path)).said == []


def test_a_prompt_that_is_written_elsewhere_lies_where_no_command_writes(tmp_path: Path) -> None:
    """Commands share the temporary folder: they could change what a human has written there."""
    made, path = Past("/a", str(tmp_path)).draft()
    os.close(made)
    assert path.startswith(f"{places(os.environ, str(tmp_path)).data_dir}/")
    assert os.stat(os.path.dirname(path)).st_mode & 0o077 == 0


def test_past_is_made_short_when_it_is_read(tmp_path: Path) -> None:
    Past("/a", str(tmp_path)).add("x")
    (path,) = tmp_path.rglob("*.jsonl")
    path.write_text("".join(f'"{n}"\n' for n in range(2_500)))
    again = Past("/a", str(tmp_path))
    assert len(again.said) == 1_000 and again.said[-1] == "2499"
    assert len(path.read_text().splitlines()) == 1_000


def test_past_says_when_it_cannot_be_kept(tmp_path: Path) -> None:
    past = Past("/a", str(tmp_path))
    (tmp_path / "data").mkdir(exist_ok=True)
    (tmp_path / "data" / "history").write_text("in the way")
    assert "cannot be kept" in past.add("words")
    assert past.said == ["words"]  # for as long as this terminal is open


def test_past_search_wants_all_words_newest_first_each_once(past: Past) -> None:
    for text in ("fix the Bug", "other", "the bug again", "fix the Bug"):
        past.add(text)
    assert past.search("BUG the") == ["fix the Bug", "the bug again"]
    assert past.search("", most=1) == ["fix the Bug"]


# --- files ---


def tree(folder: Path) -> None:
    for name in ("a.py", "sub/b.py", "sub/deep/a_b.txt", "node_modules/x.js", "out/made.o"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text("")
    (folder / ".gitignore").write_text("# made\nout/\n")


def test_files_walked_respects_simple_ignores_and_depth(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tree(tmp_path)
    assert files.walked(str(tmp_path)) == [".gitignore", "a.py", "sub/b.py", "sub/deep/a_b.txt"]
    monkeypatch.setattr(files, "_DEEPEST", 1)
    assert "sub/deep/a_b.txt" not in files.walked(str(tmp_path))
    monkeypatch.setattr(files, "_MOST", 1)
    assert files.walked(str(tmp_path)) == [".gitignore"]


async def test_files_listed_asks_git_and_does_without(tmp_path: Path) -> None:
    tree(tmp_path)
    assert "sub/b.py" in await files.listed(str(tmp_path))
    subprocess.run(["git", "init", "-q", str(tmp_path)], check=True)
    (tmp_path / ".gitignore").write_text("*.py\n")
    found = await files.listed(str(tmp_path))
    assert "a.py" not in found and "sub/deep/a_b.txt" in found
    assert await files.listed(str(tmp_path / "nowhere")) == []


def test_files_matching_puts_ends_before_middles() -> None:
    names = ["src/ab.py", "ab/x.py", "src/xab.py", "a/x/b", "none"]
    assert files.matching(names, "ab") == ["src/ab.py", "src/xab.py", "ab/x.py", "a/x/b"]
    assert files.matching(names, "zz") == []
    assert files.matching(["b/c", "a", "b"], "") == ["a", "b", "b/c"]
    assert len(files.matching([f"f{n}" for n in range(99)], "f")) == 30


# --- inbox ---


class Host:
    """Answers what an inbox asks."""

    def __init__(self, *asks: Ask) -> None:
        self.asks = asks

    async def approvals(self) -> Any:
        return [SimpleNamespace(ask=ask) for ask in self.asks]

    async def session(self, id: str) -> Any:
        if id == "gone":
            raise UnknownSession(id)
        return SimpleNamespace(session=SimpleNamespace(title="", query=f"about {id}"))


class Link:
    def __init__(self, host: Host) -> None:
        self.host = host

    async def ready(self) -> Host:
        return self.host


async def test_inbox_learns_names_and_counts_those_of_other_sessions() -> None:
    changes: list[None] = []
    first, second = Ask("1", "s1", "tool", "t", 20), Ask("2", "gone", "tool", "t", 10)
    inbox = Inbox(Link(Host(first, second)), lambda: changes.append(None))
    await inbox._read()
    assert inbox.names == {"s1": "about s1"} and len(changes) == 1
    assert [ask.id for ask in inbox.others("")] == ["2", "1"]  # oldest first
    assert (inbox.count(), inbox.count(besides="s1")) == (2, 1)


async def test_inbox_hears_of_questions_and_answers() -> None:
    heard: list[Event] = []
    inbox = Inbox(Link(Host()), lambda: None)
    inbox.listeners.append(heard.append)
    asked = Event("s3", 1, ev.Asked(Ask("3", "s3", "tool", "t", 1)), 1)
    inbox.take(asked)
    await asyncio.wait(inbox._tasks)
    assert inbox.names == {"s3": "about s3"} and list(inbox.asks) == ["3"]
    inbox.take(Event("s3", 2, ev.Settled("3", "allow"), 2))
    inbox.take(Event("s3", 2, ev.Settled("unknown", "allow"), 3))
    assert inbox.asks == {} and len(heard) == 3


def test_files_are_those_of_the_process_that_asks(tmp_path: Path) -> None:
    """Names that are no UTF-8 come back as Python writes them."""
    with open(os.fsencode(tmp_path) + b"/\xff.txt", "wb"):
        pass
    assert files.walked(str(tmp_path)) == ["\udcff.txt"]
