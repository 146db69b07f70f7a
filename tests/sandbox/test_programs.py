"""Hosted agents and MCP servers inside the walls: what they try, and what they need."""

import asyncio
import json
import os
import shutil
import socket
import sys
import venv
from pathlib import Path
from typing import Any

import pytest
from tests.engine.tape import ME, Tape
from tests.sandbox.test_veil import Env

from dragoman.engine import events as ev
from dragoman.engine.content import Text, text_of
from dragoman.engine.host import OpenSpec
from dragoman.engine.traits import Given
from dragoman.host.cells import given_away
from dragoman.host.compose import compose
from dragoman.policy.paths import Boundary
from dragoman.sandbox.bubblewrap import Bubblewrap
from dragoman.sandbox.landlock import Landlock
from dragoman.settings.load import load
from dragoman.testing.script import Scripted, call
from dragoman.tools.registry import Registry

HERE = Path(__file__).parent
TRIALS = str(HERE / "trials.py")
AGENT = str(HERE / "trying_agent.py")
SERVER = str(HERE / "trying_server.py")
OUTSIDE = {"config", "store", "token", "write", "socket", "limits"}
BACKENDS = ["landlock", "bubblewrap"]


class World:
    """A home of ours in a folder that is nobody's scratch, a socket, and a victim."""

    def __init__(self, top: Path) -> None:
        self.top = top
        self.config = top / "config"
        self.work = top / "work"
        for folder in (self.config, self.work, top / "other", top / "more"):
            folder.mkdir(parents=True)
        (self.config / "acp-bridge-token").write_text("secret")
        self.listener = socket.socket(socket.AF_UNIX)
        self.listener.bind(str(top / "s"))
        self.listener.listen()

    def targets(self, pid: int) -> str:
        return json.dumps(
            {
                "config": str(self.config / "config.toml"),
                "store": str(self.config / "data" / "sessions.db"),
                "token": str(self.config / "acp-bridge-token"),
                "write": str(self.top / "other" / "made"),
                "more": str(self.top / "more" / "made"),
                "socket": str(self.top / "s"),
                "limits": pid,
            }
        )

    async def ask(self, config: str, agent: str, *script: Any, mcp: Any = ()) -> dict[str, Any]:
        """What the program says of its trials."""
        (self.config / "config.toml").write_text(config)
        host = await compose(config_dir=str(self.config))
        victim = await asyncio.create_subprocess_exec("sleep", "60")
        try:
            given = self.targets(victim.pid)
            calls = [call(one, given=given) for one in script]
            host.models.offer("script", Scripted([*calls, "done"]))
            spec = OpenSpec(agent=agent, cwd=str(self.work), traits=(Given(mcp=tuple(mcp)),))
            info = await host.door.open(spec, ME)
            tape = Tape()
            await host.door.watch(info.id, ME, tape, lambda said: None)
            async with asyncio.timeout(200):
                done = await (await host.door.prompt(info.id, (Text(given),), ME)).done
            said = text_of(tape.of(ev.CallEnded)[-1].content) if script else done.text
            assert said.startswith("{"), (said, done)
            found: dict[str, Any] = json.loads(said)
            return found
        finally:
            victim.kill()
            await victim.wait()
            await host.close()


@pytest.fixture
def world(monkeypatch: pytest.MonkeyPatch):
    # Not below /tmp, which every program may write.
    top = Path(os.path.expanduser("~")) / f".walls-{os.getpid()}"
    made = World(top)
    for name in ("LEAKED_API_KEY", "DRAGOMAN_LEAKED", "LEAKED_THING", "NAMED_API_KEY"):
        monkeypatch.setenv(name, "of the daemon")
    # A crowded machine starts servers slowly.
    monkeypatch.setattr("dragoman.tools.mcp.PATIENCE_SECONDS", 120)
    monkeypatch.setattr("dragoman.tools.mcp.CONNECT_SECONDS", 120)
    monkeypatch.chdir(top / "other")  # the host's own folder is nobody's workspace
    yield made
    monkeypatch.undo()
    made.listener.close()
    shutil.rmtree(top)


def section(kind: str, script: str, backend: str, more: str) -> str:
    head = f'[sandbox]\nbackend = "{backend}"\n[{kind}]\ncommand = "{sys.executable}"\n'
    return f'{head}args = ["{script}"]\nenv = {{ OWN_API_KEY = "mine" }}\n{more}'


