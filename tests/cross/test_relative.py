"""A relative folder is the caller's: our programs make it whole, on the wire it is refused."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.cross.house import House

from dragoman.client import connect

JOB = {"agent": "default", "schedule": {"kind": "every", "every_ms": 3_600_000}, "prompt": "x"}


@pytest.mark.parametrize("given", [".", "work", "../work", "./a/../b", "x/~"])
async def test_every_dialect_refuses_it(house: House, given: str) -> None:
    native = await house.zeroclaw()
    acp = await house.acp()
    human = await house.speaker("humanlayer")
    zot = await house.speaker("any")
    for speaker, method, params in (
        (native, "dragoman/open", {"cwd": given}),
        (native, "session/new", {"agentAlias": "default", "cwd": given}),
        (acp, "session/new", {"cwd": given, "mcpServers": []}),
        (human, "launchSession", {"query": "say hi", "working_dir": given}),
        (native, "cron/add", {**JOB, "cwd": given}),
        (native, "dragoman/addSchedule", {"prompt": "x", "every": "1h", "cwd": given}),
        (native, "dragoman/sessions", {"cwd": given}),
        (native, "dragoman/commands", {"cwd": given}),
        (acp, "session/list", {"cwd": given}),
    ):
        id = speaker.begin(method, params)
        said = await speaker.until(lambda m, id=id: m.get("id") == id)  # type: ignore[misc]
        assert "relative" in str(said["error"]), (method, said)
    zot.send({"id": "1", "type": "open", "session": "new", "cwd": given})
    answer = await zot.until(lambda m: m.get("id") == "1")
    assert not answer["success"] and "relative" in answer["error"]
    zot.send({"id": "2", "type": "list_sessions", "cwd": given})
    answer = await zot.until(lambda m: m.get("id") == "2")
    assert not answer["success"] and "relative" in answer["error"]
    assert (await native.call("cron/list"))["jobs"] == []
    assert (await native.call("dragoman/sessions", {}))["sessions"] == []


async def test_a_session_that_is_there_is_not_found_by_the_daemons_folder(house: House) -> None:
    """The daemon of these tests runs in the folder of the tests: `.` means it to nobody."""
    native = await house.zeroclaw()
    made = await native.call("dragoman/open", {"cwd": os.getcwd()})
    session = made["session"]["id"]
    await native.call("dragoman/prompt", {"session_id": session, "text": "say hi"})
    acp = await house.acp()
    for method in ("session/load", "session/resume", "session/fork"):
        id = acp.begin(method, {"sessionId": session, "cwd": ".", "mcpServers": []})
        said = await acp.until(lambda m, id=id: m.get("id") == id)  # type: ignore[misc]
        assert "relative" in str(said["error"]), (method, said)
    human = await house.speaker("humanlayer")
    params = {"session_id": session, "query": "more", "additional_directories": ["here"]}
    id = human.begin("continueSession", params)
    said = await human.until(lambda m: m.get("id") == id)
    assert "relative" in str(said["error"])


async def test_our_client_makes_it_whole(
    house: House, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    async with connect(house.socket("daemon")) as host:
        made = await host.open(cwd=".")
        assert made.cwd == os.path.realpath(tmp_path)
        assert [one.id for one in await host.list(cwd=".")] == [made.id]
        (tmp_path / "inside").mkdir()
        assert (await host.fork(made.id, cwd="inside")).cwd == os.path.realpath(tmp_path / "inside")


async def test_an_editor_beside_the_daemon_means_its_own_folder(
    house: House, tmp_path: Path
) -> None:
    def line(id: int, method: str, params: dict[str, Any]) -> bytes:
        said = {"jsonrpc": "2.0", "id": id, "method": method, "params": params}
        return json.dumps(said).encode() + b"\n"

    done = subprocess.run(
        [sys.executable, "-m", "dragoman", "acp", "--config-dir", str(house.config)],
        input=line(1, "initialize", {"protocolVersion": 1})
        + line(2, "session/new", {"cwd": ".", "mcpServers": []}),
        cwd=tmp_path,
        capture_output=True,
        timeout=60,
    )
    assert b"joined the running daemon" in done.stderr
    answers = [json.loads(one) for one in done.stdout.splitlines()]
    session = next(one["result"]["sessionId"] for one in answers if one.get("id") == 2)
    native = await house.zeroclaw()
    facts = await native.call("dragoman/session", {"session_id": session})
    assert facts["session"]["cwd"] == os.path.realpath(tmp_path)
