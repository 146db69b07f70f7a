"""What turns change is kept and brought back, against files that others touch too."""

import asyncio
import os
import sqlite3
import stat
import subprocess
import zlib
from pathlib import Path

import msgspec
import pytest

from dragoman.checkpoints.keeper import Keeper
from dragoman.checkpoints.looking import LookLimits, _content
from dragoman.engine.faults import BadInput, Changed, Refused, StoreFailed
from dragoman.engine.info import SessionInfo
from dragoman.engine.ports.checkpoints import TouchedFile
from dragoman.engine.traits import Continues


class Scene:
    """A workspace, a keeper, and turns that change files."""

    def __init__(self, folder: Path, limits: LookLimits | None = None, most: int = 1 << 28) -> None:
        self.work = folder / "work"
        self.work.mkdir()
        self.path = folder / "data" / "checkpoints.db"
        self.keeper = Keeper(str(self.path), limits, most)
        self.session = SessionInfo("s", "a", str(self.work), "m/m", "full", "idle", 0, 0)

    def write(self, name: str, text: str) -> Path:
        path = self.work / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    async def edit(self, turn: str, name: str, text: str | None) -> None:
        path = [str(self.work / name)]
        await self.keeper.before(self.session, turn, path)
        if text is None:
            (self.work / name).unlink()
        else:
            self.write(name, text)
        await self.keeper.after(self.session, turn, path)

    async def bash(self, turn: str, command: str) -> None:
        await self.keeper.before(self.session, turn, None)
        subprocess.run(command, shell=True, cwd=self.work, check=True)
        await self.keeper.after(self.session, turn, None)

    def tree(self) -> dict[str, str]:
        return {
            str(path.relative_to(self.work)): path.read_text()
            for path in sorted(self.work.rglob("*"))
            if path.is_file() and ".git/" not in str(path)
        }


@pytest.fixture
def scene(tmp_path: Path):
    made = Scene(tmp_path)
    yield made
    made.keeper.close()


async def test_edits_are_undone_and_redone_turn_by_turn(scene: Scene) -> None:
    scene.write("a.txt", "one\n")
    await scene.edit("t1", "a.txt", "two\n")
    await scene.edit("t1", "new/b.txt", "b\n")
    await scene.edit("t2", "a.txt", "three\n")
    await scene.edit("t3", "a.txt", None)
    listed = await scene.keeper.listed(scene.session)
    assert [one.turn for one in listed] == ["t1", "t2", "t3"]
    assert listed[0].files == (TouchedFile("a.txt", "changed"), TouchedFile("new/b.txt", "made"))
    done = await scene.keeper.undo(scene.session)
    assert done.turns == ("t3",) and done.files == (TouchedFile("a.txt", "made"),)
    assert scene.tree() == {"a.txt": "three\n", "new/b.txt": "b\n"}
    done = await scene.keeper.undo(scene.session, "t1")
    assert done.turns == ("t2", "t1")
    assert scene.tree() == {"a.txt": "one\n"} and not (scene.work / "new").exists()
    with pytest.raises(BadInput, match="nothing to undo"):
        await scene.keeper.undo(scene.session)
    assert (await scene.keeper.redo(scene.session)).turns == ("t2", "t1")
    assert scene.tree() == {"a.txt": "three\n", "new/b.txt": "b\n"}
    await scene.keeper.redo(scene.session)
    assert scene.tree() == {"new/b.txt": "b\n"}
    with pytest.raises(BadInput, match="nothing to redo"):
        await scene.keeper.redo(scene.session)


