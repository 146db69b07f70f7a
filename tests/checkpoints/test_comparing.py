"""The whole session as a diff."""

from pathlib import Path

import pytest
from tests.checkpoints.test_keeper import Scene

from dragoman.checkpoints import comparing
from dragoman.engine.faults import BadInput


@pytest.fixture
def scene(tmp_path: Path):
    made = Scene(tmp_path)
    yield made
    made.keeper.close()


async def test_a_session_is_one_diff_over_all_its_turns(scene: Scene) -> None:
    scene.write("kept.txt", "one\ntwo\nthree\n")
    scene.write("gone.txt", "bye")
    await scene.edit("t1", "kept.txt", "one\n2\nthree\n")
    await scene.edit("t2", "kept.txt", "one\n2\nthree\nfour")
    await scene.edit("t2", "new.txt", "hello\n")
    await scene.edit("t3", "gone.txt", None)
    await scene.edit("t4", "passing.txt", "x")
    await scene.edit("t5", "passing.txt", None)
    found = {one.path: one for one in await scene.keeper.changed(scene.session)}
    assert sorted(found) == ["gone.txt", "kept.txt", "new.txt"]
    kept = found["kept.txt"]
    assert (kept.fate, kept.added, kept.removed) == ("changed", 2, 1)
    assert "-two\n+2\n" in kept.diff and "+four\n\\ No newline" in kept.diff
    assert found["new.txt"].fate == "made" and found["new.txt"].diff.endswith("+hello\n")
    assert found["gone.txt"].fate == "removed"
    one = await scene.keeper.changed(scene.session, "t1")
    assert [file.path for file in one] == ["kept.txt"] and "four" not in one[0].diff
    with pytest.raises(BadInput):
        await scene.keeper.changed(scene.session, "t9")
    await scene.keeper.undo(scene.session, "t2")
    left = await scene.keeper.changed(scene.session)
    assert [file.path for file in left] == ["kept.txt"] and left[0].added == 1


async def test_what_cannot_be_shown_is_said(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    scene.work.joinpath("picture").write_bytes(b"\0\1\2")
    await scene.bash("t1", "printf 'a\\0b' > picture; chmod 700 run 2>/dev/null || : > run")
    await scene.bash("t2", "chmod 711 run; seq 30 > many")
    monkeypatch.setattr(comparing, "_LINES", 20)
    found = {one.path: one for one in await scene.keeper.changed(scene.session)}
    assert found["picture"].note == "Not a text."
    assert found["many"].note == "Too many lines to compare."
    only = {one.path: one for one in await scene.keeper.changed(scene.session, "t2")}
    assert "became 711" in only["run"].note
