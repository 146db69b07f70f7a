"""Runs the tasks through the real loop and the real tools, and says what each took.

    python -m bench.tasks.run [--model PROVIDER/MODEL] [--only NAME,...] [--docs FILE]

Without a model a scripted one goes the way that transcripts of real ones show: search, read, run
the test, change, run it again, answer. Exit code 1: a test still fails.
"""

import argparse
import asyncio
import contextlib
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from bench.tasks.repos import TASKS, TEST, Task
from dragoman.engine.content import Text, ToolResult
from dragoman.engine.events import Who
from dragoman.engine.host import OpenSpec
from dragoman.host.compose import Composed, compose
from dragoman.testing.script import Scripted, call, say, turn

ME = Who("bench", id="tasks")
_MINUTES = 10.0  # for one task with a real model
_BEGIN, _END = "<!-- tasks -->", "<!-- end of tasks -->"


class Result(NamedTuple):
    """What one task took."""

    name: str
    mended: bool
    steps: int
    calls: int
    failed: int  # calls whose result was an error, the failing test included
    sent: int  # bytes to the model, all steps together
    seconds: float


def scripted(task: Task) -> Scripted:
    """The way of the scripted model."""
    test = call("bash", command=TEST)
    looks = [call("grep", pattern=look) for look in task.looks]
    files = list(dict.fromkeys(file for file, old, _ in task.changes if old))
    steps: list[Any] = [turn(*looks, call("glob", pattern="**/*.py"))]
    if files:
        steps.append(turn(*(call("read", path=file) for file in files)))
    steps.append(turn("I see the failure first.", test))
    if task.misses is not None:
        steps.append(turn(_edit(*task.misses)))
    for file, old, new in task.changes:
        made = _edit(file, old, new) if old else call("write", path=file, content=new)
        steps.append(turn(made))
    return Scripted([*steps, turn(test), say("Mended, and the tests pass.")])


def _edit(file: str, old: str, new: str) -> Any:
    return call("edit", path=file, edits=[{"oldText": old, "newText": new}])


def made(task: Task, folder: Path) -> None:
    """The repository on the disk."""
    for name, text in task.files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    with contextlib.suppress(FileNotFoundError):  # without git it is a folder like any other
        subprocess.run(["git", "init", "-q", str(folder)], check=True, capture_output=True)


def passes(folder: Path) -> bool:
    """Whether the test holds, seen from outside of the session."""
    env = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(TEST.split(), cwd=folder, capture_output=True, env=env, timeout=120)
    return done.returncode == 0


class Counting:
    """A provider that counts what is sent (`ports.Provider`)."""

    def __init__(self, inner: Any) -> None:
        self.inner = inner
        self.name = inner.name
        self.sent = 0
        self.steps = 0

    def stream(self, request: Any) -> AsyncIterator[Any]:
        self.steps += 1
        said = (request.system, request.messages, [_told(tool) for tool in request.tools])
        self.sent += len(msgspec.json.encode(said))
        return self.inner.stream(request)  # type: ignore[no-any-return]

    async def close(self) -> None:
        return None


def _told(tool: Any) -> dict[str, Any]:
    return {"name": tool.name, "description": tool.description, "schema": tool.schema}


async def taken(task: Task, folder: Path, model: str, config: str | None) -> Result:
    """One task from its beginning to its end."""
    await asyncio.to_thread(made, task, folder)
    if await asyncio.to_thread(passes, folder):
        raise SystemExit(f"{task.name}: its test passes before anything was done")
    composed = await compose(config_dir=config, store="memory")
    try:
        if not model:
            script = scripted(task)
            composed.models.offer("scripted", script, [script.model])
        ref = model or script.model.ref
        counting: dict[int, Counting] = {}
        resolve = composed.models.resolve

        def counted(ref: str, agent: str = "") -> Any:
            provider, info = resolve(ref, agent)
            return counting.setdefault(id(provider), Counting(provider)), info

        composed.models.resolve = counted  # type: ignore[method-assign]
        session = (
            await composed.door.open(OpenSpec(cwd=str(folder), model=ref, mode="full"), ME)
        ).id
        began = time.perf_counter()
        async with asyncio.timeout(_MINUTES * 60):
            await (await composed.door.prompt(session, (Text(task.asked),), ME)).done
        took = time.perf_counter() - began
        results = _results(composed, session)
    finally:
        await composed.close()
    steps = sum(one.steps for one in counting.values())
    sent = sum(one.sent for one in counting.values())
    failed = sum(one.is_error for one in results)
    mended = await asyncio.to_thread(passes, folder)
    return Result(task.name, mended, steps, len(results), failed, sent, took)


def _results(composed: Composed, session: str) -> list[ToolResult]:
    live = composed.door.live(session)
    assert live is not None
    blocks = (block for message in live.messages for block in message.content)
    return [block for block in blocks if isinstance(block, ToolResult)]


async def run(tasks: Sequence[Task], model: str = "", config: str | None = None) -> list[Result]:
    """All of them, one after the other."""
    found = []
    for task in tasks:
        with tempfile.TemporaryDirectory() as folder:
            own = None if model else os.path.join(folder, "config")
            work = Path(folder, "work")
            work.mkdir()
            found.append(await taken(task, work.resolve(), model, config or own))
    return found


def table(results: Sequence[Result], model: str) -> str:
    """The results as Markdown."""
    mended = sum(one.mended for one in results)
    lines = [
        f"Model: {model or 'scripted'}. {mended} of {len(results)} mended.",
        "",
        "| task | mended | steps | calls | failed | KB to the model | seconds |",
        "|---|---|---|---|---|---|---|",
    ]
    for one in results:
        said = "yes" if one.mended else "**no**"
        lines.append(
            f"| {one.name} | {said} | {one.steps} | {one.calls} | {one.failed} "
            f"| {one.sent / 1024:.1f} | {one.seconds:.2f} |"
        )
    total = [sum(column) for column in zip(*(one[2:] for one in results), strict=True)]
    steps, calls, failed, sent, seconds = total
    lines.append(
        f"| all | | {steps:.0f} | {calls:.0f} | {failed:.0f} | {sent / 1024:.1f} | {seconds:.2f} |"
    )
    return "\n".join(lines)


def written(path: Path, text: str) -> None:
    """Put the table into a page, between its marks."""
    page = path.read_text()
    head, _, rest = page.partition(_BEGIN)
    _, _, tail = rest.partition(_END)
    path.write_text(f"{head}{_BEGIN}\n\n{text}\n\n{_END}{tail}")


def main(words: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench.tasks.run")
    parser.add_argument("--model", default="")
    parser.add_argument("--config-dir", default=None)
    parser.add_argument("--only", default="")
    parser.add_argument("--docs", default="")
    options = parser.parse_args(words)
    names = set(filter(None, options.only.split(",")))
    tasks = [task for task in TASKS if not names or task.name in names]
    if not tasks:
        parser.error(f"no such task; there are {', '.join(task.name for task in TASKS)}")
    results = asyncio.run(run(tasks, options.model, options.config_dir))
    text = table(results, options.model)
    print(text)
    if options.docs:
        written(Path(options.docs), text)
    return 0 if all(one.mended for one in results) else 1


if __name__ == "__main__":
    sys.exit(main())