async def test_what_commands_do_is_undone_too(scene: Scene) -> None:
    scene.write("keep.txt", "k")
    scene.write("src/a.py", "a = 1\n")
    scene.write("run.sh", "#!/bin/sh\n").chmod(0o755)
    os.symlink("keep.txt", scene.work / "link")
    before = scene.tree()
    await scene.bash(
        "t1",
        "echo changed > src/a.py; rm run.sh; mv keep.txt moved.txt; mkdir -p x/y; echo n > x/y/n;"
        "ln -sf moved.txt link; chmod 600 src/a.py",
    )
    done = await scene.keeper.undo(scene.session)
    assert {file.path for file in done.files} == {
        "src/a.py", "run.sh", "keep.txt", "moved.txt", "x/y/n", "link",
    }  # fmt: skip
    assert scene.tree() == before and not (scene.work / "x").exists()
    assert os.readlink(scene.work / "link") == "keep.txt"
    assert stat.S_IMODE((scene.work / "run.sh").stat().st_mode) == 0o755
    assert stat.S_IMODE((scene.work / "src/a.py").stat().st_mode) != 0o600
    await scene.keeper.redo(scene.session)
    assert (scene.work / "x/y/n").read_text() == "n\n" and not (scene.work / "run.sh").exists()


async def test_the_work_of_others_is_never_lost(scene: Scene) -> None:
    path = scene.write("a.txt", "one\n")
    scene.write("b.txt", "b\n")
    await scene.edit("t1", "a.txt", "two\n")
    await scene.edit("t1", "b.txt", "bb\n")
    path.write_text("two\nand mine\n")
    with pytest.raises(Changed, match=r"\+and mine") as caught:
        await scene.keeper.undo(scene.session)
    assert caught.value.data["files"] == ["a.txt"]
    assert scene.tree() == {"a.txt": "two\nand mine\n", "b.txt": "bb\n"}  # all or nothing
    path.unlink()
    with pytest.raises(Changed, match="removed"):
        await scene.keeper.undo(scene.session)
    path.write_text("two\n")
    path.chmod(0o600)
    with pytest.raises(Changed, match="permissions"):
        await scene.keeper.undo(scene.session)
    path.chmod(0o644)
    path.write_text("one\n")  # somebody put it back by hand: that is what was wanted
    await scene.keeper.undo(scene.session)
    assert scene.tree() == {"a.txt": "one\n", "b.txt": "b\n"}
    path.write_text("theirs\n")
    with pytest.raises(Changed, match="theirs"):
        await scene.keeper.redo(scene.session)


async def test_the_work_of_others_between_turns_is_never_lost(scene: Scene) -> None:
    path = scene.write("a.txt", "one\n")
    await scene.edit("t1", "a.txt", "two\n")
    path.write_text("two\nand mine\n")
    await scene.edit("t2", "a.txt", "three\nand mine\n")
    await scene.edit("t3", "b.txt", "b\n")
    with pytest.raises(Changed, match=r"between those turns[\s\S]*\+and mine") as caught:
        await scene.keeper.undo(scene.session, "t1")
    assert caught.value.data["files"] == ["a.txt"]
    assert scene.tree() == {"a.txt": "three\nand mine\n", "b.txt": "b\n"}
    await scene.keeper.undo(scene.session, "t2")
    assert scene.tree() == {"a.txt": "two\nand mine\n"}
    with pytest.raises(Changed, match="since that turn"):
        await scene.keeper.undo(scene.session)
    path.write_text("two\n")
    await scene.keeper.undo(scene.session)
    assert scene.tree() == {"a.txt": "one\n"}


async def test_a_file_that_others_removed_or_made_between_turns(scene: Scene) -> None:
    path = scene.write("a.txt", "one\n")
    await scene.edit("t1", "a.txt", "two\n")
    path.unlink()
    await scene.edit("t2", "a.txt", "three\n")
    with pytest.raises(Changed, match=r"a\.txt: it was removed"):
        await scene.keeper.undo(scene.session, "t1")
    await scene.edit("t3", "a.txt", None)
    path.write_text("theirs\n")
    await scene.edit("t4", "a.txt", "ours\n")
    with pytest.raises(Changed, match="it was made"):
        await scene.keeper.undo(scene.session, "t3")
    assert scene.tree() == {"a.txt": "ours\n"}


async def test_what_others_change_between_calls_is_not_ours(scene: Scene) -> None:
    scene.write("a.txt", "a")
    await scene.bash("t1", "echo x > ours.txt")
    scene.write("theirs.txt", "t")
    scene.write("a.txt", "theirs")
    await scene.bash("t1", "echo y > ours2.txt")
    await scene.keeper.undo(scene.session)
    assert scene.tree() == {"a.txt": "theirs", "theirs.txt": "t"}


