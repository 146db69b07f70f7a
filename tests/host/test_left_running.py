"""Background commands are remembered by their session: after a restart they are told to be gone."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from tests.host.test_hook_commands import ME, go, results

from dragoman.engine.host import OpenSpec
from dragoman.engine.traits import Background
from dragoman.host.compose import Composed, compose
from dragoman.testing.script import Scripted, call, say, turn


@asynccontextmanager
async def hosting(tmp: Path, script: Scripted) -> AsyncIterator[Composed]:
    (tmp / "w").mkdir(exist_ok=True)
    (tmp / "c").mkdir(exist_ok=True)
    composed = await compose(config_dir=str(tmp / "c"))
    composed.models.offer("scripted", script, [script.model])
    try:
        yield composed
    finally:
        await composed.close()


async def opened(composed: Composed, tmp: Path, script: Scripted) -> str:
    spec = OpenSpec(cwd=str(tmp / "w"), model=script.model.ref, mode="full")
    return (await composed.door.open(spec, ME)).id


def beside(command: str) -> Any:
    return turn(call("bash", command=command, background=True))


async def test_a_command_that_ended_with_its_host_is_told_once_and_found(tmp_path: Path) -> None:
    first = Scripted([beside("sleep 360"), beside("exit 3"), say("ok")])
    async with hosting(tmp_path, first) as composed:
        session = await opened(composed, tmp_path, first)
        await go(composed, session)
        assert "bg1" in results(composed, session)[0] and "bg2" in results(composed, session)[1]
        live = composed.host.live[session]
        jobs = live.gear.toolbox.find("bash_output")._jobs  # type: ignore[union-attr]
        await jobs.find(session, "bg2").task
        assert Background.of(live.state.extra).ends == {"bg2": "ended with exit code 3"}
    second = Scripted(
        [
            turn(call("bash_output", id="bg1")),
            turn(call("bash_output", id="bg2"), call("bash_output"), call("bash_kill", id="bg1")),
            beside("sleep 361"),
            say("ok"),
            turn(call("bash_output")),
            say("ok"),
        ]
    )
    async with hosting(tmp_path, second) as composed:
        await composed.door.load(session)
        await go(composed, session)
        await go(composed, session)
        shown = results(composed, session)[2:]
        systems = [request.system for request in second.requests]
    told = "let this session go:\n- bg1: sleep 360\n"
    assert all(told in system and "exit 3" not in system for system in systems[:4])
    assert not any(told in system for system in systems[4:])
    assert shown[0].startswith("[bg1: gone with the host that ran it")
    assert shown[1] == "[bg2: ended with exit code 3: exit 3]"
    assert "bg1: gone with the host" in shown[2] and "bg2: ended with exit code 3" in shown[2]
    assert shown[3].startswith("[It had ended already: bg1")
    assert "runs in the background as bg3" in shown[4]  # no id means two commands
    assert "bg3: running" in shown[5] and "bg1: gone with the host" in shown[5]


async def test_a_session_that_is_let_go_loses_its_commands_and_is_told(tmp_path: Path) -> None:
    script = Scripted([beside("sleep 360"), say("ok"), say("again"), say("more")])
    async with hosting(tmp_path, script) as composed:
        session = await opened(composed, tmp_path, script)
        await go(composed, session)
        await go(composed, session)
        assert "sleep 360" not in script.requests[-1].system  # it runs
        await composed.door.close(session)
        await composed.door.load(session)
        await go(composed, session)
        assert "- bg1: sleep 360" in script.requests[-1].system
