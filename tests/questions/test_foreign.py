"""Questions about calls that run elsewhere: files are shown as they are, not as they are told."""

import os
from pathlib import Path

import pytest
from tests.dialects.humanlayer.desk import Client, make

from dragoman.engine.ask import Change
from dragoman.engine.foreign import look

TEXT = "one\ntwo\nthree\ntwo\n"


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "a.txt"
    path.write_text(TEXT)
    return path


@pytest.mark.parametrize(
    ("args", "changes"),
    [
        ({"file_path": "a.txt", "content": "x"}, [(TEXT, "x", 1)]),
        ({"path": "a.txt", "file_text": "x"}, [(TEXT, "x", 1)]),
        ({"file_path": "new.txt", "content": "x"}, [(None, "x", 1)]),
        ({"file_path": "a.txt", "old_string": "two", "new_string": "2"}, [("two", "2", 2)]),
        (
            {"file_path": "a.txt", "old_string": "two", "new_string": "2", "replace_all": True},
            [("two", "2", 2), ("two", "2", 4)],
        ),
        (
            {"file_path": "a.txt", "edits": [{"old_string": "one", "new_string": "1"},
                                             {"oldText": "three", "newText": "3"}]},
            [("one", "1", 1), ("three", "3", 3)],
        ),
        ({"file_path": "a.txt", "old_string": "", "new_string": "x"}, [(TEXT, "x", 1)]),
        ({"file_path": "a.txt"}, []),
        ({"command": "rm a.txt"}, []),
        ({"file_path": 7, "content": "x"}, []),
        ({"file_path": "a\0b", "content": "x"}, []),
        ({"edits": "none", "file_path": "a.txt"}, []),
    ],
)  # fmt: skip
def test_what_arguments_describe(file: Path, args: dict, changes: list) -> None:
    found = look(args, str(file.parent))
    assert [(c.old, c.new, c.line) for c in found.changes] == changes
    assert len(found.seen) == (1 if changes else 0)


def test_what_an_agent_draws_is_compared_with_the_file(file: Path) -> None:
    cwd = str(file.parent)
    for old, note in ((None, "replaces"), ("", "otherwise"), ("gone", "does not hold")):
        (found,) = look({}, cwd, [Change("a.txt", old, "x")]).changes
        assert note in found.note and (found.old == TEXT or old == "gone")
    (found,) = look({}, cwd, [Change(str(file), TEXT, "x")]).changes
    assert not found.note


def test_what_cannot_be_shown_is_said(file: Path, tmp_path: Path) -> None:
    work = tmp_path / "work"
    work.mkdir()
    (work / "binary").write_bytes(b"a\0b")
    os.mkfifo(work / "pipe")
    (work / "link").symlink_to(file)
    (work / "large").write_bytes(b"x" * (3 << 20))
    words = {"binary": "binary", "pipe": "no ordinary", "link": "outside", "large": "3,145,728",
             str(file): "outside"}  # fmt: skip
    for name, word in words.items():
        found = look({"file_path": name, "content": "x"}, str(work))
        assert word in found.changes[0].note and TEXT not in str(found.changes[0].old)
    before = look({"file_path": "link", "content": "x"}, str(work)).seen
    file.write_text("other")
    assert look({"file_path": "link", "content": "x"}, str(work)).seen != before


async def test_an_approval_from_outside_is_about_the_file_that_was_shown(file: Path) -> None:
    _, desk = make(["done"])
    client = Client(desk)
    started = await client.call("launchSession", query="x", working_dir=str(file.parent))
    given = {"file_path": str(file), "content": "mine\n"}
    asking = {"run_id": started["run_id"], "tool_name": "Write", "tool_input": given}

    async def ask() -> str:
        return str((await client.call("createApproval", **asking))["approval_id"])

    async def row(ask_id: str) -> dict:
        found: dict = (await client.call("getApproval", approval_id=ask_id))["approval"]
        return found

    first = await ask()
    shown = await row(first)
    assert "three" in shown["question"] and "mine" in shown["question"] and shown["digest"]
    file.write_text("precious\n")
    await client.call("sendDecision", approval_id=first, decision="approve")
    settled = await row(first)
    assert settled["status"] == "denied" and "Ask again" in settled["comment"]
    second = await ask()
    assert "precious" in (await row(second))["question"]
    await client.call("sendDecision", approval_id=second, decision="approve")
    assert (await row(second))["status"] == "approved"
