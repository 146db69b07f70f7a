"""Commands in the background: watched, bounded, ended."""

import asyncio
import os
from pathlib import Path
from typing import Any

import pytest
from tests.tools.making import Env, said

from dragoman.engine.faults import BadInput, TooMany
from dragoman.tools.background import MOST
from dragoman.tools.registry import Registry


async def gone(pid: int) -> bool:
    for _ in range(6_000):
        if not os.path.exists(f"/proc/{pid}"):
            return True
        await asyncio.sleep(0.01)
    return False


async def test_it_goes_on_is_looked_at_and_ended(use: Any, registry: Registry, env: Env) -> None:
    out = said(
        await use(
            "bash", command="echo $$; cat > /dev/null < <(sleep 360); echo no", background=True
        )
    )
    assert "bg1" in out
    first = said(await use("bash_output", id="bg1", wait=10))
    pid = int(first.splitlines()[0])
    assert "running" in first
    assert said(await use("bash_output", id="bg1")).startswith("[bg1: running")  # nothing new
    assert "bg1: running" in said(await use("bash_output"))
    assert "Ended" in said(await use("bash_kill", id="bg1"))
    assert await gone(pid)
    assert "had ended already" in said(await use("bash_kill", id="bg1"))
    with pytest.raises(BadInput, match="bg7"):
        await use("bash_output", id="bg7")


async def test_its_end_and_much_output_are_told(use: Any) -> None:
    await use("bash", command="seq 1 200000; exit 3", background=True)
    text = ""
    while "exit code 3" not in text:
        text = said(await use("bash_output", id="bg1", wait=10))
        assert len(text) < 120_000
    assert "200000" in text


async def test_it_is_bounded_and_ends_with_the_session(
    use: Any, registry: Registry, env: Env
) -> None:
    box = registry.toolbox(session=env.session)
    for _ in range(MOST):
        await use("bash", command="exec sleep 360", background=True)
    with pytest.raises(TooMany, match="bash_kill"):
        await use("bash", command="true", background=True)
    jobs = registry.jobs.all(env.session)
    await box.close()
    assert not any(job.runs for job in jobs) and not registry.jobs.all(env.session)


async def test_other_sessions_do_not_see_it(registry: Registry, env: Env, use: Any) -> None:
    await use("bash", command="sleep 360", background=True)
    env.session = "another"  # type: ignore[misc]
    with pytest.raises(BadInput):
        await use("bash_output", id="bg1")
    await registry.jobs.end("s")


@pytest.mark.parametrize("limit", [601, 0, -1, 1e12])
async def test_time_is_bounded(use: Any, limit: float) -> None:
    with pytest.raises(BadInput, match="timeout"):
        await use("bash", command="true", timeout=limit)


def test_bash_brings_its_two_along(registry: Registry) -> None:
    assert {s.name for s in registry.toolbox(["bash"]).specs()} == {
        "bash",
        "bash_output",
        "bash_kill",
    }


async def test_a_character_that_is_printed_in_two_parts_is_whole(
    use: Any, registry: Registry, env: Env, work: Path
) -> None:
    os.mkfifo(work / "go")
    command = "printf 'a\\360\\237'; read x < go; printf '\\246\\234b'; read x < go"
    await use("bash", command=command, background=True)
    first = said(await use("bash_output", id="bg1", wait=30))
    (work / "go").write_text("on\n")
    second = said(await use("bash_output", id="bg1", wait=30))
    assert first.startswith("a\n[bg1: running") and second.startswith("\U0001f99cb\n[bg1")
    await use("bash_kill", id="bg1")
