"""Runtime profiles as tools feel them: time, environment, output, processes."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from tests.engine.tape import ME, Tape

from dragoman.engine import events as ev
from dragoman.engine.content import Text, text_of
from dragoman.engine.host import OpenSpec
from dragoman.host.compose import Composed, compose
from dragoman.testing.script import Scripted, call

PROFILE = """
[agents.a]
model = "script/m"
mode = "full"
runtime_profile = "small"

[runtime_profiles.small]
shell_timeout_secs = 60
allow_env = ["VISIBLE_*", "STRANGE_API_KEY"]
max_output_bytes = 2000
max_processes = 20
"""


@pytest.fixture
async def use(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("VISIBLE_ONE", "seen")
    monkeypatch.setenv("HIDDEN_ONE", "unseen")
    monkeypatch.setenv("STRANGE_API_KEY", "secret")
    (tmp_path / "config.toml").write_text(PROFILE.replace("60", str(getattr(request, "param", 60))))
    (tmp_path / "work").mkdir()
    host: Composed = await compose(config_dir=str(tmp_path))

    async def run(command: str) -> Any:
        script = Scripted([call("bash", command=command), "done"])
        host.models.offer("script", script)
        info = await host.door.open(OpenSpec(cwd=str(tmp_path / "work")), ME)
        tape = Tape()
        await host.door.watch(info.id, ME, tape, lambda said: None)
        async with asyncio.timeout(60):
            await (await host.door.prompt(info.id, (Text("go"),), ME)).done
        return text_of(tape.of(ev.CallEnded)[0].content)

    yield run
    await host.close()


@pytest.mark.parametrize("use", [0.3], indirect=True)
async def test_the_time_of_a_command(use) -> None:
    assert "timed out after 0.3s" in await use("sleep 300")


async def test_the_environment_of_a_command(use) -> None:
    said = await use("env")
    assert "VISIBLE_ONE=seen" in said
    assert "HIDDEN_ONE" not in said and "secret" not in said  # a secret stays one even if allowed


async def test_the_output_of_a_command(use) -> None:
    said = await use("i=0; while [ $i -lt 2000 ]; do echo line $i; i=$((i+1)); done")
    assert len(said) < 2600 and "truncated at 2000 bytes" in said
    assert "line 0\n" in said and "line 1999" in said


@pytest.mark.parametrize("use", [5], indirect=True)
async def test_the_processes_of_a_command(use) -> None:
    said = await use("for i in $(seq 60); do sleep 300 & done; echo all")
    assert "fork" in said.lower() and "[exit 0]" not in said and "\nall\n" not in said


async def test_what_bash_kept_of_a_long_output_can_be_read(use, tmp_path: Path) -> None:
    said = await use("seq 1000")
    path = said.split("full output: ")[1].split(")")[0]
    assert Path(path).read_text().endswith("1000\n") and str(tmp_path) in path
