"""Every test belongs to a lane, and what is left out of one is left out for a reason."""

import subprocess
import sys
from pathlib import Path

import pytest
from tests import lane


def test_every_folder_is_in_one_list() -> None:
    folders = {path.name for path in lane.TESTS.iterdir() if path.is_dir()} - {"__pycache__"}
    assert sorted([*lane.AS_USER, *lane.ONCE]) == sorted(folders)


def test_who_starts_processes_is_not_spared() -> None:
    spared = {str(path.relative_to(lane.TESTS)) for path in lane.spared()}
    assert {"engine/test_turns.py", "wire/test_lines.py", "test_imports.py"} <= spared
    assert not {"dialects/pi/test_installed.py", "test_mounts.py", "tui/test_clipboard.py"} & spared
    others = spared - {*lane.ONCE_LONG, *lane.ONCE_SHORT}
    assert not {path.partition("/")[0] for path in others}.intersection(lane.AS_USER)


def test_no_file_is_left_out_by_both_root_and_user() -> None:
    spared = {str(path.relative_to(lane.TESTS)) for path in lane.spared()}
    assert not {path.partition("/")[0] for path in spared}.intersection(lane.BY_USER)
    for name in lane.BY_USER:  # what only root can do would run nowhere
        for path in (lane.TESTS / name).rglob("test_*.py"):
            assert not lane.has(path, "root"), path


def test_what_is_tried_as_nobody_runs_as_a_user_as_well() -> None:
    spared = {str(path.relative_to(lane.TESTS)) for path in lane.spared()}
    for name in lane.AS_NOBODY:
        folder = name.partition("/")[0]
        assert (lane.TESTS / name).is_file() and folder in lane.BOTH
        for path in (lane.TESTS / folder).glob("test_*.py"):
            if path.name in (lane.TESTS / name).read_text():
                assert f"{folder}/{path.name}" not in spared, path


def test_what_is_long_is_there() -> None:
    for name in (*lane.LATER, *lane.LONGEST, *lane.ONCE_LONG, *lane.ONCE_SHORT):
        assert (lane.TESTS / name).is_file(), name
    for name in (*lane.ONCE_LONG, *lane.ONCE_SHORT):
        assert name.partition("/")[0] in lane.BOTH, name


def test_what_is_left_to_ci_runs_when_it_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(lane.TESTS.parent)
    path = lane.TESTS / "daemon" / "test_load.py"
    assert lane.is_later(path, ["tests"]) and lane.is_later(path, [str(lane.TESTS)])
    assert not lane.is_later(path, ["tests/daemon"]) and not lane.is_later(path, [str(path)])
    assert not lane.is_later(path.with_name("test_life.py"), ["tests"])
    for folder in (*lane.AS_USER, *lane.ONCE):  # of each something runs
        files = [
            str(one.relative_to(lane.TESTS)) for one in (lane.TESTS / folder).glob("test_*.py")
        ]
        assert not files or set(files) - set(lane.LATER) or folder == "faults", folder


def test_what_takes_long_begins_first() -> None:
    longest, slow, short = (
        lane.TESTS / name for name in (lane.LONGEST[0], "cross/test_soak.py", "wire/test_lines.py")
    )
    found = sorted((short, slow, longest), key=lambda path: lane.begins(path, {slow}))
    assert found == [longest, slow, short]


@pytest.mark.parametrize(
    ("text", "mark", "found"),
    [
        ("@pytest.mark.alone\n", "alone", True),
        ("@pytest.mark.alonely\n", "alone", False),
        ("# runs alone\n", "alone", False),
        ("def test_x(home: Home) -> None: ...\n", "terminal", True),
        ("def test_x(homes: list) -> None: ...\n", "terminal", False),
        ("pytestmark = pytest.mark.terminal\n", "terminal", True),
        ("@promised(0.1)\n", "timed", True),
        ("@judging\ndef test_x(judged): ...\n", "timed", True),
        ("# as promised (within a second)\n", "timed", False),
    ],
)
def test_marks_are_known_by_their_word(tmp_path: Path, text: str, mark: str, found: bool) -> None:
    path = tmp_path / "test_x.py"
    path.write_text(text)
    assert lane.has(path, mark) is found


def test_folders_are_named_as_on_the_command_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(lane.TESTS.parent)
    assert lane.is_below(lane.TESTS / "wire" / "test_lines.py", ["tests/wire"])
    assert not lane.is_below(lane.TESTS / "wired" / "test_lines.py", ["tests/wire"])


TIMED = """
import pytest
from tests.timed import judging, promised

@promised(0.5)
def test_soon(within): pass

@judging
def test_rate(judged): pass

@pytest.mark.timed
@pytest.mark.slow
def test_measure(): pass

def test_other(): pass
"""


@pytest.mark.parametrize(
    ("words", "code", "names"),
    [
        ((), 0, ["test_other", "test_rate[works]", "test_soon[ends]"]),
        (("--timed",), 0, ["test_measure", "test_rate[figures]", "test_soon[in 0.5 s]"]),
        (("--timed", "-k", "other"), pytest.ExitCode.NO_TESTS_COLLECTED, []),
    ],
)
def test_what_judges_time_runs_when_it_is_asked_for_and_only_then(
    tmp_path: Path, words: tuple[str, ...], code: int, names: list[str]
) -> None:
    path = tmp_path / "test_x.py"
    path.write_text(TIMED)
    command = [sys.executable, "-m", "pytest", "-c", "pyproject.toml", "-p", "tests.conftest"]
    more = ["-q", "--collect-only", "-p", "no:cacheprovider"]
    done = subprocess.run(
        [*command, *more, *words, str(path)], cwd=lane.TESTS.parent, capture_output=True, text=True,
        timeout=200,
    )  # fmt: skip
    found = [row.partition("::")[2] for row in done.stdout.splitlines() if "::" in row]
    assert (done.returncode, sorted(found)) == (code, names), done.stdout + done.stderr