async def _ours(scene: Scene, how: str, text: str) -> None:
    if how == "edit":
        await scene.edit("t1", "a.txt", text)
    else:
        await scene.bash("t1", f"printf %s '{text}' > a.txt")


@pytest.mark.parametrize("second", ["edit", "bash"])
@pytest.mark.parametrize("first", ["edit", "bash"])
async def test_the_work_of_others_between_two_calls_of_a_turn_is_never_lost(
    scene: Scene, first: str, second: str
) -> None:
    path = scene.write("a.txt", "one")
    scene.write("b.txt", "b")
    await _ours(scene, first, "two")
    path.write_text("two and mine")
    await _ours(scene, second, "three and mine")
    await scene.edit("t1", "b.txt", "bb")
    scene.keeper.close()
    again = Keeper(str(scene.path))  # also after a restart
    try:
        with pytest.raises(Changed, match=r"while that turn worked[\s\S]*\+two and mine") as caught:
            await again.undo(scene.session)
        assert caught.value.data["files"] == ["a.txt"]
        assert scene.tree() == {"a.txt": "three and mine", "b.txt": "bb"}
        path.write_text("one")  # whoever puts it back by hand has what the undo is for
        await again.undo(scene.session)
        assert scene.tree() == {"a.txt": "one", "b.txt": "b"}
        await again.redo(scene.session)
        assert scene.tree() == {"a.txt": "three and mine", "b.txt": "bb"}
        await again.undo(scene.session)
        assert scene.tree() == {"a.txt": "one", "b.txt": "b"}
    finally:
        again.close()


async def test_what_others_removed_made_or_put_back_between_two_calls(scene: Scene) -> None:
    path = scene.write("a.txt", "one")
    await scene.edit("t1", "a.txt", "two")
    path.write_text("one")  # back to what it was: an undo makes just that
    await scene.edit("t1", "a.txt", "three")
    await scene.keeper.undo(scene.session)
    assert scene.tree() == {"a.txt": "one"}
    await scene.edit("t2", "a.txt", "two")
    path.unlink()
    await scene.bash("t2", "echo three > a.txt")
    with pytest.raises(Changed, match="it was removed"):
        await scene.keeper.undo(scene.session)
    await scene.edit("t3", "a.txt", None)
    path.write_text("theirs")
    await scene.edit("t3", "a.txt", "ours")
    with pytest.raises(Changed, match="it was made"):
        await scene.keeper.undo(scene.session)
    path.chmod(0o600)
    await scene.edit("t4", "b.txt", "b")
    (scene.work / "b.txt").chmod(0o600)
    await scene.edit("t4", "b.txt", "bb")
    with pytest.raises(Changed, match="permissions"):
        await scene.keeper.undo(scene.session)


async def test_calls_of_one_turn_side_by_side_are_not_others(scene: Scene) -> None:
    """Children of a turn: a command that runs long, and edits and commands beside it."""
    scene.write("a.txt", "one")
    scene.write("b.txt", "one")
    child = SessionInfo(
        "c", "a", str(scene.work), "m/m", "full", "idle", 0, 0,
        extra={"started_by": {"session": "s", "turn": "t1"}},
    )  # fmt: skip
    await scene.keeper.before(child, "x1", None)
    scene.write("a.txt", "two")
    await scene.bash("t1", "echo three > b.txt; echo new > c.txt")
    await scene.edit("t1", "a.txt", "three")
    scene.write("a.txt", "four")
    await scene.edit("t1", "a.txt", "five")
    await scene.keeper.after(child, "x1", None)
    await scene.keeper.undo(scene.session)
    assert scene.tree() == {"a.txt": "one", "b.txt": "one"}


