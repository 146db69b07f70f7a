"""Commands of `[[hooks]]` in a whole host: what they see, what the model is told, who says no."""

import asyncio
import json
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, get_args

import pytest

from dragoman.checkpoints.keeper import Keeper
from dragoman.engine.content import Text, ToolResult
from dragoman.engine.events import Who
from dragoman.engine.host import OpenSpec
from dragoman.engine.points import OBSERVABLE
from dragoman.host.compose import Composed, compose
from dragoman.host.hook_commands import _fitting
from dragoman.settings.kinds import HookPoint
from dragoman.settings.load import BadSettings, load
from dragoman.testing.script import Scripted, call, say, turn

ME = Who("test", id="c")


@asynccontextmanager
async def hosting(
    tmp: Path, config: str, script: Scripted, mode: str = "full"
) -> AsyncIterator[tuple[Composed, str]]:
    (tmp / "c").mkdir()
    (tmp / "c" / "config.toml").write_text(config)
    (tmp / "w").mkdir(exist_ok=True)
    composed = await compose(config_dir=str(tmp / "c"), store="memory")
    composed.models.offer("scripted", script, [script.model])
    try:
        spec = OpenSpec(cwd=str(tmp / "w"), model=script.model.ref, mode=mode)  # type: ignore[arg-type]
        yield composed, (await composed.door.open(spec, ME)).id
    finally:
        await composed.close()


async def go(composed: Composed, session: str, text: str = "go") -> Any:
    async with asyncio.timeout(60):
        return await (await composed.door.prompt(session, (Text(text),), ME)).done


def results(composed: Composed, session: str) -> list[str]:
    live = composed.door.live(session)
    assert live is not None
    return [
        "\n".join(part.text for part in block.content if isinstance(part, Text))
        for message in live.messages
        for block in message.content
        if isinstance(block, ToolResult)
    ]


def hook(**fields: str) -> str:
    lines = "".join(f"{name} = {value}\n" for name, value in fields.items())
    return f"[[hooks]]\n{lines}\n"


async def test_before_and_after_a_call_and_only_for_its_tools(tmp_path: Path) -> None:
    config = hook(on='"tool_executing"', tools='["write"]', run="'echo before {path} >> log'")
    config += hook(on='"tool_completed"', tools='["write"]', run="'echo after {tool}; cat {path}'")
    writes = turn(call("write", path="a b.txt", content="hello"), call("ls", path="."))
    async with hosting(tmp_path, config, Scripted([writes, say("ok")])) as (composed, session):
        await go(composed, session)
        first, second = results(composed, session)
    work = tmp_path / "w"
    assert (work / "log").read_text() == f"before {work.resolve()}/a b.txt\n"
    assert "\n[hook tool_completed: echo after {tool}; cat {path}]\nafter write\nhello" in first
    assert "hook" not in second


async def test_exit_code_2_blocks_and_says_why(tmp_path: Path) -> None:
    config = hook(on='"tool_executing"', tools='["write"]', run="'echo not on Fridays; exit 2'")
    config += hook(on='"tool_executing"', tools='["ls"]', run="'echo odd; exit 1'")
    calls = turn(call("write", path="a.txt", content="x"), call("ls", path="."))
    async with hosting(tmp_path, config, Scripted([calls, say("ok")])) as (composed, session):
        await go(composed, session)
        first, second = results(composed, session)
    assert first.startswith("Blocked:") and "not on Fridays" in first
    assert not (tmp_path / "w" / "a.txt").exists()
    assert "odd" in second and "exit 1" in second  # any other code is told, and does not block


@pytest.mark.parametrize(
    "name", ["$(touch P)", "`touch P`", "a'; touch P; '", 'a"; touch P; "', "-rf", "a\n touch P"]
)
@pytest.mark.parametrize("run", ["echo {path}", 'echo "{path}"', "echo '{path}'", "echo x{path}y"])
async def test_a_name_is_never_a_command(name: str, run: str, tmp_path: Path) -> None:
    config = hook(on='"tool_executing"', tools='["read"]', run=f"'''{run}'''")
    script = Scripted([turn(call("read", path=name)), say("ok")])
    async with hosting(tmp_path, config, script) as (composed, session):
        await go(composed, session)
        assert "[hook tool_executing" not in results(composed, session)[0]  # the read failed
    assert not (tmp_path / "w" / "P").exists()


