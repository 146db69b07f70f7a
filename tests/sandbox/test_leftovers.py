"""What a command left in the background is ended and told, and nothing else is called so."""

import asyncio
import shutil
from pathlib import Path

import pytest
from tests.sandbox.test_veil import Env

from dragoman.engine.content import text_of
from dragoman.policy.paths import Boundary
from dragoman.sandbox.choose import choose
from dragoman.sandbox.landlock import abi
from dragoman.tools.registry import Registry

BACKENDS = [
    pytest.param(
        "bubblewrap",
        marks=pytest.mark.skipif(shutil.which("bwrap") is None, reason="bubblewrap is missing"),
    ),
    pytest.param(
        "landlock",
        marks=pytest.mark.skipif(not abi(), reason="this kernel has no Landlock"),
    ),
]
NOTHING = [
    "echo hi",
    "true & wait",
    "echo hi | cat | head -1",
    "(exit 3)",
    "sleep 600 & kill -9 $! ; wait $!",
    "exec echo hi",
]


async def run(work: Path, backend: str, command: str) -> str:
    walls = Boundary(str(work))
    confine = choose(backend)
    registry = Registry(lambda env: walls, confine=lambda: confine, extra_env={"TMPDIR": str(work)})
    tool = registry.toolbox().find("bash")
    assert tool is not None
    return text_of((await tool.run({"command": command}, Env(work))).content)  # type: ignore[arg-type]


@pytest.mark.parametrize("backend", BACKENDS)
async def test_who_leaves_nothing_is_not_said_to(tmp_path: Path, backend: str) -> None:
    """Bubblewrap's own processes end after it: about every second command was said to leave one."""
    for _ in range(4):
        said = await asyncio.gather(*(run(tmp_path, backend, command) for command in NOTHING))
        assert not [one for one in said if "[ended" in one]


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize(
    ("command", "count"),
    [
        ("sleep 600 &", "1 background process"),
        ("nohup sleep 600 >/dev/null 2>&1 & exit 0", "1 background process"),
        ("setsid sleep 600 >/dev/null 2>&1 & sleep 600 &", "2 background processes"),
        (
            "mkfifo up; (setsid sh -c 'trap \"\" TERM; sleep 600 & echo > up; wait' &); read <up",
            "2 background processes",
        ),
        ("env -i sleep 600 & kill -9 $$", "1 background process"),
    ],
)
async def test_what_is_left_is_ended_and_told(
    tmp_path: Path, backend: str, command: str, count: str
) -> None:
    said = await run(tmp_path, backend, command)
    assert f"[ended {count}]" in said


@pytest.mark.skipif(shutil.which("bwrap") is None, reason="bubblewrap is missing")
async def test_the_shell_that_counts_changes_nothing_for_the_command(tmp_path: Path) -> None:
    """How it ends, what it says, its depth of shells and its descriptors are as without."""
    seen = {}
    for backend in ("none", "bubblewrap"):
        seen[backend] = [
            (await run(tmp_path, backend, command)).rpartition("  Took")[0]
            for command in (
                "kill -SEGV $$",
                "kill -9 $$",
                "sh -c 'kill -TERM $$'; echo $?",
                "exit 7",
                "echo $SHLVL $0 $#",
                "echo out; echo err >&2",
                "printf '%s' \"a  b\" 'c\"d' $'e\\'f'",
                "ls /proc/self/fd | wc -l",
            )
        ]
    assert seen["bubblewrap"] == seen["none"]


@pytest.mark.skipif(shutil.which("bwrap") is None, reason="bubblewrap is missing")
async def test_a_locale_that_is_not_installed_is_told_of_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LC_ALL", "xx_YY.UTF-8")
    said = await run(tmp_path, "bubblewrap", "echo =$LC_ALL=; env | grep -c ^LC_ALL")
    assert said.count("cannot change locale") == 1
    assert "=xx_YY.UTF-8=\n1\n" in said
