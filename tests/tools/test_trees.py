"""What rules of .gitignore files mean where programs differ, and where a walk comes."""

import os
from pathlib import Path

import pytest

from dragoman.tools.trees import (
    Above,
    IgnoreRules,
    Verdicts,
    alternatives,
    rules_above,
    rules_of,
    walk,
)


@pytest.mark.parametrize(
    ("rules", "path", "left_out"),
    [
        ("{a,b}.log", "x/b.log", True),  # as rg reads it
        ("{a,b", "{a,b", True),
        ("*.log\t", "a.log", True),
        ("name\\ ", "name ", True),
        ("?", "é", None),  # two bytes
        ("??", "é", True),
        ("é*", "été", True),
        ("é*", "éa", True),
        ("a\u2028b", "a\u2028b", True),  # no end of a line
        ("build/", "src/build/", True),
        ("build/", "src/build", None),
        ("/build", "src/build/", None),
        ("*.log\n!keep.log", "keep.log", False),
        ("!keep.log\n*.log", "keep.log", True),
        ("src/*.c\n*.h", "src/a.c", True),
        ("src/*.c\n*.h", "src/deep/a.c", None),
        ("*" * 50 + "b", "a" * 200, None),
    ],
)
def test_rules(rules: str, path: str, left_out: bool | None) -> None:
    assert IgnoreRules(rules, "").says(path) is left_out


def test_too_many_alternatives_are_none() -> None:
    assert alternatives("{a,b}" * 10) == []
    assert IgnoreRules("{a,b}" * 10, "").says("ababababab") is None


def test_single_paths_are_judged_as_a_walk_does(tmp_path: Path) -> None:
    for name, text in {
        ".git/HEAD": "",
        ".gitignore": "*.log\nout/\n",
        "a.log": "",
        "out/x": "",
        "inner/.git/HEAD": "",
        "inner/.gitignore": "mine\n",
        "inner/b.log": "",
        "inner/mine": "",
        "node_modules/m": "",
        "deep/er/c.log": "",
        "deep/er/c.txt": "",
    }.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    top = os.open(tmp_path, os.O_RDONLY)
    try:
        above = rules_above(str(tmp_path))
        assert above == Above((), True)
        found = {one.path for one in walk(top, above=above) if not one.is_dir}
        verdicts = Verdicts(top, above)
        every = {one.path for one in walk(top, ignored=True) if not one.is_dir}
        assert {path for path in every if verdicts.reached(path)} == found
        assert found == {".gitignore", "inner/.gitignore", "inner/b.log", "deep/er/c.txt"}
        assert verdicts.reached("x/" * 3000 + "y")
    finally:
        os.close(top)


def test_told_where_rules_are_a_verdict_is_the_same(tmp_path: Path) -> None:
    for name, text in {
        ".git/HEAD": "",
        ".gitignore": "*.log\n[\\]x]\n.gitignore\n",
        "x": "",
        "a.log": "",
        "sub/.gitignore": "!a.log\n/only\n",
        "sub/a.log": "",
        "sub/only": "",
        "sub/deep/only": "",
        "inner/.git/HEAD": "",
        "inner/deep/a.log": "",
        "inner/deep/x": "",
    }.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    top = os.open(tmp_path, os.O_RDONLY)
    try:
        above = rules_above(str(tmp_path))
        every = {one.path for one in walk(top, ignored=True) if not one.is_dir}
        looked, told = Verdicts(top, above), Verdicts(top, above, {"", "sub/"})
        found = {path for path in every if told.reached(path)}
        assert found == {path for path in every if looked.reached(path)}
        assert found == {"sub/a.log", "sub/deep/only", "inner/deep/a.log", "inner/deep/x"}
        named = {one.path for one in walk(top, named="a.log".__eq__) if not one.is_dir}
        assert named == {"sub/a.log", "inner/deep/a.log"}
    finally:
        os.close(top)


def test_a_directory_where_rules_are_looked_for_keeps_no_descriptor(tmp_path: Path) -> None:
    (tmp_path / ".gitignore").mkdir()
    top = os.open(tmp_path, os.O_RDONLY | os.O_DIRECTORY)
    before = len(os.listdir("/dev/fd"))
    assert [rules_of(top, "") for _ in range(3)] == [None] * 3
    assert len(os.listdir("/dev/fd")) == before
    os.close(top)