def hosted(backend: str, more: str = "") -> str:
    return section("agents.other", AGENT, backend, f'backend = "acp"\n{more}')


def served(backend: str, more: str = "") -> str:
    agent = '[agents.all]\nmodel = "script/m"\nmode = "full"\n'
    return agent + section("mcp.tries", SERVER, backend, more)


async def tried(world: World, kind: str, backend: str, more: str = "") -> dict[str, Any]:
    if kind == "agent":
        return await world.ask(hosted(backend, more), "other")
    return await world.ask(served(backend, more), "all", "mcp__tries__try_all")


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("kind", ["agent", "server"])
async def test_no_way_out_and_ordinary_work(world: World, kind: str, backend: str) -> None:
    more = f'sandbox_writable = ["{world.top / "more"}"]\npass_env = ["NAMED_API_KEY", "*"]\n'
    found = await tried(world, kind, backend, more)
    assert not {name for name in OUTSIDE if found[name]}, found
    assert found["more"] and found["temporary"] and found["network"], found
    assert found["key"] == "mine" and found["marked"] and found["filtered"]
    assert found["workspace"] is (kind == "agent")
    # By name a key, by a pattern only what is none.
    assert found["inherited"] == ["LEAKED_THING", "NAMED_API_KEY"]


@pytest.mark.parametrize("kind", ["agent", "server"])
async def test_without_network(world: World, kind: str) -> None:
    found = await tried(world, kind, "auto", "sandbox_network = false\n")
    assert not found["network"] and found["temporary"], found


@pytest.mark.parametrize("kind", ["agent", "server"])
async def test_trust_lets_it_out(world: World, kind: str) -> None:
    found = await tried(world, kind, "auto", "trust_outside_sandbox = true\n")
    assert {name for name in OUTSIDE if found[name]} == OUTSIDE, found
    assert not found["filtered"] and found["key"] == "mine"
    assert found["inherited"] == []  # trust is no reason to hand out keys


@pytest.mark.parametrize("backend", BACKENDS)
async def test_a_server_that_a_client_brings(world: World, backend: str) -> None:
    config = f'[sandbox]\nbackend = "{backend}"\n[agents.all]\nmodel = "script/m"\nmode = "full"\n'
    # Neither its own temporary folder nor its PATH open anything.
    env = {"OWN_API_KEY": "mine", "TMPDIR": str(world.top / "other"), "PATH": str(world.config)}
    brought = {"name": "tries", "command": sys.executable, "args": [SERVER], "env": env,
               "trust_outside_sandbox": True}  # fmt: skip
    found = await world.ask(config, "all", "mcp__tries__try_all", mcp=[brought])
    assert not {name for name in OUTSIDE if found[name]}, found
    assert found["workspace"] and found["marked"] and found["key"] == "mine", found


def test_trust_is_said_at_start(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    file.write_text(
        "[sandbox]\ntrust_unix_sockets = true\n"
        '[agents.a]\nbackend = "acp"\ncommand = "x"\ntrust_with_daemon = true\n'
        '[mcp.b]\ncommand = "x"\ntrust_outside_sandbox = true\n[mcp.c]\ncommand = "x"\n'
    )
    said = [one.split(":")[0] for one in given_away(load(str(file)).settings)]
    assert said == [
        "agents.a.trust_with_daemon", "mcp.b.trust_outside_sandbox", "sandbox.trust_unix_sockets",
    ]  # fmt: skip


@pytest.mark.parametrize("backend", BACKENDS)
async def test_python_of_a_virtual_environment_in_path_starts(
    backend: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for folder in ("work", "home"):
        (tmp_path / folder).mkdir()
    made = tmp_path / "kept/env"
    venv.create(made, symlinks=True)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("PATH", f"{made}/bin:{os.environ['PATH']}")
    walls = Boundary(str(tmp_path / "work"))
    confine = Landlock() if backend == "landlock" else Bubblewrap()
    tool = Registry(lambda env: walls, confine=lambda: confine).toolbox().find("bash")
    assert tool is not None
    command = {"command": "python3 -c 'import sys; print(sys.prefix)'"}
    said = await tool.run(command, Env(tmp_path / "work"))  # type: ignore[arg-type]
    assert f"\n{made}\n" in text_of(said.content)
