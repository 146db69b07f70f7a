"""The mark beside a database file: who has it open, and how the last one left."""

import fcntl
import multiprocessing
import os
from pathlib import Path

import pytest

from dragoman.store import file
from dragoman.store.file import Claim


def test_the_last_one_to_leave_takes_the_mark_away(tmp_path: Path) -> None:
    path = str(tmp_path / "s.db")
    first = Claim(path)
    assert first.alone and not first.unclean
    first.share()
    second = Claim(path)
    assert not second.alone
    first.release(clean=True)
    assert os.listdir(tmp_path) == ["s.db.lock"]
    second.release(clean=True)
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("mark", [file.OPEN, file.DAMAGED])
def test_who_crashed_or_met_damage_leaves_the_mark(tmp_path: Path, mark: bytes) -> None:
    path = str(tmp_path / "s.db")
    first = Claim(path)
    first.share()
    if mark == file.DAMAGED:
        first.condemn()
    first.release(clean=mark == file.DAMAGED)
    assert (tmp_path / "s.db.lock").read_bytes() == mark
    second = Claim(path)
    assert second.unclean and second.suspect == (mark == file.DAMAGED)
    second.release(clean=False)


def test_a_link_is_no_mark(tmp_path: Path) -> None:
    (tmp_path / "s.db.lock").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(OSError, match=r"symbolic links|Too many levels"):
        Claim(str(tmp_path / "s.db"))
    assert not (tmp_path / "elsewhere").exists()


def test_who_comes_and_leaves_while_the_lock_is_shared_leaves_nobody_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As where a lock is given up before it is taken anew."""
    path = str(tmp_path / "s.db")
    first = Claim(path)
    lock = fcntl.flock

    def in_two_steps(fd: int, how: int) -> None:
        monkeypatch.setattr(fcntl, "flock", lock)
        lock(fd, fcntl.LOCK_UN)
        between = Claim(path)
        between.share()
        between.release(clean=True)
        lock(fd, how)

    monkeypatch.setattr(fcntl, "flock", in_two_steps)
    first.share()
    second = Claim(path)
    assert not second.alone
    second.release(clean=True)
    assert (tmp_path / "s.db.lock").read_bytes() == file.OPEN
    first.release(clean=True)
    assert os.listdir(tmp_path) == []


def _come_and_go(path: str, times: int) -> None:
    """Whoever is alone must be so: it writes its name and reads nobody else's."""
    witness = f"{path}.alone"
    for _ in range(times):
        claim = Claim(path)
        if claim.alone:
            with open(witness, "x"):
                os.unlink(witness)
            claim.share()
        claim.release(clean=True)


def test_two_are_never_alone_while_the_mark_comes_and_goes(tmp_path: Path) -> None:
    path = str(tmp_path / "s.db")
    context = multiprocessing.get_context("fork")
    several = [context.Process(target=_come_and_go, args=(path, 300)) for _ in range(4)]
    for one in several:
        one.start()
    for one in several:
        one.join(30)
    assert [one.exitcode for one in several] == [0] * 4
    assert os.listdir(tmp_path) == []