@pytest.mark.parametrize(
    "content",
    ["'" * 300_000, "🦜" * 60_000, "x" * 2_000_000, "\0\n\\" * 50_000],
    ids=["quotes", "signs", "much", "escaped"],
)
async def test_no_size_gets_around_a_guard(content: str, tmp_path: Path) -> None:
    guard = tmp_path / "guard.py"
    guard.write_text(
        "import json, os; raise SystemExit(2 * json.loads(os.environ['HOOK_JSON'])['cut'])"
    )
    config = hook(on='"tool_executing"', run=f"'python3 {guard.name}'")
    (tmp_path / "w").mkdir()
    guard.rename(tmp_path / "w" / "guard.py")
    writes = turn(call("write", path="a.txt", content=content))
    async with hosting(tmp_path, config, Scripted([writes, say("ok")])) as (composed, session):
        await go(composed, session)
    assert not (tmp_path / "w" / "a.txt").exists()


def test_what_a_guard_is_told_is_whole_or_says_that_it_is_not() -> None:
    small = {"hook": "h", "args": {"command": "x" * 20_000}}
    assert json.loads(_fitting(small)) == small
    for many in ({"k": ["a" * 50] * 90_000}, {"a" * 90 + str(n): n for n in range(9_000)}):
        told = json.loads(_fitting({"hook": "h", "session": "s", "args": many}))
        assert told["cut"] is True and told["hook"] == "h" and told["session"] == "s"
    cut = json.loads(_fitting({"args": {"command": "a" * 200_000 + "; rm x"}}))
    assert cut["cut"] and cut["args"]["command"].endswith("; rm x")


async def test_other_points_reach_the_next_prompt_of_the_model(tmp_path: Path) -> None:
    config = hook(on='"agent_starting"', run="'echo the weather is fine'")
    config += hook(on='"agent_completed"', run="'echo done >> log'")
    script = Scripted([say("one"), say("two")])
    async with hosting(tmp_path, config, script) as (composed, session):
        await go(composed, session)
        await go(composed, session)
        systems = [request.system for request in script.requests]
    assert all("the weather is fine" in system for system in systems)
    assert systems[1].count("\nthe weather is fine\n") == 1  # once: the first was told before
    assert (tmp_path / "w" / "log").read_text().startswith("done\n")


async def test_a_message_may_be_blocked(tmp_path: Path) -> None:
    config = hook(on='"message_sending"', run="'echo secret; exit 2'")
    async with hosting(tmp_path, config, Scripted([say("the key is 5")])) as (composed, session):
        done = await go(composed, session)
    assert "blocked" in done.text and "the key is 5" not in done.text


async def test_nothing_runs_where_nothing_may_act(tmp_path: Path) -> None:
    config = hook(on='"tool_executing"', run="'touch P'")
    calls = turn(call("write", path="a", content="x"), call("bash", command="true"))
    script = Scripted([calls, say("ok")])
    async with hosting(tmp_path, config, script, "readonly") as (composed, session):
        await go(composed, session)
        assert all("readonly" in text for text in results(composed, session))
    assert not (tmp_path / "w" / "P").exists()


async def test_the_walls_are_those_of_commands(tmp_path: Path) -> None:
    ours = tmp_path / "c" / "config.toml"
    config = hook(on='"tool_executing"', run=f"'echo x > {ours}; cat {ours}'")
    script = Scripted([turn(call("ls", path=".")), say("ok")])
    async with hosting(tmp_path, config, script, "supervised") as (composed, session):
        sandbox = composed.door.facts.sandbox
        assert sandbox is not None
        if sandbox().startswith("none"):
            pytest.skip("no sandbox here")
        await go(composed, session)
        assert "ermission denied" in results(composed, session)[0]
    assert "[[hooks]]" in (tmp_path / "c" / "config.toml").read_text()


async def test_one_that_takes_too_long_is_ended(tmp_path: Path) -> None:
    config = hook(on='"tool_executing"', run="'sleep 360'", timeout_secs="0.3")
    script = Scripted([turn(call("ls", path=".")), say("ok")])
    async with hosting(tmp_path, config, script) as (composed, session):
        await go(composed, session)
        assert "timed out" in results(composed, session)[0]


@pytest.mark.parametrize(
    ("run", "said"),
    [
        ("sleep 360", "timed out"),
        ("kill -9 $$", "no answer"),
        ("sh -c 'kill -9 $$'", "no answer"),
        ("./not-here.sh", "exit 127"),
        ("./a.txt", "exit 126"),
    ],
)
@pytest.mark.parametrize("closed", [True, False])
async def test_a_guard_that_gives_no_answer_blocks(
    run: str, said: str, closed: bool, tmp_path: Path
) -> None:
    fields = {"on": '"tool_executing"', "run": f'"""{run}"""', "timeout_secs": "0.3"}
    config = hook(**fields, **({} if closed else {"fail_closed": "false"}))
    (tmp_path / "w").mkdir()
    (tmp_path / "w" / "a.txt").write_text("x")
    script = Scripted([turn(call("write", path="new.txt", content="x")), say("ok")])
    async with hosting(tmp_path, config, script) as (composed, session):
        await go(composed, session)
        (shown,) = results(composed, session)
    assert (tmp_path / "w" / "new.txt").exists() is not closed
    assert shown.startswith("Blocked:") is closed
    if closed:
        assert said in shown and run in shown