async def test_a_new_change_ends_what_could_be_redone(scene: Scene) -> None:
    scene.write("a.txt", "1")
    await scene.edit("t1", "a.txt", "2")
    await scene.keeper.undo(scene.session)
    await scene.bash("t2", "true")  # changed nothing: it may still be redone
    assert [one.turn for one in await scene.keeper.listed(scene.session)] == ["t1"]
    await scene.edit("t3", "a.txt", "3")
    with pytest.raises(BadInput):
        await scene.keeper.redo(scene.session)
    assert [one.turn for one in await scene.keeper.listed(scene.session)] == ["t3"]


async def test_a_link_put_on_the_way_is_not_followed(scene: Scene, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "a.txt").write_text("two")
    scene.write("in/a.txt", "one")
    await scene.edit("t1", "in/a.txt", "two")
    (scene.work / "in/a.txt").unlink()
    (scene.work / "in").rmdir()
    os.symlink(outside, scene.work / "in")
    with pytest.raises(Refused, match="link"):
        await scene.keeper.undo(scene.session)
    assert (outside / "a.txt").read_text() == "two"


async def test_ignored_files_are_left_alone(scene: Scene) -> None:
    subprocess.run(["git", "init", "-q"], cwd=scene.work, check=True)
    scene.write(".gitignore", "build/\n*.log\n")
    scene.write("build/old", "o")
    scene.write("x.log", "l")
    scene.write("node_modules/m/i.js", "js")
    await scene.bash(
        "t1", "echo n > build/new; echo m >> x.log; echo s > src.c; echo > node_modules/k"
    )
    (one,) = await scene.keeper.listed(scene.session)
    assert one.files == (TouchedFile("src.c", "made"),)
    # Rules that change in the same command make old files appear: they are not taken for new ones.
    await scene.bash("t2", "echo > .gitignore")
    one = (await scene.keeper.listed(scene.session))[-1]
    assert one.files == (TouchedFile(".gitignore", "changed"),) and "Not covered" in one.note
    await scene.keeper.undo(scene.session)
    assert (scene.work / "x.log").exists() and (scene.work / "build/old").exists()
    await scene.bash("t3", "printf '*.c\\n' >> .gitignore")  # and those that vanish are not removed
    assert (await scene.keeper.listed(scene.session))[-1].files == (
        TouchedFile(".gitignore", "changed"),
    )


async def test_a_quick_change_of_the_same_size_is_seen(scene: Scene) -> None:
    path = scene.write("a.txt", "aaaa")
    for n in range(6):
        await scene.bash(f"t{n}", f"printf {n}bbb > a.txt")
    for n in reversed(range(6)):
        assert path.read_text() == f"{n}bbb"
        await scene.keeper.undo(scene.session)
    assert path.read_text() == "aaaa"


async def test_a_keeper_that_died_in_a_command_can_undo_it(scene: Scene) -> None:
    scene.write("a.txt", "one")
    scene.write("b.txt", "one")
    await scene.keeper.before(scene.session, "t1", [str(scene.work / "b.txt")])
    scene.write("b.txt", "two")
    await scene.keeper.before(scene.session, "t2", None)
    scene.write("a.txt", "two")
    scene.keeper.close()
    again = Keeper(str(scene.path))
    try:
        done = await again.undo(scene.session, "t1")
        assert set(done.turns) == {"t1", "t2"}
        assert scene.tree() == {"a.txt": "one", "b.txt": "one"}
    finally:
        again.close()


async def test_all_is_bounded(tmp_path: Path) -> None:
    scene = Scene(tmp_path, LookLimits(files=50, file=10_000, bytes=400_000), most=600_000)
    try:
        for n in range(80):
            scene.write(f"f{n:02}.txt", str(n))
        scene.write("big.bin", "x" * 20_000)
        await scene.bash("t1", "echo new > zz.txt; rm f*.txt")
        (one,) = await scene.keeper.listed(scene.session)
        assert "Only 50 files" in one.note
        assert 49 <= len(one.files) <= 50 and {file.fate for file in one.files} == {"removed"}
        await scene.edit("t2", "big.bin", "y" * 20_000)
        done = await scene.keeper.undo(scene.session)
        assert "big.bin" in done.note and (scene.work / "big.bin").read_text()[0] == "y"
        for n in range(300):
            (scene.work / "r.bin").write_bytes(os.urandom(9_000))
            await scene.edit(f"r{n}", "r.bin", "")
        assert scene.path.stat().st_size < 3_000_000
        assert 0 < len(await scene.keeper.listed(scene.session)) < 300
        await scene.keeper.undo(scene.session)
    finally:
        scene.keeper.close()


