"""The tools `ls`, `memory` and `plan`, and what they stand on: `running`, `seen`, `work`."""

import asyncio
import os
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from tests.tools.making import Env, said

from dragoman.engine.faults import BadInput, Changed
from dragoman.sandbox.launch import Launch
from dragoman.tools import running
from dragoman.tools.ls import Ls, _marked
from dragoman.tools.memory import memory_tools
from dragoman.tools.output import Capture, Outputs, Progress
from dragoman.tools.plan import Plan
from dragoman.tools.reads import expect, seen
from dragoman.tools.running import CommandRun
from dragoman.tools.work import Halt, Halted, in_thread, insist, settled

Use = Callable[..., Any]

# --- ls ---


async def test_ls_marks_folders_links_and_programs(use: Use, work: Path) -> None:
    (work / "b").mkdir()
    (work / "a.txt").write_text("")
    (work / "run").write_text("")
    (work / "run").chmod(0o755)
    (work / "link").symlink_to("b")
    assert said(await use("ls")).split("\n") == ["a.txt", "b/", "link@", "run*"]
    assert said(await use("ls", directory="b")) == "[the directory is empty]"


async def test_ls_says_how_many_it_left_out(use: Use, work: Path) -> None:
    for number in range(5):
        (work / f"f{number}").write_text("")
    shown = said(await use("ls", limit=2)).split("\n")
    assert shown == ["f0", "f1", "... [3 more of 5 entries; use glob to narrow]"]
    with pytest.raises(BadInput, match="at least 1"):
        await use("ls", limit=0)


async def test_ls_of_a_file_or_of_nothing_says_so(use: Use, work: Path) -> None:
    (work / "f").write_text("")
    with pytest.raises(BadInput, match="f is not a directory"):
        await use("ls", path="f")
    with pytest.raises(BadInput, match="nowhere"):
        await use("ls", path="nowhere")
    nowhere: Any = None
    assert Ls(nowhere).summary({"path": "a\nb"}) == "List a b"


def test_ls_shows_a_name_that_is_no_text_and_one_that_is_gone() -> None:
    def gone(**_: Any) -> Any:
        raise FileNotFoundError

    assert _marked(SimpleNamespace(name="\udcff", stat=gone)) == r'"\377"'


# --- memory ---


class Memory:
    def __init__(self) -> None:
        self.kept = {"a": "one"}

    def store(self, key: str, content: str, category: str, session: str) -> None:
        self.kept[key] = f"{content} ({category}, {session})"

    def recall(self, query: str, limit: int) -> list[Any]:
        return [SimpleNamespace(key=key, category="note", content=text)
                for key, text in self.kept.items() if query in text][:limit]  # fmt: skip

    def forget(self, key: str) -> bool:
        return self.kept.pop(key, None) is not None

    def all(self, category: str, limit: int) -> list[str]:
        return list(self.kept)

    def purge(self, category: str) -> int:
        count = len(self.kept)
        self.kept.clear()
        return count


async def test_memory_tools_say_what_became_of_it(env: Env) -> None:
    memory = Memory()
    tools = {tool.spec.name: tool for tool in memory_tools(memory)}

    async def use(name: str, **args: Any) -> str:
        return said(await tools[f"memory_{name}"].run(args, env))

    assert await use("store", key="b", content="two") == "Remembered as b."
    assert memory.kept["b"] == "two (note, s)"
    assert (await use("recall", query="two")).startswith("b (note):\ntwo")
    assert await use("recall", query="three") == "Nothing is remembered about that."
    assert await use("forget", key="b") == "Forgot b."
    assert await use("forget", key="b") == "Nothing is remembered as b."
    assert await use("export") == '["a"]'
    assert await use("purge", confirm=True) == "Forgot 1 entry."
    for name, args, why in (
        ("recall", {"query": " "}, "query is required"),
        ("forget", {}, "key is required"),
        ("purge", {}, "confirm must be true"),
    ):
        with pytest.raises(BadInput, match=why):
            await use(name, **args)
    assert tools["memory_purge"].summary({}) == "Purge in memory: everything"
    assert [tool.spec.kind for tool in tools.values()] == [
        "edit", "read", "delete", "read", "delete",
    ]  # fmt: skip


# --- plan ---


async def test_plan_takes_steps_in_the_ways_models_write_them(env: Env) -> None:
    steps = ["one", {"content": "two", "status": "in_progress"}]
    for name in ("entries", "steps", "plan"):
        assert said(await Plan().run({name: steps}, env)) == "[ ] one\n[>] two"
        assert [entry.content for entry in env.planned] == ["one", "two"]
    assert said(await Plan().run({"entries": []}, env)) == "The plan is empty."


@pytest.mark.parametrize(
    ("entries", "why"),
    [
        (["x"] * 101, "at most 100"),
        ([{"content": " "}], "must not be empty"),
        ([{"content": "x", "status": "odd"}], "entries"),
        ("x", "entries"),
    ],
)
async def test_plan_says_what_is_wrong_with_a_step(env: Env, entries: Any, why: str) -> None:
    with pytest.raises(BadInput, match=why):
        await Plan().run({"entries": entries}, env)
    assert env.planned == [] and Plan().summary({"entries": 5}) == "Plan with 0 steps"


