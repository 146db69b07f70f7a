"""MCP servers of the configuration: shared by sessions, tried again, never in the way."""

import asyncio
import json
import os
import signal
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.daemon.running import Daemon
from tests.engine.tape import ME, Tape

from dragoman.cli.main import main
from dragoman.engine import events as ev
from dragoman.engine.content import Text, text_of
from dragoman.engine.host import OpenSpec
from dragoman.host import servers as module
from dragoman.host.compose import Composed, compose
from dragoman.testing.script import Scripted, call
from dragoman.tools import mcp

SERVER = str(Path(__file__).parents[1] / "tools" / "mcp_server.py")
SUMS = f'[mcp.sums]\ncommand = "{sys.executable}"\nargs = ["{SERVER}"]\n'
AGENTS = """
[agents.all]
model = "script/m"
mode = "full"
[agents.some]
model = "script/m"
mode = "full"
mcp = ["gone"]
[agents.none]
model = "script/m"
mode = "full"
runtime_profile = "alone"
[runtime_profiles.alone]
mcp = []
[acp]
default_agent = "all"
"""
GONE = '[mcp.gone]\ncommand = "/does/not/exist"\n'


class Talk:
    def __init__(self, host: Composed, cwd: Path) -> None:
        self.host, self.cwd = host, cwd
        self.tape = Tape()

    async def turn(self, agent: str, *script: Any) -> Scripted:
        """A turn in a session of its own, which stays open."""
        scripted = Scripted([*script, "done"])
        self.host.models.offer("script", scripted)
        info = await self.host.door.open(OpenSpec(agent=agent, cwd=str(self.cwd)), ME)
        self.tape = Tape()
        await self.host.door.watch(info.id, ME, self.tape, lambda said: None)
        async with asyncio.timeout(60):
            await (await self.host.door.prompt(info.id, (Text("go"),), ME)).done
        self.session = info.id
        return scripted

    def result(self) -> str:
        return text_of(self.tape.of(ev.CallEnded)[-1].content)

    def status(self) -> dict[str, Any]:
        return {row["name"]: row for row in self.host.door.facts.mcp()}


@pytest.fixture
async def talks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(mcp, "PATIENCE_SECONDS", 60.0)  # a crowded machine starts servers slowly
    made: list[Composed] = []

    async def make(config: str) -> Talk:
        (tmp_path / "config.toml").write_text(AGENTS + config)
        host = await compose(config_dir=str(tmp_path))
        made.append(host)
        return Talk(host, tmp_path)

    yield make
    for one in made:
        await one.close()


def names(script: Scripted) -> set[str]:
    return {tool.name for tool in script.requests[0].tools if tool.name.startswith("mcp__")}


async def test_one_process_serves_all_sessions_and_goes_with_the_host(talks) -> None:
    talk = await talks(SUMS + GONE)
    add = call("mcp__sums__add", a=2, b=3)
    script = await talk.turn("all", add)
    assert names(script) == {"mcp__sums__add", "mcp__sums__fail"}
    assert talk.result() == "5"
    (note,) = talk.tape.of(ev.Noted)
    assert note.title == "MCP server gone could not be reached" and note.level == "warning"
    (pid,) = talk.host.descendants.branded
    assert (
        talk.host.descendants.refuses(pid) and not talk.host.descendants._trusted
    )  # no way to the daemon
    await talk.turn("all", add)
    assert talk.result() == "5" and set(talk.host.descendants.branded) == {pid}
    (note,) = talk.tape.of(ev.Noted)  # every session is told
    assert "gone" in note.title
    rows = talk.status()
    assert (rows["sums"]["state"], rows["sums"]["tools"], rows["sums"]["sessions"]) == (
        "connected", 2, 2,
    )  # fmt: skip
    assert rows["gone"]["state"] == "failed" and rows["gone"]["problem"]
    await talk.host.door.close(talk.session)
    assert talk.status()["sums"]["sessions"] == 1 and os.path.exists(f"/proc/{pid}")
    await talk.host.close()
    assert not os.path.exists(f"/proc/{pid}")


async def test_a_server_that_failed_is_not_on_its_way_when_it_is_tried_again(
    talks, tmp_path: Path
) -> None:
    """The session has been told of it, and another server may take its time."""
    os.mkfifo(tmp_path / "go")
    slow, fails = tmp_path / "slow", tmp_path / "fails"
    slow.write_text(f"#!/bin/sh\nread x <{tmp_path}/go\nexec {sys.executable} {SERVER}\n")
    fails.write_text(
        f"#!/bin/sh\ncd {tmp_path}\n[ -e first ] || {{ : >first; exit 1; }}\n"
        ": >second\nexec tail -f /dev/null\n"
    )
    for script in (slow, fails):
        script.chmod(0o755)
    gone = f'[mcp.gone]\ncommand = "{fails}"\nsandbox_writable = ["{tmp_path}"]\n'
    talk = await talks(f'[mcp.sums]\ncommand = "{slow}"\n{gone}')
    turn = asyncio.create_task(talk.turn("all"))
    async with asyncio.timeout(60):
        while not (tmp_path / "second").exists():  # noqa: ASYNC110 (another process gets there)
            await asyncio.sleep(0.02)
    await asyncio.to_thread((tmp_path / "go").write_text, "x\n")
    await turn
    (note,) = talk.tape.of(ev.Noted)
    assert note.title == "MCP server gone could not be reached"


