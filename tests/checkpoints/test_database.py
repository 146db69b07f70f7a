"""What changed and how it is put back: `database`, `restoring`."""

import os
import sqlite3
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from dragoman.checkpoints.database import NOTHING, Database, FileChange, Seen, State, hash_of
from dragoman.checkpoints.restoring import plan, restore
from dragoman.engine.faults import Changed

FILE = stat.S_IFREG | 0o644


@pytest.fixture
def db(tmp_path: Path) -> Iterator[Database]:
    made = Database(str(tmp_path / "data" / "checkpoints.db"))
    yield made
    made.close()


# --- database ---


def test_database_keeps_a_content_once_and_is_private(db: Database, tmp_path: Path) -> None:
    key = db.put(b"content")
    assert key == db.put(b"content") == hash_of(b"content")
    assert db.get(key) == b"content" and db.get(b"no") is None
    assert (tmp_path / "data" / "checkpoints.db").stat().st_mode & 0o777 == 0o600


def test_database_joins_changes_of_one_turn_and_drops_what_changed_back(db: Database) -> None:
    n = db.turn("s", "t1", "/w").n
    one, two = State(FILE, db.put(b"1")), State(FILE, db.put(b"2"))
    db.change(n, FileChange("/w/\udcff", NOTHING, one))
    db.change(n, FileChange("/w/\udcff", one, two))
    assert db.changes(n) == [FileChange("/w/\udcff", NOTHING, two)]
    db.change(n, FileChange("/w/\udcff", two, NOTHING))
    assert db.changes(n) == []  # it never was, and is not


def test_database_a_content_that_was_not_kept_counts_as_changed(db: Database) -> None:
    n = db.turn("s", "t1", "/w").n
    db.change(n, FileChange("/w/large", State(FILE), State(FILE)))
    assert len(db.changes(n)) == 1


def test_database_turns_have_one_row_notes_once_and_undo_numbers(db: Database) -> None:
    first, again = db.turn("s", "t1", "/w"), db.turn("s", "t1", "/w")
    assert first.n == again.n and [row.turn for row in db.turns("s")] == ["t1"]
    db.mark(first.n, scanning=True, note="too many files")
    db.mark(first.n, note="too many files")
    db.mark(first.n, scanning=False, note="and a link")
    db.undone([first.n], 7)
    (row,) = db.turns("s")
    assert (row.note, row.scanning, row.undone) == ("too many files and a link", False, 7)
    db.drop([first.n])
    assert db.turns("s") == [] and db.turns("other") == []


def test_database_remembers_a_workspace_and_forgets_what_is_gone(db: Database) -> None:
    seen = Seen(b"stamp", State(FILE, db.put(b"x")))
    db.saw("/w", [("a", seen), ("b", seen)], [])
    db.saw("/w", [], ["a"])
    assert db.seen("/w") == {"b": seen} and db.seen("/other") == {}


def test_database_rolls_back_what_failed(db: Database) -> None:
    with pytest.raises(ZeroDivisionError), db.writing():
        db.put(b"x")
        raise ZeroDivisionError
    assert db.get(hash_of(b"x")) is None


def test_database_lets_the_oldest_go_and_the_own_workspace_last(db: Database) -> None:
    for number in range(4):
        n = db.turn("s", f"t{number}", "/w").n
        db.change(n, FileChange("/w/a", NOTHING, State(FILE, db.put(os.urandom(100_000)))))
    db.saw("/old", [("x", Seen(b"", State(FILE, db.put(os.urandom(50_000)))))], [])
    db.saw("/w", [("y", Seen(b"", State(FILE, db.put(b"small"))))], [])
    db.shrink(250_000, "/w")
    assert db.size() <= 250_000 and db.seen("/old") == {}
    left = [row.turn for row in db.turns("s")]
    assert left and left[-1] == "t3" and "t0" not in left and "y" in db.seen("/w")
    db.shrink(0, "/w")  # nothing is left to let go: it ends all the same
    assert db.turns("s") == [] and db.seen("/w") == {}


def test_database_of_another_release_begins_anew(tmp_path: Path) -> None:
    path = tmp_path / "d" / "c.db"
    first = Database(str(path))
    first.turn("s", "t", "/w")
    first.close()
    with sqlite3.connect(path) as raw:
        raw.execute("PRAGMA user_version=99")
    raw.close()
    again = Database(str(path))
    assert again.turns("s") == []
    again.close()


# --- restoring ---


class Folder:
    """A workspace with files, and changes of them."""

    def __init__(self, db: Database, top: Path) -> None:
        self.db = db
        self.top = top
        top.mkdir()

    def state(self, content: str | None) -> State:
        return NOTHING if content is None else State(FILE, self.db.put(content.encode()))

    def change(self, name: str, before: str | None, after: str | None) -> FileChange:
        return FileChange(str(self.top / name), self.state(before), self.state(after))

    def write(self, name: str, content: str) -> None:
        path = self.top / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(content)
        path.chmod(0o644)

    def restore(self, *changes: FileChange) -> tuple[list[tuple[str, str]], list[str]]:
        done, lost = restore(self.db, changes, 1_000_000, str(self.top))
        return [(os.path.basename(path), fate) for path, fate in done], lost