# --- seen ---


def test_seen_a_file_that_changed_since_it_was_shown_is_refused(env: Env) -> None:
    expect(env, "/a", b"anything", "a")  # nobody was shown anything
    env.seen = (seen("/a", b"as shown"), seen("/new", None))
    expect(env, "/a", b"as shown", "a")
    expect(env, "/new", None, "new")
    for path, data in (("/a", b"other"), ("/a", None), ("/new", b"came"), ("/b", b"as shown")):
        with pytest.raises(Changed, match="is not any more what was shown"):
            expect(env, path, data, path)


# --- work ---


async def test_work_of_a_cancelled_caller_has_ended_when_it_returns() -> None:
    begun, ended = threading.Event(), threading.Event()

    def work(halt: Halt) -> None:
        begun.set()
        while True:
            try:
                halt.check()
            except Halted:
                ended.set()
                raise

    task = asyncio.create_task(in_thread(work))
    await asyncio.to_thread(begun.wait)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert ended.is_set()


async def test_work_with_a_guard_runs_in_a_thread_of_its_own() -> None:
    where: list[int] = []

    def work(halt: Halt) -> str:
        where.append(threading.get_ident())
        return "done"

    assert await in_thread(work, guard=lambda: where.append(threading.get_ident())) == "done"
    assert where[0] == where[1] != threading.get_ident()

    def refuses() -> None:
        raise PermissionError("not here")

    with pytest.raises(PermissionError):
        await in_thread(work, guard=refuses)
    assert len(where) == 2


async def test_work_that_is_insisted_on_is_done_though_its_caller_is_cancelled() -> None:
    go, done = asyncio.Event(), asyncio.Event()

    async def work() -> None:
        await go.wait()
        done.set()

    task = asyncio.create_task(insist(work()))
    await asyncio.sleep(0)
    task.cancel()
    await asyncio.sleep(0)
    task.cancel()  # however often
    go.set()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert done.is_set()
    failed: asyncio.Future[None] = asyncio.get_running_loop().create_future()
    failed.set_exception(ValueError("taken note of"))
    await settled(failed)


def test_work_knows_when_it_is_late() -> None:
    assert Halt().late is False and Halt(0.0).late is True and Halt(60.0).late is False


# --- running ---


def command(tmp_path: Path, *argv: str, **more: Any) -> CommandRun:
    cwd = more.pop("cwd", str(tmp_path))
    launch = Launch(argv, cwd, {"PATH": os.environ["PATH"], "MARK": "m"}, **more)
    capture = Capture(Outputs(str(tmp_path / "outputs")))
    return CommandRun(launch, "MARK=m", capture, Progress(lambda text: None))


@pytest.mark.parametrize(
    ("script", "code"), [("exit 3", 3), ("kill -9 $$", 137), ("echo x; true", 0)]
)
async def test_running_says_how_it_ended(tmp_path: Path, script: str, code: int) -> None:
    run = command(tmp_path, "/bin/sh", "-c", script)
    assert await run.run(10) is False and run.code == code


async def test_running_ends_what_takes_too_long_with_all_it_started(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(running, "GRACE", 0.2)
    run = command(tmp_path, "/bin/sh", "-c", "sleep 360 & echo $!; sleep 360")
    assert await run.run(1.0) is True
    beside = Path(f"/proc/{int(run.capture.text())}/stat")  # of the one in the background
    assert not beside.exists() or beside.read_text().split()[2] == "Z"


@pytest.mark.parametrize("argv", [["/no/such/program"], ["/bin/sh\0x"]])
async def test_running_what_cannot_start_says_so_and_calls_done(
    tmp_path: Path, argv: list[str]
) -> None:
    done: list[bool] = []
    run = command(tmp_path, *argv, done=lambda: done.append(True))
    with pytest.raises(BadInput, match="start:"):
        await run.run(5)
    assert done == [True]


async def test_running_a_sandbox_that_does_not_stand_is_a_refusal(tmp_path: Path) -> None:
    from dragoman.engine.faults import Refused

    def breaks() -> None:
        raise OSError("no walls")

    with pytest.raises(Refused, match="could not be put up around the command: no walls"):
        await command(tmp_path, "/bin/true", preexec=breaks).run(5)


@pytest.mark.parametrize(("failures", "begins"), [(0, True), (2, True), (3, False)])
async def test_running_a_child_without_a_namespace_is_begun_again(
    tmp_path: Path, failures: int, begins: bool
) -> None:
    from dragoman.engine.faults import Refused

    tried = tmp_path / "tried"

    def separates() -> None:
        with tried.open("a") as file:
            file.write("x")
        if tried.stat().st_size <= failures:
            raise OSError(22, "unshare, with the threads a, b")

    run = command(tmp_path, "/bin/echo", "here", preexec=separates)
    if begins:
        await run.run(20)
        assert (run.code, run.capture.text().strip()) == (0, "here")
    else:
        with pytest.raises(Refused, match="with the threads a, b"):
            await run.run(20)
    assert tried.stat().st_size == min(failures + 1, 3)


@pytest.mark.skipif(sys.platform != "linux", reason="counts /proc")
def test_running_counts_the_machine() -> None:
    assert running._population() >= 1
