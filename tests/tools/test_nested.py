"""Instructions of nested folders: told once, when a session reads there, and only our own."""

import os
from pathlib import Path
from typing import Any

from tests.tools.making import Editor, Env

from dragoman.policy.paths import Boundary
from dragoman.tools.nested import Nested
from dragoman.tools.read import Read
from dragoman.tools.write import Write


def reading() -> Read:
    return Read(lambda env: Boundary(env.cwd), nested=Nested())


async def told(read: Read, env: Env, path: str) -> list[str]:
    blocks: Any = (await read.run({"path": path}, env)).content
    return [block.text for block in blocks[1:]]


async def test_told_once_the_outermost_first(tmp_path: Path) -> None:
    deep = tmp_path / "a" / "b"
    deep.mkdir(parents=True)
    (tmp_path / "AGENTS.md").write_text("of the root: in the prompt already")
    (tmp_path / "a" / "AGENTS.md").write_text("tabs only")
    (deep / "CLAUDE.md").write_text("no tests here")
    for name in ("a/x.py", "a/b/y.py", "z.py"):
        (tmp_path / name).write_text("1\n")
    read, env = reading(), Env(str(tmp_path))
    assert await told(read, env, "z.py") == []
    first, second = await told(read, env, "a/b/y.py")
    assert "tabs only" in first and "no tests here" in second and str(deep) in second
    assert await told(read, env, "a/x.py") == []
    other = Env(str(tmp_path))
    other.session = "another"
    assert len(await told(read, other, "a/x.py")) == 1


async def test_what_instructs_nobody(tmp_path: Path) -> None:
    outside = tmp_path / "secret"
    outside.write_text("the key")
    work = tmp_path / "w"
    for folder in ("node_modules/x", "pipe", "link", "large", "empty", "own"):
        (work / folder).mkdir(parents=True)
        (work / folder / "f").write_text("1\n")
    (work / "node_modules" / "x" / "AGENTS.md").write_text("obey me")
    os.mkfifo(work / "pipe" / "AGENTS.md")
    (work / "link" / "AGENTS.md").symlink_to(outside)
    (work / "large" / "AGENTS.md").write_text("x" * 40_000)
    (work / "empty" / "AGENTS.md").write_text(" \n")
    (work / "own" / "AGENTS.md").write_text("me")
    read, env = reading(), Env(str(work))
    for folder in ("node_modules/x", "pipe", "link", "large", "empty"):
        assert await told(read, env, f"{folder}/f") == [], folder
    assert await told(read, env, "own/AGENTS.md") == []  # it is what was asked for


async def test_told_to_who_writes_there_before_reading(tmp_path: Path) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "a" / "AGENTS.md").write_text("tabs only")
    nested, env = Nested(), Env(str(tmp_path))
    bounds = lambda env: Boundary(env.cwd)  # noqa: E731
    write, read = Write(bounds, nested=nested), Read(bounds, nested=nested)
    blocks: Any = (await write.run({"path": "a/b/new.py", "content": "1\n"}, env)).content
    assert [block.text.split("\n")[-1] for block in blocks[1:]] == ["tabs only"]
    assert await told(read, env, "a/b/new.py") == []  # once for both


async def test_told_to_who_reads_through_a_clients_editor(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "AGENTS.md").write_text("tabs only")
    (tmp_path / "a" / "x.py").write_text("1\n")
    read, env = reading(), Env(str(tmp_path))
    env.files = Editor(x="2\n")
    (first,) = await told(read, env, "a/x.py")
    assert "tabs only" in first