async def test_a_missing_program_is_named_with_the_way_out(tmp_path: Path) -> None:
    config = hook(on='"tool_executing"', tools='["write"]', run="'no-such-formatter -q {path}'")
    script = Scripted([turn(call("write", path="new.txt", content="x")), say("ok")])
    async with hosting(tmp_path, config, script) as (composed, session):
        await go(composed, session)
        (shown,) = results(composed, session)
    assert "The hook did not run: no-such-formatter was not found." in shown
    assert "install no-such-formatter" in shown and "fail_closed = false" in shown
    assert "no-such-formatter -q {path}" in shown and "doctor" in shown


async def test_a_guard_that_breaks_inside_of_us_blocks(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*_: object) -> str:
        raise OSError("no room")

    monkeypatch.setattr("dragoman.host.hook_commands._script", broken)
    config = hook(on='"tool_executing"', run="'true'")
    script = Scripted([turn(call("write", path="a.txt", content="x")), say("ok")])
    async with hosting(tmp_path, config, script) as (composed, session):
        await go(composed, session)
        (shown,) = results(composed, session)
    assert shown.startswith("Blocked:") and "no room" in shown
    assert not (tmp_path / "w" / "a.txt").exists()


@pytest.mark.parametrize("point", ["tool_executing", "tool_completed"])
async def test_what_a_formatter_changes_is_undone_with_the_turn(point: str, tmp_path: Path) -> None:
    """It is not taken for somebody else, neither about its own file nor about others."""
    config = hook(on=f'"{point}"', tools='["write"]', run="'echo x >> {path}; echo x >> other'")
    (tmp_path / "w").mkdir()
    (tmp_path / "w" / "other").write_text("o\n")
    (tmp_path / "w" / "a.txt").write_text("a\n")
    script = Scripted(
        [
            turn(call("read", path="a.txt")),
            turn(call("write", path="b.txt", content="1\n")),
            turn(call("bash", command="echo 2 >> b.txt; echo 2 >> a.txt")),
            turn(call("read", path="b.txt")),
            turn(call("read", path="a.txt")),
            turn(call("write", path="b.txt", content="3\n")),
            say("ok"),
        ]
    )
    async with hosting(tmp_path, config, script) as (composed, session):
        keeper = Keeper(str(tmp_path / "k.db"))
        composed.host.make_checkpoints = lambda: keeper
        await go(composed, session)
        assert (tmp_path / "w" / "other").read_text() == "o\nx\nx\n"
        await composed.door.undo(session, "", ME)
        keeper.close()
        left = {path.name: path.read_text() for path in (tmp_path / "w").iterdir()}
    assert left == {"other": "o\n", "a.txt": "a\n"}


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('[[hooks]]\non = "tool_executing"\n', "run"),
        ('[[hooks]]\non = "sometimes"\nrun = "x"\n', "sometimes"),
        ('[[hooks]]\non = "llm_input"\nrun = "x"\nshell = "zsh"\n', "shell"),
        ('hooks = "x"\n', "list of tables"),
        ('[[hooks]]\non = "llm_input"\nrun = "x"\ntimeout_secs = 0\n', "timeout_secs"),
    ],
)
def test_what_is_wrong_is_said(text: str, said: str, tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    path.write_text(text)
    with pytest.raises(BadSettings, match=said):
        load(str(path), {})


def test_the_points_are_those_of_apps() -> None:
    assert set(get_args(HookPoint)) == OBSERVABLE


def test_a_workspace_defines_none(tmp_path: Path) -> None:
    for name in ("config.toml", ".agents/config.toml", ".dragoman/config.toml", "dragoman.toml"):
        place = tmp_path / "w" / name
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text('[[hooks]]\non = "session_start"\nrun = "touch P"\n')
    before = os.getcwd()
    os.chdir(tmp_path / "w")
    try:
        composed = asyncio.run(compose(config_dir=str(tmp_path / "c"), store="memory"))
        assert composed.settings.hooks == ()
        asyncio.run(composed.close())
    finally:
        os.chdir(before)
