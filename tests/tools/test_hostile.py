"""Every tool against hostile and odd input: huge, binary, missing, linked, changing underneath.

A tool answers with a result or with a fault that says what was wrong; it never breaks, never waits
without end, never reads outside, and never leaves half a file.
"""

import asyncio
import os
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.timed import promised
from tests.tools.making import Env, temporary

from dragoman.engine.content import Image, Text
from dragoman.engine.faults import Fault
from dragoman.engine.info import PROPOSE
from dragoman.tools import ripgrep
from dragoman.tools.registry import Box

_ODD = ("", " ", ".", "..", "/", "//", "~", "~nobody", "a\0b", "x" * 5_000, "a/" * 3_000, "\ud800",
        "é\u202e", "-rf", "file\n", "C:\\x", "%2e%2e/x", "/proc/self/mem", "/dev/zero",
        "/dev/stdin", "/dev/tcp/127.0.0.1/1", "nope/nope", "$HOME", "`id`", "*", "[", "{a,b",
        "CON", "\x1b[2J", "../secret", "/etc/shadow", "link", "loop", "pipe", "socket", "folder",
        "unreadable", "binary", "dangling", "away/secret")  # fmt: skip


@pytest.fixture
def odd(work: Path, tmp_path: Path) -> Iterator[Path]:
    """A folder with one of every kind of thing that is no plain text file."""
    (tmp_path / "secret").write_text("hidden treasure\n")
    (work / "away").symlink_to(tmp_path)
    (work / "link").symlink_to(tmp_path / "secret")
    (work / "loop").symlink_to("loop")
    (work / "dangling").symlink_to("gone")
    (work / "folder").mkdir()
    (work / "binary").write_bytes(bytes(range(256)) * 40)
    (work / "unreadable").write_text("x\n")
    (work / "unreadable").chmod(0)
    os.mkfifo(work / "pipe")
    listening = socket.socket(socket.AF_UNIX)
    here = os.getcwd()
    os.chdir(work)  # the names of sockets are short
    try:
        listening.bind("socket")
    finally:
        os.chdir(here)
    yield work
    listening.close()


async def tried(use: Any, name: str, **args: Any) -> str:
    """What a tool says, fault or result; only one that hangs takes a minute for it."""
    try:
        async with asyncio.timeout(60):
            outcome = await use(name, **args)
    except Fault as fault:
        assert str(fault).strip()
        return str(fault)
    said = "".join(one.text for one in outcome.content if isinstance(one, Text))
    assert said or any(isinstance(one, Image) for one in outcome.content)
    assert len(said) < 400_000
    return said


def calls(path: str) -> list[tuple[str, dict[str, Any]]]:
    """Every tool that takes a path, with this one."""
    return [
        ("read", {"path": path}),
        ("read", {"path": path, "offset": 10**9, "limit": 1}),
        ("ls", {"path": path}),
        ("glob", {"pattern": "*", "path": path}),
        ("glob", {"pattern": path}),
        ("grep", {"pattern": "x", "path": path}),
        ("grep", {"pattern": "x", "glob": path}),
        ("edit", {"path": path, "edits": [{"oldText": "x", "newText": "y"}]}),
    ]


@pytest.mark.parametrize("path", _ODD, ids=range(len(_ODD)))
async def test_odd_paths(use: Any, odd: Path, tmp_path: Path, path: str) -> None:
    for name, args in calls(path):
        assert "hidden treasure" not in await tried(use, name, **args), (name, args)
    assert (tmp_path / "secret").read_text() == "hidden treasure\n"
    assert not temporary(odd)


@pytest.mark.parametrize("path", [one for one in _ODD if one not in ("é\u202e", "-rf")])
async def test_writing_to_odd_paths(use: Any, odd: Path, tmp_path: Path, path: str) -> None:
    before = sorted(os.listdir(tmp_path))
    await tried(use, "write", path=path, content="y\n")
    assert (tmp_path / "secret").read_text() == "hidden treasure\n"
    assert sorted(os.listdir(tmp_path)) == before and not temporary(odd)
    for kind in ("pipe", "socket", "folder", "link", "loop", "dangling"):
        assert not (odd / kind).is_file() or (odd / kind).is_symlink(), kind


