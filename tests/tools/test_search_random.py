"""Random trees with random rules: with rg and without it the same is found: what git says.

Rules that rg and git read differently (braces, classes of POSIX, stars like a**) are left to
`test_trees.py`.
"""

import os
import random
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from tests.tools.making import said

from dragoman.tools import ripgrep
from dragoman.tools.trees import Verdicts, rules_above, walk

_NAMES = (
    "a", "b", "ab", "a.py", "b.log", "x.o", "build", "deep", "foo bar", "#h", "!n", "[z]", "é",
    "back\\s", "A.PY", ".hid", "lib", "node_modules", "日本", "a'b", "-v",
)  # fmt: skip
_RULES = (
    "a", "b", "*.py", "*.log", "build", "deep", "?", "*", "**", "[ab]", "[!ab]", "[a-z]", "ab*",
    "*b", "x.[oa]", "foo bar", "\\#h", "\\!n", "[z]", "\\[z\\]", "é", ".*", "[^a]", "lib", "*a*b*",
    "[]-]", "**b", "\\a", "[\\]a]", "[a-]", "日*", "a'b",
)  # fmt: skip
_TEXTS = (
    b"needle\n", b"a needle, NEEDLE\r\nsecond\r\n", b"nothing\n", b"", b"need\0le needle\n",
    "n\xe9edle needle\n".encode(), b"caf\xe9 needle", b"x" * 70_000 + b"\nneedle\n",
    b"\n\n  needle\n\tneedle()\n", "\u212aelvin needle \ufffd\n".encode(), b"needle\rneedle",
    b"a\xe9needle\xe2\x82x b\x1cneedle", "needle\u00b2 x--&&y".encode(), b"<needle>[",
)  # fmt: skip
_PATTERNS = (
    "needle", "^needle$", r"\bneedle\b", r"need(le|y)", r"n.edle", "NEEDLE", r"(?i)needle",
    r"needle\(\)", r"^\s*needle", r"(?<=a )needle", r"[^a]needle", "é", r"\x6eeedle", "K", "x{3}",
    r"(e)\1", r"needle\s*$", r"\Aneedle", r"needle\Z", "", r"e++d", "needle|second", r"\ufffd", "$",
    r"a.needle.x", r"needle\w x", r"b\sneedle", r"a[^b]needle\W", r"\<needle",
    r"b[\s]n", r"(?x) a . needle", r"needle[]>]", r"needle\S", "a\0b", r"y{1, 2}|needle>",
)  # fmt: skip
_GLOBS = ("", "*.py", "**/*.py", "*.{py,log}", "*/a", "a*", "**/a", "[ab]*", "?", "*/**", "*.PY")


def _rule(chance: random.Random) -> str:
    text = "/".join(chance.choices(_RULES, k=chance.choice((1, 1, 1, 2, 2, 3))))
    text = ("/" if chance.random() < 0.3 else "") + text + ("/" if chance.random() < 0.3 else "")
    return ("!" if chance.random() < 0.25 else "") + text + ("  " if chance.random() < 0.1 else "")


def plant(top: Path, chance: random.Random) -> None:
    folders = [top]
    for _ in range(chance.randint(2, 8)):
        folder = chance.choice(folders) / chance.choice(_NAMES)
        if not folder.exists():
            folder.mkdir()
            folders.append(folder)
    for number in range(25):
        file = chance.choice(folders) / chance.choice(_NAMES)
        if not file.exists():
            file.write_bytes(chance.choice(_TEXTS))
            os.utime(file, (10**9, 10**9 + number % 20))
    for folder in chance.sample(folders, min(len(folders), chance.randint(1, 3))):
        lines = [_rule(chance) + chance.choice(("\n", "\r\n")) for _ in range(chance.randint(1, 5))]
        (folder / ".gitignore").write_bytes("".join(lines).encode())


@pytest.fixture(params=range(6))
def tree(request: pytest.FixtureRequest, work: Path) -> tuple[Path, random.Random]:
    chance = random.Random(request.param)
    plant(work, chance)
    return work, chance


@pytest.mark.parametrize("seed", range(4))
def test_a_walk_comes_where_git_comes(work: Path, seed: int) -> None:
    if shutil.which("git") is None:
        pytest.skip("git is not here")
    for number in range(12):
        top = work / str(number)
        top.mkdir()
        plant(top, random.Random(seed * 100 + number))
        for folder in top.rglob("node_modules"):  # left out by us, whatever rules say
            shutil.rmtree(folder) if folder.is_dir() else folder.unlink()
        subprocess.run(["git", "init", "-q", top], check=True)
        words = ["ls-files", "-coz", "--exclude-per-directory=.gitignore"]
        said = subprocess.run(["git", "-C", top, *words], check=True, capture_output=True).stdout
        fd = os.open(top, os.O_RDONLY)
        try:
            above = rules_above(str(top))
            found = {one.path for one in walk(fd, above=above) if not one.is_dir}
            every = {one.path for one in walk(fd, ignored=True) if not one.is_dir}
            verdicts = Verdicts(fd, above)
            assert {path for path in every if verdicts.reached(path)} == found
        finally:
            os.close(fd)
        assert found == {os.fsdecode(name) for name in said.split(b"\0") if name}


async def test_both_ways_find_the_same(
    use: Any, tree: tuple[Path, random.Random], monkeypatch: pytest.MonkeyPatch
) -> None:
    work, chance = tree
    rg = ripgrep.program()
    if not rg:
        pytest.skip("rg is not here (make setup-tools)")
    if chance.random() < 0.5:
        (work / ".git").mkdir()
    for folder in sorted(one for one in work.iterdir() if one.is_dir()):
        if folder.name != ".git" and chance.random() < 0.3:
            (folder / ".git").mkdir()  # a repository within, where other rules end
    for _ in range(10):
        asked = {
            "pattern": chance.choice(_PATTERNS) or "e",
            "glob": chance.choice(_GLOBS),
            "ignore_case": chance.random() < 0.3,
            "ignored": chance.random() < 0.2,
            "context": chance.choice((0, 0, 1)),
            "limit": chance.choice((2, 200)),
        }
        glob = {"pattern": chance.choice(_GLOBS) or "**", "ignored": chance.random() < 0.2}
        shown = []
        for program in (rg, ""):
            monkeypatch.setattr(ripgrep, "program", lambda program=program: program)
            shown.append((said(await use("grep", **asked)), said(await use("glob", **glob))))
        assert shown[0] == shown[1], (asked, glob)


async def test_a_pipe_of_rules_keeps_nobody_waiting_twice(
    use: Any, work: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if not ripgrep.program():
        pytest.skip("rg is not here (make setup-tools)")
    monkeypatch.setattr("dragoman.tools.glob._SECONDS", 0.3)
    (work / "deep").mkdir()
    (work / "deep/a.py").touch()
    os.mkfifo(work / ".gitignore")
    assert said(await use("glob", pattern="**/*.py")) == "deep/a.py"
    assert len(ripgrep._stuck) >= 1

    async def never(*words: Any, **more: Any) -> None:
        raise AssertionError("rg was asked again")

    monkeypatch.setattr("asyncio.create_subprocess_exec", never)
    assert said(await use("glob", pattern="**/*.py")) == "deep/a.py"