async def test_turns_are_named_by_id_beginning_or_number(scene: Scene) -> None:
    for turn in ("trn_abc", "trn_abd", "trn_x"):
        await scene.edit(turn, "a.txt", turn)
    with pytest.raises(BadInput, match="several"):
        await scene.keeper.undo(scene.session, "ab")
    with pytest.raises(BadInput, match="No turn nope"):
        await scene.keeper.undo(scene.session, "nope")
    assert (await scene.keeper.undo(scene.session, "3")).turns == ("trn_x",)
    assert (await scene.keeper.undo(scene.session, "abd")).turns == ("trn_abd",)


async def test_two_sessions_are_kept_apart_and_forgotten(scene: Scene) -> None:
    await scene.edit("t1", "a.txt", "1")
    other = SessionInfo("o", "a", str(scene.work), "m/m", "full", "idle", 0, 0)
    assert not await scene.keeper.listed(other)
    await scene.keeper.forget("s")
    assert not await scene.keeper.listed(scene.session)


async def test_a_session_that_goes_on_with_another_undoes_its_turns(scene: Scene) -> None:
    scene.write("a.txt", "one")
    await scene.edit("t1", "a.txt", "two")
    await scene.edit("t2", "a.txt", "three")
    first = scene.session
    later = msgspec.structs.replace(
        first, id="later", extra={"continues": Continues.after(first.id, first.extra).kept()}
    )
    last = msgspec.structs.replace(
        first, id="last", extra={"continues": Continues.after("later", later.extra).kept()}
    )
    assert [one.turn for one in await scene.keeper.listed(last)] == ["t1", "t2"]
    assert (await scene.keeper.undo(last)).turns == ("t2",)
    assert (await scene.keeper.redo(later)).turns == ("t2",)
    scene.session = later
    await scene.edit("t3", "a.txt", "four")
    assert (await scene.keeper.undo(last, "t2")).turns == ("t3", "t2")
    assert scene.tree() == {"a.txt": "two"}
    scene.session = last
    await scene.edit("t4", "a.txt", "five")  # what was undone there cannot be redone any more
    with pytest.raises(BadInput, match="nothing to redo"):
        await scene.keeper.redo(first)
    with pytest.raises(Changed):  # what came later is no turn of the first one
        await scene.keeper.undo(first)


async def test_odd_names_and_no_regular_files(scene: Scene) -> None:
    name = os.fsdecode(b"caf\xe9 \n x")
    (scene.work / name).write_text("one")
    os.mkfifo(scene.work / "pipe")
    await scene.bash("t1", 'for f in caf*; do echo two > "$f"; done; rm pipe')
    await scene.keeper.undo(scene.session)
    assert (scene.work / name).read_text() == "one"


async def test_a_store_that_cannot_be_opened_says_so(tmp_path: Path) -> None:
    (tmp_path / "data").write_text("a file")
    scene = Scene(tmp_path)
    with pytest.raises(StoreFailed, match="cannot be kept"):
        await scene.edit("t", "a.txt", "1")


async def test_many_at_once(scene: Scene) -> None:
    async def one(n: int) -> None:
        session = SessionInfo(f"s{n}", "a", str(scene.work), "m/m", "full", "idle", 0, 0)
        path = [str(scene.work / f"{n}.txt")]
        await scene.keeper.before(session, "t", path)
        scene.write(f"{n}.txt", "x")
        await scene.keeper.after(session, "t", path)
        await scene.keeper.undo(session)

    await asyncio.gather(*(one(n) for n in range(20)))
    assert scene.tree() == {}