_NO_ARGS: tuple[Any, ...] = (
    {}, {"path": None}, {"path": 5}, {"path": ["a"]}, {"pattern": {"a": 1}}, {"limit": "many"},
    {"command": None}, {"edits": "x"}, {"edits": [{}]}, {"edits": [None]}, {"content": 7},
    {"path": "a", "offset": -1}, {"path": "a", "limit": -(10**30)}, {"context": 10**9},
    {"timeout": "x", "command": "true"}, {"timeout": -1, "command": "true"},
    {"timeout": 1e308, "command": "true"}, {"id": {"a": 1}}, {"wait": -5}, {"url": 3},
    {"questions": 1}, {"entries": "x"}, {"plan": [[]]},
)  # fmt: skip


@pytest.mark.parametrize("args", _NO_ARGS, ids=range(len(_NO_ARGS)))
async def test_arguments_of_the_wrong_kind(use: Any, box: Box, work: Path, args: Any) -> None:
    for spec in box.specs():
        if spec.name not in ("ask_user", PROPOSE):  # they ask a human, whatever they were given
            await tried(use, spec.name, **args)


@promised(30, else_within=200)
async def test_huge_files(use: Any, work: Path, within: float) -> None:
    with open(work / "huge", "wb") as file:
        file.write(b"first needle\n")
        file.truncate(8 << 30)  # eight gigabytes of nothing
        file.seek(0, os.SEEK_END)
        file.write(b"\nlast\n")
    (work / "line").write_bytes(b"n" * (9 << 20))
    (work / "lines").write_bytes(b"\n" * (3 << 20))
    began = time.monotonic()
    for name in ("huge", "line", "lines"):
        assert len(await tried(use, "read", path=name)) < 200_000
        await tried(use, "edit", path=name, edits=[{"oldText": "needle", "newText": "x"}])
    assert "needle" not in await tried(use, "grep", pattern="needle")
    assert "line" in await tried(use, "grep", pattern="nnn")
    assert time.monotonic() - began < within


@pytest.mark.parametrize(
    "data",
    [
        b"\x89PNG\r\n\x1a\n" + b"\0" * 100,
        b"%PDF-1.7\n" + b"\xff" * 5_000,
        b"%PDF-1.4\n1 0 obj<</Length 99999999999>>stream\n",
        b"GIF89a\xff\xff\xff\xff",
        b"\xff\xd8\xff",
        b'{"cells": [' + b"[" * 100_000,
        b'{"cells": {"a": 1}}',
        b"\xfe\xff" + "utf-16".encode("utf-16-be"),
        b"",
        b"\0",
    ],
    ids=range(10),
)
@pytest.mark.parametrize("ending", ["png", "pdf", "ipynb", "jpg", "gif", "txt"])
async def test_documents_that_are_not_what_they_say(
    use: Any, work: Path, data: bytes, ending: str
) -> None:
    (work / f"a.{ending}").write_bytes(data)
    await tried(use, "read", path=f"a.{ending}")


async def test_files_that_change_underneath(use: Any, work: Path, tmp_path: Path) -> None:
    """Somebody swaps a file for a link, a folder, nothing, all the while."""
    target = tmp_path / "outside"
    target.write_text("hidden treasure x\n")
    halt = threading.Event()
    place = work / "moving"
    # rg opens a pipe that came after its look, and waits there until the tool's own limit ends it.
    waits = bool(ripgrep.program())

    def swap() -> None:
        kinds = 0
        while not halt.is_set():
            kinds += 1
            other = work / f"next{kinds % 2}"
            other.unlink(missing_ok=True)
            if kinds % 3 == 0:
                other.symlink_to(target)
            elif kinds % 3 == 1 or waits:
                other.write_text("x plain\n" * (kinds % 50 + 1))
            else:
                os.mkfifo(other)
            os.replace(other, place)

    place.write_text("x\n")
    thread = threading.Thread(target=swap)
    thread.start()
    try:
        for _ in range(60):
            for name, args in calls("moving"):
                if "offset" not in args:
                    assert "treasure" not in await tried(use, name, **args)
            await tried(use, "write", path="moving", content="mine\n")
    finally:
        halt.set()
        thread.join()
    assert target.read_text() == "hidden treasure x\n"
    assert not temporary(work)