@pytest.fixture
def folder(db: Database, tmp_path: Path) -> Folder:
    return Folder(db, tmp_path / "work")


def test_restoring_plans_several_turns_as_one(folder: Folder) -> None:
    first, second = folder.change("a", None, "1"), folder.change("a", "1", "2")
    back = plan([[second], [first]], back=True)
    assert back == [FileChange(first.path, second.after, NOTHING)]
    assert plan([[first], [second]], back=False) == [FileChange(first.path, NOTHING, second.after)]


def test_restoring_changes_removes_and_makes_files(folder: Folder) -> None:
    folder.write("changed", "new")
    folder.write("deep/er/made", "x")
    done, lost = folder.restore(
        folder.change("changed", "new", "old"),
        folder.change("deep/er/made", "x", None),
        folder.change("gone/again", None, "back"),
        folder.change("same", None, None),
    )
    assert done == [("changed", "changed"), ("made", "removed"), ("again", "made")] and lost == []
    assert (folder.top / "changed").read_text() == "old"
    assert not (folder.top / "deep").exists()  # folders that are empty now go, too
    assert (folder.top / "gone" / "again").read_text() == "back"
    assert not list(folder.top.rglob("*.tmp"))


def test_restoring_touches_nothing_when_somebody_worked_on(folder: Folder) -> None:
    folder.write("a", "turn's")
    folder.write("b", "somebody's\nline")
    folder.write("c", "came meanwhile")
    with pytest.raises(Changed, match="Somebody else changed b, c, d") as found:
        folder.restore(
            folder.change("a", "turn's", "old"),
            folder.change("b", "turn's\nline", "old"),
            folder.change("c", None, "old"),
            folder.change("d", "turn's", "old"),
        )
    assert (folder.top / "a").read_text() == "turn's"
    said = str(found.value.data["diff"])
    assert "-turn's" in said and "+somebody's" in said
    assert "c: it was made, with 14 bytes." in said and "d: it was removed." in said


def test_restoring_says_what_is_lost(folder: Folder) -> None:
    folder.write("a", "now")
    lost = FileChange(str(folder.top / "a"), folder.state("now"), State(FILE, hash_of(b"not kept")))
    assert folder.restore(lost) == ([], [lost.path])


def test_restoring_keeps_links_and_permissions(folder: Folder, db: Database) -> None:
    link = State(stat.S_IFLNK | 0o777, db.put(b"target"))
    script = State(stat.S_IFREG | 0o755, db.put(b"#!"))
    folder.restore(
        FileChange(str(folder.top / "l"), NOTHING, link),
        FileChange(str(folder.top / "s"), NOTHING, script),
    )
    assert os.readlink(folder.top / "l") == "target"
    assert (folder.top / "s").stat().st_mode & 0o777 == 0o755


def test_restoring_tells_a_binary_or_its_permissions_apart(folder: Folder) -> None:
    folder.write("bin", "a\0c")
    folder.write("mode", "x")
    (folder.top / "mode").chmod(0o600)
    with pytest.raises(Changed) as found:
        folder.restore(folder.change("bin", "a\0b", "o"), folder.change("mode", "x", "o"))
    said = str(found.value.data["diff"])
    assert "bin: its content changed." in said
    assert "mode: its permissions or its type changed." in said


def test_restoring_keeps_the_other_names_of_a_file(folder: Folder, db: Database) -> None:
    path = folder.top / "a"
    path.write_bytes(b"after")
    os.link(path, folder.top / "b")
    before = path.stat()
    change = FileChange(
        str(path),
        State(before.st_mode, db.put(b"after")),
        State(stat.S_IFREG | 0o600, db.put(b"what was there")),
    )
    restore(db, [change], 1000, str(folder.top))
    assert (folder.top / "b").read_bytes() == path.read_bytes() == b"what was there"
    assert os.path.samestat(path.stat(), before)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


def test_restoring_writes_through_no_link_to_what_other_programs_run(
    folder: Folder, db: Database
) -> None:
    (folder.top / ".git").mkdir()
    (folder.top / ".git" / "config").write_bytes(b"[core]\n")
    path = folder.top / "a"
    os.link(folder.top / ".git" / "config", path)
    now = State(path.stat().st_mode, db.put(b"[core]\n"))
    restore(db, [FileChange(str(path), now, State(FILE, db.put(b"evil")))], 1000, str(folder.top))
    assert path.read_bytes() == b"evil"
    assert (folder.top / ".git" / "config").read_bytes() == b"[core]\n"
