"""A home has no more folders after a command than the user had; what they are for still works."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.policy.test_ordinary_work import policy_of
from tests.tools.making import Env

from dragoman.engine.content import text_of
from dragoman.policy import caches
from dragoman.policy.profiles import STANDARD
from dragoman.sandbox import lodging
from dragoman.sandbox.bubblewrap import Bubblewrap
from dragoman.sandbox.landlock import Landlock, abi
from dragoman.sandbox.launch import Sandbox
from dragoman.tools.registry import Registry

SANDBOXES = [
    pytest.param(Landlock, marks=pytest.mark.skipif(abi() == 0, reason="no Landlock here")),
    pytest.param(Bubblewrap, marks=pytest.mark.skipif(
        shutil.which("bwrap") is None, reason="no bubblewrap here")),
]  # fmt: skip
PATH = "/usr/local/bin:/usr/bin:/bin:/usr/local/go/bin"
OWN = lodging.OWN.lstrip("/")


@pytest.fixture
def home() -> Iterator[Path]:
    """Not in a temporary folder, which commands may write: as a home is."""
    top = Path(os.path.expanduser("~")) / f".lodging-{os.getpid()}"
    top.mkdir()
    (top / "home").mkdir()
    (top / "project").mkdir()
    yield top / "home"
    shutil.rmtree(top)


async def run(home: Path, sandbox: type[Sandbox], command: str) -> tuple[bool, str]:
    scratch = home.parent / "scratch"
    scratch.mkdir(exist_ok=True)
    given = {"HOME": str(home), "PATH": PATH, "TMPDIR": str(scratch)}
    policy = policy_of(STANDARD, home)
    registry = Registry(
        lambda env: policy.boundary(env.mode, env.cwd, env.roots, env.reach),
        confine=sandbox,  # type: ignore[arg-type]
        extra_env=given | caches.variables(STANDARD.forbidden, str(home)),
    )
    tool = registry.toolbox().find("bash")
    assert tool is not None
    env = Env(str(home.parent / "project"))
    result = await tool.run({"command": command}, env)
    return not result.is_error, text_of(result.content)


def made(home: Path) -> list[str]:
    """What is in the home, but for our own folder."""
    found = [one.relative_to(home).as_posix() for one in home.rglob("*")]
    return sorted(one for one in found if not f"{OWN}/".startswith(f"{one}/")
                  and not one.startswith(f"{OWN}/"))  # fmt: skip


@pytest.mark.parametrize("sandbox", SANDBOXES)
async def test_a_command_leaves_no_folders_of_programs(home: Path, sandbox: type[Sandbox]) -> None:
    (home / "go").mkdir()  # the game
    good, said = await run(home, sandbox, "echo hello")
    assert good and "hello" in said
    assert made(home) == ["go"]


@pytest.mark.parametrize("sandbox", SANDBOXES)
async def test_what_is_there_is_used(home: Path, sandbox: type[Sandbox]) -> None:
    (home / ".cache").mkdir()
    (home / ".npm").mkdir()
    good, said = await run(home, sandbox, "echo a > ~/.cache/x && echo b > ~/.npm/y; env")
    assert good and "npm_config_cache" not in said and "XDG_CACHE_HOME" not in said
    assert made(home) == [".cache", ".cache/x", ".npm", ".npm/y"]


@pytest.mark.parametrize("sandbox", SANDBOXES)
@pytest.mark.parametrize(
    ("program", "command"),
    [
        ("npm", 'echo x > "$(npm config get cache)-x" && npm cache ls'),
        ("go", "printf 'module a\\n' > go.mod && printf 'package main\\nfunc main() {}\\n' > a.go"
               " && go vet . && mkdir -p $(go env GOMODCACHE) && touch $(go env GOMODCACHE)/x"),
        ("cargo", "cargo init --vcs none --name a . && cargo build --offline && touch"
                  " ${CARGO_HOME:?}/x"),
        ("python3", 'mkdir -p "${XDG_CACHE_HOME:?}/pip" && touch "$XDG_CACHE_HOME/pip/x"'),
    ],
)  # fmt: skip
async def test_programs_keep_theirs_in_our_folder(
    home: Path, sandbox: type[Sandbox], program: str, command: str
) -> None:
    if shutil.which(program, path=PATH) is None:
        command = 'mkdir -p "${CARGO_HOME:?}" && touch "$CARGO_HOME/x"'
    good, said = await run(home, sandbox, command)
    assert good, said
    assert made(home) == []
    assert any(one.is_file() for one in (home / OWN).rglob("*"))


def test_maven_is_told_where_its_repository_is(tmp_path: Path) -> None:
    """A word of the owner's stays; a home with a blank would be two words to its script."""
    own = str(tmp_path / OWN)
    told = lodging.housed([own], {"MAVEN_OPTS": "-Xmx1g"})["MAVEN_OPTS"]
    assert told == f"-Xmx1g -Dmaven.repo.local={own}/maven/repository"
    assert lodging.housed([own], {"MAVEN_OPTS": told})["MAVEN_OPTS"] == told
    assert "MAVEN_OPTS" not in lodging.housed([f"/home/a b/{OWN}"], {})
    (tmp_path / ".m2/repository").mkdir(parents=True)
    assert "MAVEN_OPTS" not in lodging.housed([own], {})


def test_what_the_owner_says_stays_where_it_is_there(tmp_path: Path) -> None:
    writable = [str(tmp_path / OWN), str(tmp_path / ".cargo")]
    assert lodging.housed(writable, {"CARGO_HOME": str(tmp_path)})["CARGO_HOME"] == str(tmp_path)
    gone = str(tmp_path / "gone")
    assert lodging.housed(writable, {"CARGO_HOME": gone})["CARGO_HOME"] == f"{writable[0]}/cargo"


def test_without_a_folder_of_ours_nothing_is_said() -> None:
    assert lodging.housed([], {"A": "b"}) == {"A": "b"}


def test_only_a_program_that_is_there_gets_a_folder_in_its_own(tmp_path: Path) -> None:
    """`~/.cargo` takes no new names, since programs lie in it."""
    programs = tmp_path / "bin"
    programs.mkdir()
    (tmp_path / ".cargo").mkdir()
    wanted = str(tmp_path / ".cargo/registry")
    writable = [str(tmp_path / ".cargo"), wanted]
    assert not lodging.ready(wanted, writable, {"PATH": str(tmp_path)})
    subprocess.run(["install", "-m", "755", "/dev/null", str(programs / "cargo")], check=True)
    assert lodging.ready(wanted, writable, {"PATH": str(programs)})