async def test_folders_that_go_away_underneath(use: Any, work: Path) -> None:
    halt = threading.Event()

    def churn() -> None:
        number = 0
        while not halt.is_set():
            number += 1
            folder = work / f"d{number % 5}"
            if folder.exists():
                (folder / "f").unlink(missing_ok=True)
                folder.rmdir()
            else:
                folder.mkdir()
                (folder / "f").write_text("needle\n")

    thread = threading.Thread(target=churn)
    thread.start()
    try:
        for _ in range(15):
            await tried(use, "grep", pattern="needle")
            await tried(use, "glob", pattern="**/f")
            await tried(use, "ls", path="d1")
    finally:
        halt.set()
        thread.join()


@pytest.mark.parametrize(
    "command",
    [
        "printf '\\377\\376\\0\\033[2J'",
        "head -c 3000000 /dev/zero",
        "yes | head -c 20000000",
        "exit 300",
        "kill -9 $$",
        "exec 1>&- 2>&-",
        "echo $((",
        "cat",
        'read line; echo "<$line>"',
        "ulimit -n 3; cat /dev/null",
        'rm -rf "$PWD"; pwd',
        "echo " + "x" * 120_000,
        "\n\n",
        "#",
    ],
    ids=range(14),
)
async def test_commands(use: Any, work: Path, command: str) -> None:
    said = await tried(use, "bash", command=command, timeout=5)
    assert "\0" not in said or "zero" in command or "printf" in command


async def test_a_background_command_that_floods(use: Any, env: Env) -> None:
    said = await tried(use, "bash", command="yes", background=True)
    id = said.rpartition(" ")[2].rstrip("]")
    for _ in range(3):
        assert len(await tried(use, "bash_output", id=id)) < 200_000
    await tried(use, "bash_kill", id=id)
    assert "running" not in await tried(use, "bash_output")
    assert "no background command" in await tried(use, "bash_output", id="../../x")
    assert "no background command" in await tried(use, "bash_kill", id="bg" + "9" * 4_000)


@pytest.mark.parametrize("rg", [True, False])
async def test_no_name_looks_like_another_line(
    use: Any, work: Path, rg: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What a name has in it that ends a line, steers a terminal or is no text is written out."""
    if not rg:
        monkeypatch.setattr("dragoman.tools.ripgrep.program", lambda: "")
    odd = {
        b"a\nfake.py": r'"a\nfake.py"',
        b"b\x1b[2J\r\t": r'"b\033[2J\r\t"',
        b"c\xff\xfe": r'"c\377\376"',
        "d\u2028e\x85".encode(): r'"d\342\200\250e\302\205"',
        b'f"g\\\n': r'"f\"g\\\n"',
        'h"i\\ é🦜'.encode(): 'h"i\\ é🦜',
    }
    for name in odd:
        (work / os.fsdecode(name)).write_text("needle\n")
    (work / "folder\n").mkdir()
    (work / "folder\n" / "x").write_text("needle\n")
    listed = (await tried(use, "ls")).split("\n")
    assert sorted(listed) == sorted([*odd.values(), r'"folder\n"/'])
    within = r'"folder\nx"'.replace(r"\nx", r"\n/x")
    assert sorted((await tried(use, "glob", pattern="**")).split("\n")) == sorted(
        [*odd.values(), within]
    )
    found = (await tried(use, "grep", pattern="needle")).split("\n")
    assert sorted(found) == sorted(f"{name}:1: needle" for name in [*odd.values(), within])
    assert await tried(use, "read", path="a\nfake.py") == "needle\n"


async def test_commands_that_cannot_be_started_say_why(use: Any) -> None:
    said = await tried(use, "bash", command=f"echo {'x' * 3_000_000}")
    assert "3000005 characters" in said and "file" in said
    assert "UTF-8" in await tried(use, "bash", command="echo \ud800")
