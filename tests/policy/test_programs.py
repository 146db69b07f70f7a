"""Programs that only look, tried for real: they leave the folder that they are called in alone."""

import os
import random
import shutil
import subprocess
from pathlib import Path

import pytest

from dragoman.policy.commands import assess
from dragoman.policy.programs import HIDING, RUNNERS, Shape, fits, shapes

CALLS = int(os.environ.get("CALLS", "250"))
SEED = int(os.environ.get("SEED", "20261117"))
WORDS = ["in", "in2", "out", "folder", "x", "10", "1"]
STRANGE = ["--", "-", "+1", "+x", "-1", "@in", "-o", "-w", "--output=out"]


def call(rng: random.Random, name: str) -> list[str]:
    """A program with options of its table, put together so that readers may disagree."""
    shape = shapes()[name]
    letters = [*sorted(shape.flags), *sorted(shape.valued) * 3] or ["x"]
    longs = sorted(shape.longs | shape.long_valued | shape.long_maybe)
    words = [name]
    for _ in range(rng.randint(1, 5)):
        kind = rng.random()
        if kind < 0.5:
            option = "-" + "".join(rng.choices(letters, k=rng.randint(1, 3)))
            words.append(option + (rng.choice("oOwWrcx1") if rng.random() < 0.4 else ""))
        elif kind < 0.6 and longs:
            option = rng.choice(longs)
            valued = option in shape.long_valued or option in shape.long_maybe
            words.append(f"{option}={rng.choice(WORDS)}" if valued else option)
        else:
            words.append(rng.choice(STRANGE if kind < 0.7 else WORDS))
    return words


def everything(folder: Path) -> dict[str, bytes]:
    return {str(one): one.read_bytes() for one in folder.rglob("*") if one.is_file()}


def test_programs_that_only_look_leave_everything_as_it_is(tmp_path: Path) -> None:
    """No call that is low makes or changes a file, however its options are put together."""
    found = [name for name in shapes() if not name.startswith("git-") and shutil.which(name)]
    names = sorted(set(found) - {"tail", "sleep", "free"})  # which may go on for ever
    (tmp_path / "folder").mkdir()
    for name, text in (("in", "b\na\n1 2\n"), ("in2", "c\n"), ("folder/y", "z\n")):
        (tmp_path / name).write_text(text)
    before = everything(tmp_path)
    rng = random.Random(SEED)
    tried = 0
    while tried < CALLS:
        # Those that read their options by themselves are tried as often as all others together.
        own = [name for name in names if shapes()[name].alone]
        words = call(rng, rng.choice(own if own and rng.random() < 0.5 else names))
        command = " ".join(words)
        if assess(command).kind != "low":
            continue
        tried += 1
        subprocess.run(
            words, cwd=tmp_path, stdin=subprocess.DEVNULL, capture_output=True, timeout=60,
            check=False,
        )  # fmt: skip
        assert everything(tmp_path) == before, command


@pytest.mark.skipif(not shutil.which("xxd"), reason="the program that reads options its own way")
def test_a_letter_behind_another_is_no_option_where_options_stand_alone(tmp_path: Path) -> None:
    (tmp_path / "in").write_text("a")
    subprocess.run(["xxd", "-bc", "in", "out"], cwd=tmp_path, capture_output=True, check=False)
    assert (tmp_path / "out").exists(), "it writes its second file, and never sees the c"
    assert assess("xxd -bc in out").kind == "unknown"
    assert assess("xxd -b -c 4 in").kind == "low"


def test_a_count_is_not_put_where_programs_are_looked_for(tmp_path: Path) -> None:
    """bash's printf sets the variable that %n names, behind every modifier that it knows."""
    (tmp_path / "0").mkdir()
    (tmp_path / "0" / "ls").write_text("#!/bin/sh\necho found\n")
    (tmp_path / "0" / "ls").chmod(0o755)
    bash = shutil.which("bash")
    assert bash
    sets = []
    for modifier in ("", "h", "j", "l", "L", "t", "z", "ll", "jL", "LL", "q", "5", "*", "-", ".3"):
        command = f"printf '%{modifier}n' PATH; ls"
        ran = subprocess.run(
            [bash, "--norc", "-c", command], cwd=tmp_path, capture_output=True, check=False
        )
        if b"found" in ran.stdout:
            sets.append(modifier)
            assert assess(command).kind == "unknown", command
    assert {"", "L", "jL"} <= set(sets)


def test_no_option_passes_for_the_value_of_another() -> None:
    """Whether an option must have a value is the program's business, so none is taken for one."""
    for name, shape in shapes().items():
        valued = {*(f"-{letter}" for letter in shape.valued), *shape.long_valued}
        hiding = ("--output=out", "-o", "--pre=./x", "--ext-diff")
        others = [word for word in hiding if not fits(shape, (word, "x"))]
        for option in sorted(valued | shape.long_maybe):
            for hidden in others:
                command = f"{name.replace('-', ' ', 1)} {option} {hidden} in"
                assert assess(command).kind != "low", command
    assert assess("head -n -5 in").kind == "low"
    assert assess("cut -d - -f 1 in").kind == "low"


@pytest.mark.parametrize("option", ["--pretty", "-U", "--unified", "--format"])
def test_git_has_options_with_and_without_a_value(tmp_path: Path, option: str) -> None:
    person = ("-c", "user.name=x", "-c", "user.email=x@example.org")
    commit = ("commit", "-q", "--allow-empty", "-m", "x")
    for verb in (("init", "-q"), (*person, *commit), ("log", option, "--output=out")):
        subprocess.run(["git", *verb], cwd=tmp_path, capture_output=True, check=False)
    assert (tmp_path / "out").exists(), "it is an option to git, not the value of another"
    assert assess(f"git log {option} --output=out").kind == "unknown"


def test_options_that_stand_alone() -> None:
    shape = Shape(1, frozenset("ab"), frozenset("c"), frozenset({"--x"}), frozenset({"--y"}),
                  frozenset(), False, True)  # fmt: skip
    good = ["", "f", "-a f", "-a -b f", "-c 1 f", "--x f", "--y=1 f"]
    bad = ["-ab f", "-c", "-c1 f", "f -a", "f +a", "-- f", "--y f", "f g", "-", "--x=1 f", "-d"]
    assert all(fits(shape, tuple(words.split())) for words in good)
    assert not any(fits(shape, tuple(words.split())) for words in bad)


def test_every_table_says_something_of_its_own() -> None:
    assert not RUNNERS & set(HIDING), "a runner is unknown whatever its options are"
