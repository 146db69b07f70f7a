"""One connection of a client, against a socket that knows its part: `wire`, `stream`, `launch`."""

import asyncio
import json
import os
from collections.abc import Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from dragoman.client import launch
from dragoman.client.problems import ConnectionGone, NotRunning
from dragoman.client.stream import Stream
from dragoman.client.wire import Wire
from dragoman.engine import events as ev
from dragoman.engine.faults import UnknownSession

Say = Callable[[Any], None]


@asynccontextmanager
async def served(
    folder: Path, hear: Callable[[dict[str, Any], Say], Awaitable[None] | None]
) -> Any:
    """A host: greetings are answered, all else is heard by `hear`."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        def say(message: Any) -> None:
            data = message if isinstance(message, bytes) else json.dumps(message).encode() + b"\n"
            writer.write(data)

        while line := await reader.readline():
            asked = json.loads(line)
            if asked["method"] in ("initialize", "dragoman/hello"):
                say({"id": asked["id"], "result": {}})
            elif (found := hear(asked, say)) is not None:
                await found
        writer.close()

    server = await asyncio.start_unix_server(serve, path := str(folder / "s"))
    try:
        yield path
    finally:
        server.close()


def told(session: str, seq: int, gseq: int, event: Any) -> dict[str, Any]:
    params = {"session": session, "seq": seq, "gseq": gseq, "at": 1, "event": event}
    return {"method": "dragoman/event", "params": params}


# --- wire ---


async def test_wire_gives_answers_faults_and_notices_apart(tmp_path: Path) -> None:
    def hear(asked: dict[str, Any], say: Say) -> None:
        if asked["method"] == "bad":
            data = {"code": "unknown_session", "message": "no such", "hint": "look"}
            say({"id": asked["id"], "error": {"code": 1, "message": "x", "data": data}})
        else:
            say({"method": "news", "params": {"n": 1}})
            say({"id": 999, "result": "of nobody"})
            say({"id": asked["id"], "result": asked["params"]})

    async with served(tmp_path, hear) as path:
        wire = Wire(path, "test")
        await wire.open()
        assert json.loads(bytes(await wire.send("echo", {"a": 1}))) == {"a": 1}
        news = await wire.told()
        assert news is not None and news.method == "news"
        with pytest.raises(UnknownSession, match="no such"):
            await wire.send("bad", {})
        await wire.close()
        with pytest.raises(ConnectionGone):
            await wire.send("echo", {})


async def test_wire_marks_where_a_call_was_answered_among_the_news(tmp_path: Path) -> None:
    def hear(asked: dict[str, Any], say: Say) -> None:
        say({"method": "before"})
        say({"id": asked["id"], "result": 1})
        say({"method": "after"})

    async with served(tmp_path, hear) as path:
        wire = Wire(path, "test")
        await wire.open()
        await wire.send("x", {}, mark=True)
        found = [await wire.told() for _ in range(3)]
        assert [one.method if one else None for one in found] == ["before", None, "after"]
        await wire.close()


@pytest.mark.parametrize("said", [b"no json\n", b'{"id": {}}\n', b"[]\n", b'{"method": "half'])
async def test_wire_a_line_that_is_none_ends_the_connection_for_all(
    tmp_path: Path, said: bytes
) -> None:
    async with served(tmp_path, lambda asked, say: say(said)) as path:
        wire = Wire(path, "test")
        await wire.open()
        answer = wire.send("x", {})
        if not said.endswith(b"\n"):
            wire._writer.write_eof()
        with pytest.raises(ConnectionGone):
            await asyncio.wait_for(answer, 60)
        with pytest.raises(ConnectionGone):
            await asyncio.wait_for(wire.told(), 60)
        await wire.close()


async def test_wire_an_impatient_one_forgets_the_oldest_news(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dragoman.client.wire._AHEAD", 3)

    def hear(asked: dict[str, Any], say: Say) -> None:
        for number in range(9):
            say({"method": f"n{number}"})
        say({"id": asked["id"], "result": 1})

    async with served(tmp_path, hear) as path:
        wire = Wire(path, "test", patient=False)
        await wire.open()
        await asyncio.wait_for(wire.send("x", {}), 60)
        assert [(await wire.told()).method for _ in range(3)] == ["n6", "n7", "n8"]
        await wire.close()


async def test_wire_says_that_nobody_listens(tmp_path: Path) -> None:
    for path in (tmp_path / "none", tmp_path):
        with pytest.raises(NotRunning, match="nobody listens"):
            await Wire(str(path), "test").open()
    with pytest.raises(ConnectionGone, match="not open"):
        await Wire("x", "test").send("x", {})


# --- stream ---


async def test_stream_knows_its_place_by_session_or_by_store(tmp_path: Path) -> None:
    def hear(asked: dict[str, Any], say: Say) -> None:
        say({"id": asked["id"], "result": {"watch": "w", "last": 4, "newest": 9}})
        say(told("s", 5, 50, {"type": "renamed", "title": "T"}))
        say({"method": "other"})
        say(told("s", 0, 0, {"type": "text_delta", "turn": "t", "text": "x"}))

    for params, place in (({"session_id": "s", "since": 4}, 5), ({}, 50)):
        async with served(tmp_path, hear) as path:
            async with Stream(Wire(path, "test"), params) as stream:
                assert (stream.place, stream.last) == (4, 9)
                first, second = await anext(stream), await anext(stream)
                assert first.body == ev.Renamed("T") and stream.place == place
                assert type(second.body) is ev.TextDelta and stream.place == place
                await stream.open()  # once is enough
        (tmp_path / "s").unlink(missing_ok=True)  # newer Pythons do it


async def test_stream_ends_with_the_connection(tmp_path: Path) -> None:
    def hear(asked: dict[str, Any], say: Say) -> None:
        say({"id": asked["id"], "result": {"watch": "w", "last": 0, "newest": 0}})

    async with served(tmp_path, hear) as path:
        stream = Stream(Wire(path, "test"), {})
        await stream.open()
        stream._wire._writer.write_eof()
        assert [event async for event in stream] == []
        await stream.aclose()


# --- launch ---


def test_launch_begins_a_daemon_that_is_nobodys_child(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun: list[Any] = []

    class Popen:
        def __init__(self, words: list[str], **how: Any) -> None:
            os.write(how["stdout"], b"said\n")
            begun.append((words, how))

    monkeypatch.setattr(launch.subprocess, "Popen", Popen)
    launch.launch(str(tmp_path), ["--native"], {"A": "b"})
    ((words, how),) = begun
    assert words[3:] == ["dragoman", "daemon", "--native", "--config-dir", str(tmp_path)]
    assert how["start_new_session"] and how["env"] == {"A": "b"} and how["stdin"] == -3
    log = Path(launch.log_path(str(tmp_path)))
    assert log.read_text() == "said\n" and log.stat().st_mode & 0o777 == 0o600
    log.unlink()
    log.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(OSError):
        launch.launch(str(tmp_path))  # the log is not written through a link