async def test_a_look_reads_what_is_there_and_no_more(tmp_path: Path) -> None:
    """It sets no memory aside for what a file may have at most, and takes one that grew whole."""
    scene = Scene(tmp_path, LookLimits(file=1 << 50))
    try:
        scene.write("a.txt", "one")
        await scene.bash("t1", "echo two > a.txt")
        await scene.keeper.undo(scene.session)
        assert scene.tree() == {"a.txt": "one"}
    finally:
        scene.keeper.close()
    path = scene.write("grew.txt", "")
    before = path.stat()
    path.write_text("x" * 200_000)
    here = os.open(scene.work, os.O_RDONLY)
    try:
        assert _content(here, "grew.txt", before, 1 << 20) == b"x" * 200_000
        assert _content(here, "grew.txt", before, 100_000) == b"x" * 100_000
    finally:
        os.close(here)


def other(scene: Scene) -> SessionInfo:
    return msgspec.structs.replace(scene.session, id="other")


async def edit_of(scene: Scene, session: SessionInfo, name: str, text: str) -> None:
    paths = [str(scene.work / name)]
    await scene.keeper.before(session, "o1", paths)
    scene.write(name, text)
    await scene.keeper.after(session, "o1", paths)


@pytest.mark.parametrize("ours", ["", "before", "after", "both"])
async def test_an_edit_of_another_session_beside_a_command_is_not_its_change(
    scene: Scene, ours: str
) -> None:
    """Whatever the command itself does to the same file, the other's work stays, or is told."""
    scene.write("a.txt", "one\n")
    scene.write("b.txt", "one\n")
    await edit_of(scene, other(scene), "a.txt", "earlier\n")  # before the command: no step of it
    await scene.keeper.before(scene.session, "t1", None)
    scene.write("b.txt", "ours\n")
    if ours in ("before", "both"):
        scene.write("a.txt", "ours first\n")
    await edit_of(scene, other(scene), "a.txt", "theirs\n")
    if ours in ("after", "both"):
        scene.write("a.txt", "ours last\n")
    await scene.keeper.after(scene.session, "t1", None)
    if ours in ("", "after"):
        await scene.keeper.undo(scene.session)
        assert scene.tree() == {"a.txt": "theirs\n", "b.txt": "one\n"}
    else:
        now = scene.tree()
        with pytest.raises(Changed, match=r"a\.txt[\s\S]*\+theirs"):
            await scene.keeper.undo(scene.session)
        assert scene.tree() == now


async def test_of_two_commands_at_once_nobody_knows_whose_a_change_is(scene: Scene) -> None:
    scene.write("a.txt", "one\n")
    scene.write("b.txt", "one\n")
    second = other(scene)
    await scene.keeper.before(scene.session, "t1", None)
    scene.write("b.txt", "ours: the other did not run yet\n")
    await scene.keeper.before(second, "o1", None)
    scene.write("a.txt", "whose?\n")
    await scene.keeper.after(scene.session, "t1", None)
    await scene.keeper.after(second, "o1", None)
    for one in (scene.session, second):
        with pytest.raises(Changed, match=r"or may have changed a\.txt[\s\S]*\+whose"):
            await scene.keeper.undo(one)
    assert scene.tree() == {"a.txt": "whose?\n", "b.txt": "ours: the other did not run yet\n"}
    scene.write("a.txt", "one\n")
    await scene.keeper.undo(scene.session)
    assert scene.tree() == {"a.txt": "one\n", "b.txt": "one\n"}


async def test_an_undo_of_a_command_says_that_it_may_have_been_somebody_else(scene: Scene) -> None:
    scene.write("a.txt", "one")
    await scene.edit("t1", "a.txt", "two")
    await scene.bash("t2", "echo three > a.txt")
    assert [one.note for one in await scene.keeper.listed(scene.session)] == ["", ""]
    assert "redo brings it back" in (await scene.keeper.undo(scene.session)).note
    assert (await scene.keeper.redo(scene.session)).note == ""
    await scene.keeper.undo(scene.session)
    assert (await scene.keeper.undo(scene.session)).note == ""  # that was an edit


