"""Long-term memory: found by words, apart for every agent, fast when it is large."""

import os
import sqlite3
from pathlib import Path

import pytest

from dragoman.agents.memory import Memories, Memory
from dragoman.engine.faults import BadInput, StoreFailed


@pytest.fixture
def memory(tmp_path):
    made = Memory(str(tmp_path / "m" / "agent.db"))
    yield made
    made.close()


def test_what_is_stored_is_recalled_by_its_words_and_forgotten_by_its_key(memory):
    memory.store("editor", "The user prefers Helix over other editors.")
    memory.store("language", "The project is written in Python.")
    assert [e.key for e in memory.recall("which editors does he like?")] == ["editor"]
    assert memory.forget("editor") and not memory.forget("editor")
    assert memory.recall("editors") == []


def test_the_same_key_replaces(memory):
    memory.store("k", "old words")
    memory.store("k", "new terms")
    assert memory.recall("old") == []
    assert memory.recall("terms")[0].content == "new terms"


@pytest.mark.parametrize(
    "query", ["", '"', "a OR b", "key:x", "NEAR(a b)", "*", "ü" * 10, "x" * 9999]
)
def test_no_question_breaks_the_search(memory, query):
    memory.store("k", "something")
    assert memory.recall(query) == []


def test_bad_entries_are_refused(memory):
    for key, content in (("", "x"), ("x", " "), ("x", "y" * 10_000)):
        with pytest.raises(BadInput):
            memory.store(key, content)


def test_the_oldest_go_when_it_is_full(tmp_path):
    memory = Memory(str(tmp_path / "a.db"), limit=3)
    for n in range(5):
        memory.store(f"k{n}", f"content {n}")
    assert sorted(e.key for e in memory.all()) == ["k2", "k3", "k4"]
    memory.close()


def test_agents_never_share(tmp_path):
    memories = Memories(str(tmp_path))
    memories.of("one").store("k", "a secret of one")
    for other in ("two", "one/", "../one", "One."):
        assert memories.of(other).recall("secret") == []
    memories.close()


def test_recall_from_a_many_entries_reads_few_of_them(memory):
    rows = [
        (f"k{n}", f"the user said that thing number{n} is about topic{n % 977}", "note", "", n, n)
        for n in range(20_000)
    ]
    with memory._using() as db:
        pass
    db.execute("BEGIN")
    db.executemany(
        "INSERT INTO entries (key, content, category, session, created, updated) "
        "VALUES (?, ?, ?, ?, ?, ?)", rows,
    )  # fmt: skip
    db.execute("COMMIT")
    thousands = [0]
    db.set_progress_handler(lambda: thousands.__setitem__(0, thousands[0] + 1), 1_000)
    for topic in range(1, 6):
        found = memory.recall(f"what did the user say about topic{topic}?", 5)
        assert found and all(f"topic{topic}" in e.content for e in found)
    assert thousands[0] < 20  # steps of SQLite's machine: less than one for each entry


USES = [
    lambda memory: memory.store("k", "words"),
    lambda memory: memory.recall("words"),
    lambda memory: memory.get("k"),
    lambda memory: memory.all(),
    lambda memory: memory.forget("k"),
    lambda memory: memory.purge(),
]


@pytest.mark.parametrize("use", USES)
def test_a_damaged_file_is_told_in_our_words(tmp_path: Path, use) -> None:
    path = tmp_path / "agent.db"
    made = Memory(str(path))
    made.store("k", "some words")
    made.close()
    size = path.stat().st_size
    with path.open("r+b") as file:  # the first page is sound, so it opens
        file.seek(4096)
        file.write(b"\xa5" * (size - 4096))
    made = Memory(str(path))
    with pytest.raises(StoreFailed, match="agent.db cannot be used") as told:
        use(made)
    assert "Move the file away" in told.value.hint
    path.rename(tmp_path / "away.db")  # as it says, while it is open
    made.store("k", "other words")
    assert [entry.content for entry in made.recall("words")] == ["other words"]
    made.close()
    again = Memory(str(path))
    assert [entry.content for entry in again.all()] == ["other words"]
    again.close()


def test_what_is_stored_after_the_file_was_taken_away_is_kept(tmp_path: Path) -> None:
    path = tmp_path / "agent.db"
    made = Memory(str(path))
    made.store("old", "old words")
    path.unlink()  # its log stays
    made.store("new", "new words")
    other = Memory(str(path))
    other.store("more", "more words")
    assert {entry.key for entry in made.all()} == {"new", "more"}
    made.close()
    other.close()
    with sqlite3.connect(path) as connection:
        assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    connection.close()
    again = Memory(str(path))
    assert {entry.key for entry in again.all()} == {"new", "more"}
    again.close()


def test_a_full_disk_says_so_and_keeps_what_was_there(tmp_path: Path) -> None:
    made = Memory(str(tmp_path / "agent.db"))
    made.store("k", "words")
    with made._using() as db:
        pages = db.execute("PRAGMA page_count").fetchone()[0]
        db.execute(f"PRAGMA max_page_count = {pages}")
    with pytest.raises(StoreFailed, match="full") as told:
        for n in range(100):
            made.store(f"k{n}", os.urandom(2000).hex())
    assert "Make room" in told.value.hint
    assert made.get("k") is not None
    made.close()
