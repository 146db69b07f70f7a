"""Rule sets that are used again: never for other files than they were made for, never by others."""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from dragoman.policy.paths import Boundary
from dragoman.sandbox import ruleset
from dragoman.sandbox.landlock import Landlock, abi
from dragoman.sandbox.launch import Launch
from dragoman.sandbox.reach import Rule

pytestmark = pytest.mark.skipif(abi() == 0, reason="no Landlock here")
FILES = ruleset.Handled(ruleset.ALL[1], size=8)


@pytest.fixture(autouse=True)
def made(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[int]]:
    """How many rules each set was made of, since the test began."""
    found: list[int] = []
    make = ruleset.make

    def counted(rules: list[Rule], handled: ruleset.Handled) -> int:
        found.append(len(rules))
        return make(rules, handled)

    monkeypatch.setattr(ruleset, "make", counted)
    monkeypatch.setattr(ruleset, "_SETTLED", 0)  # what the test has just made counts as old
    ruleset._sets.clear()
    yield found
    ruleset._sets.clear()


def take(rules: list[Rule]) -> None:
    os.close(ruleset.ready(rules, FILES))


@pytest.fixture
def rules(tmp_path: Path) -> list[Rule]:
    (tmp_path / "apart").mkdir()
    (tmp_path / "apart/file").write_text("x")
    (tmp_path / "whole").mkdir()
    (tmp_path / "apart/link").symlink_to(tmp_path / "whole")
    apart = [Rule(str(tmp_path / "apart" / name), "read") for name in ("file", "link")]
    return [
        Rule(str(tmp_path / "apart"), "list"), *apart, Rule(str(tmp_path / "whole"), "write"),
    ]  # fmt: skip


def test_a_set_is_used_again(rules: list[Rule], made: list[int]) -> None:
    for _ in range(3):
        take(rules)
    assert made == [4]
    take(rules[:2])
    os.close(ruleset.ready(rules, FILES._replace(files=FILES.files & ~ruleset.EXECUTE)))
    assert made == [4, 2, 4]


@pytest.mark.parametrize("name", ["apart/file", "whole", "apart"])
def test_a_name_that_leads_elsewhere_makes_it_anew(
    tmp_path: Path, rules: list[Rule], made: list[int], name: str
) -> None:
    take(rules)
    it = tmp_path / name
    it.rename(tmp_path / "old")
    if name == "apart/file":
        it.write_text("another")
    else:
        it.mkdir()
    take(rules)
    assert len(made) == 2


def test_a_set_grows_old(
    rules: list[Rule], made: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    take(rules)
    monkeypatch.setattr(ruleset, "_USES", 2)
    for _ in range(3):
        take(rules)
    assert len(made) == 2
    monkeypatch.setattr(ruleset, "_SECONDS", 0.0)
    take(rules)
    assert len(made) == 3


def test_what_has_just_changed_is_not_believed(
    rules: list[Rule], made: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ruleset, "_SETTLED", 3600 * 10**9)
    take(rules)
    take(rules)
    assert len(made) == 2 and not ruleset._sets


def test_only_some_are_kept(tmp_path: Path, made: list[int]) -> None:
    before = len(os.listdir("/proc/self/fd"))
    for number in range(20):
        folder = tmp_path / str(number)
        folder.mkdir()
        take([Rule(str(folder), "read")])
    assert len(ruleset._sets) == 8
    assert len(os.listdir("/proc/self/fd")) <= before + 8
    assert len(made) == 20


def test_a_command_has_no_hand_on_the_walls_of_the_next(tmp_path: Path, made: list[int]) -> None:
    """With the descriptor it could add rules, which every later command would have as well."""
    env = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path)}
    confine, walls = Landlock(), Boundary(str(tmp_path))
    for _ in range(2):
        launch = Launch(("/bin/ls", "-l", "/proc/self/fd"), str(tmp_path), env)
        launch = confine.confine(launch, None, walls)  # type: ignore[arg-type]
        assert launch.done is not None
        said = subprocess.run(
            launch.argv, cwd=launch.cwd, env=dict(launch.env), preexec_fn=launch.preexec,
            pass_fds=launch.keep, capture_output=True, text=True, timeout=60,
        )  # fmt: skip
        launch.done()
        assert "/proc/" in said.stdout, said
        assert "landlock" not in said.stdout, said.stdout
    assert len(made) == 1  # the second had the same set