async def test_files_of_the_host_are_not_opened_by_any_name(tmp_path: Path) -> None:
    """Closing a database that somebody of this process has open would end its locks."""
    work = tmp_path / "work"
    data = work / ".local" / "data"  # of a session in one's home, say
    scene = Scene(tmp_path, LookLimits(own=(str(data), str(tmp_path / "elsewhere.db"))))
    data.mkdir(parents=True)
    (data / "sessions.db").write_text("ours")
    (tmp_path / "elsewhere.db").write_text("ours, too")
    os.link(data / "sessions.db", work / "linked")
    os.link(tmp_path / "elsewhere.db", work / "far")
    os.link(scene.write("mine", "1"), work / "twin")
    await scene.bash(
        "t", "echo 2 > mine; echo 3 > .local/data/sessions.db; echo 4 > far; echo 5 > n"
    )
    changed = await scene.keeper.changed(scene.session)
    assert sorted(Path(one.path).name for one in changed) == ["mine", "n", "twin"]
    inside = Scene(data, LookLimits(own=(str(data),)))
    await inside.bash("t", "echo 6 > x")
    assert not await inside.keeper.changed(inside.session)
    scene.keeper.close()
    inside.keeper.close()


def _spoil_all(path: Path) -> None:
    path.write_bytes(b"this is no database\n" * 1_000)


def _spoil_pages(path: Path) -> None:
    size = path.stat().st_size
    with path.open("r+b") as file:
        file.seek(4096)
        file.write(os.urandom(size - 4096))


def _cut(path: Path) -> None:
    os.truncate(path, path.stat().st_size // 2)


@pytest.mark.parametrize("damage", [_spoil_all, _spoil_pages, _cut])
async def test_damaged_checkpoints_are_moved_aside_and_begun_anew(scene: Scene, damage) -> None:
    scene.write("a.txt", "one")
    await scene.edit("t1", "a.txt", "two")
    scene.keeper.close()
    damage(scene.path)
    try:  # what meets the damage may fail, once
        await scene.edit("t2", "a.txt", "three")
    except StoreFailed as fault:
        assert "moved to" in fault.message
    aside = [one for one in scene.path.parent.iterdir() if ".corrupt-" in one.name]
    assert len(aside) == 1
    await scene.edit("t3", "a.txt", "four")
    before = scene.work / "a.txt"
    assert before.read_text() == "four"
    await scene.keeper.undo(scene.session, "t3")
    assert before.read_text() in ("two", "three")
    await scene.keeper.forget("s")


async def test_damage_met_while_others_work_moves_the_file_once(scene: Scene) -> None:
    scene.write("a.txt", "one")
    await scene.edit("t1", "a.txt", "two")
    other = Keeper(str(scene.path))
    assert len(await other.listed(scene.session)) == 1
    scene.keeper.close()
    other.close()
    _spoil_pages(scene.path)
    keepers = [Keeper(str(scene.path)) for _ in range(4)]
    for _ in range(3):
        asked = (one.listed(scene.session) for one in keepers)
        found = await asyncio.gather(*asked, return_exceptions=True)
    assert found == [[], [], [], []]
    for one in keepers:
        one.close()


async def test_a_file_that_was_taken_away_is_begun_anew(scene: Scene) -> None:
    scene.write("a.txt", "one")
    await scene.edit("t1", "a.txt", "two")
    scene.path.unlink()
    await scene.edit("t2", "a.txt", "three")
    scene.keeper.close()
    again = Keeper(str(scene.path))  # it was written where the next process finds it
    assert [one.turn for one in await again.listed(scene.session)] == ["t2"]
    again.close()


@pytest.mark.parametrize("data", [b"", b"rubbish", zlib.compress(b"of another file")])
async def test_a_damaged_content_is_never_put_back(scene: Scene, data: bytes) -> None:
    scene.write("a.txt", "one")
    await scene.edit("t1", "a.txt", "two")
    scene.keeper.close()
    with sqlite3.connect(scene.path) as connection:
        connection.execute("UPDATE blobs SET data = ?", (data,))
    connection.close()
    done = await scene.keeper.undo(scene.session)
    assert scene.tree() == {"a.txt": "two"}
    assert done.files == () and "was not kept: a.txt" in done.note