async def test_a_server_that_takes_long_is_told_of(
    talks, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A turn does without its tools then; they join when it is there."""
    monkeypatch.setattr(mcp, "PATIENCE_SECONDS", 0.0)
    os.mkfifo(tmp_path / "go")
    slow = tmp_path / "slow"
    slow.write_text(f"#!/bin/sh\nread x <{tmp_path}/go\nexec {sys.executable} {SERVER}\n")
    slow.chmod(0o755)
    talk = await talks(f'[mcp.sums]\ncommand = "{slow}"\n' + GONE)
    assert names(await talk.turn("all")) == set()
    (note,) = [one for one in talk.tape.of(ev.Noted) if "sums" in one.title]
    assert note.title == "MCP server sums is still on its way" and "without" in note.text
    await asyncio.to_thread((tmp_path / "go").write_text, "x\n")
    async with asyncio.timeout(60):
        while talk.status()["sums"]["state"] != "connected":  # noqa: ASYNC110 (another process gets there)
            await asyncio.sleep(0.02)
    scripted = Scripted(["done"])
    talk.host.models.offer("script", scripted)
    await (await talk.host.door.prompt(talk.session, (Text("go on"),), ME)).done
    assert names(scripted) == {"mcp__sums__add", "mcp__sums__fail"}


async def test_agents_may_use_some_or_none(talks) -> None:
    talk = await talks(SUMS + GONE)
    assert names(await talk.turn("none")) == set()
    assert talk.status()["sums"]["state"] == "not used yet"  # and nothing was started
    assert names(await talk.turn("some")) == set()
    assert talk.status()["gone"]["state"] == "failed"


async def test_a_new_session_has_a_server_that_was_mended(
    talks, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not at the next try, which may be minutes away; without reason it is not tried again."""
    monkeypatch.setattr(module.Shared, "_retry", lambda self: None)  # minutes away
    monkeypatch.setattr(module, "_QUICK", 60.0)
    monkeypatch.setattr(module, "_STALE", 60.0)
    broken = tmp_path / "server"
    broken.write_text("#!/bin/sh\nexit 3\n")
    broken.chmod(0o755)
    talk = await talks(f'[mcp.sums]\ncommand = "{broken}"\n' + GONE)
    await talk.turn("all")
    row = talk.status()["sums"]
    assert row["state"] == "failed" and 0 <= row["again_in"] <= 2
    broken.write_text(f"#!/bin/sh\nexec {sys.executable} {SERVER}\n")
    await talk.turn("all")
    assert talk.status()["sums"]["state"] == "failed"
    monkeypatch.setattr(module, "_STALE", 0.0)
    assert "mcp__sums__add" in names(await talk.turn("all"))
    row = talk.status()["sums"]
    assert row["state"] == "connected" and row["again_in"] is None and not row["problem"]


@pytest.mark.parametrize("back", [False, True])
async def test_a_server_that_dies_is_noted_and_comes_back(
    talks, monkeypatch: pytest.MonkeyPatch, back: bool
) -> None:
    monkeypatch.setattr(module, "_FIRST_DELAY", 0.01 if back else 60.0)
    monkeypatch.setattr(module, "_STALE", 60.0)
    talk = await talks(SUMS + GONE.replace("command", "enabled = false\ncommand"))
    add = call("mcp__sums__add", a=1, b=1)
    await talk.turn("all")
    (pid,) = talk.host.descendants.branded
    os.kill(pid, signal.SIGKILL)
    noted = await talk.tape.until(ev.Noted)
    assert noted.body.title == "MCP server sums was lost"
    if back:
        async with asyncio.timeout(60):
            while talk.status()["sums"]["state"] != "connected":  # noqa: ASYNC110
                await asyncio.sleep(0.02)
    await talk.turn("all", add)
    assert talk.tape.of(ev.CallEnded)[-1].is_error != back
    assert ("2" == talk.result()) == back
    titles = [one.title for one in talk.tape.of(ev.Noted)]
    assert titles == ([] if back else ["MCP server sums was lost"])  # a new session hears it, too


async def test_a_changed_configuration_is_used(talks, tmp_path: Path) -> None:
    talk = await talks(GONE)
    await talk.turn("all")
    changed = AGENTS + SUMS + GONE.replace("command", "enabled = false\ncommand")
    (tmp_path / "config.toml").write_text(changed)
    talk.host.config.reload()
    assert {row["state"] for row in talk.status().values()} == {"not used yet", "off"}
    assert names(await talk.turn("all")) == {"mcp__sums__add", "mcp__sums__fail"}
    assert talk.tape.of(ev.Noted) == []


async def test_a_name_that_leads_nowhere_is_an_error(talks) -> None:
    from dragoman.engine.faults import Fault

    with pytest.raises(Fault, match="there is no \\[mcp.gone\\]"):
        await talks(SUMS)


def test_the_list_of_servers_says_how_they_are(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    config = (
        '[mcp.here]\ncommand = "x"\n[mcp.off]\nurl = "http://127.0.0.1:1/mcp"\nenabled = false\n'
    )
    (tmp_path / "config.toml").write_text(config)
    assert main(["mcp", "--config-dir", str(tmp_path)]) == 0
    rows = [line.split() for line in capsys.readouterr().out.splitlines()[1:]]
    assert rows == [["here", "no", "daemon", "runs", "x"], ["off", "off", "http://127.0.0.1:1/mcp"]]
    with Daemon(tmp_path, config=config) as daemon:
        daemon.wait_ready()
        assert main(["mcp", "--config-dir", str(tmp_path)]) == 0
        assert "here    not used yet  x" in capsys.readouterr().out
        assert main(["mcp", "--json", "--config-dir", str(tmp_path)]) == 0
        found = json.loads(capsys.readouterr().out)["servers"]
        assert [one["state"] for one in found] == ["not used yet", "off"]
