"""kill -9 in the middle of turns: what was committed is there, and nothing that ran runs again."""

import random
import subprocess
import sys
from pathlib import Path

import pytest
from tests.lane import share

from dragoman.engine.content import ToolCall, ToolResult
from dragoman.store.sqlite import open_store
from dragoman.testing.host import EchoTool, host_of, memory_door
from dragoman.testing.script import Scripted

WORKER = Path(__file__).with_name("worker.py")
KILLS = share(50, 15)


def live_and_die(folder: Path, session: str, life: str, acks: int) -> list[tuple[int, str]]:
    """Run the worker until it acknowledged so many events, then kill it; returns all it said."""
    process = subprocess.Popen(
        [sys.executable, str(WORKER), str(folder), session, life], stdout=subprocess.PIPE
    )
    assert process.stdout is not None
    said = []
    for _ in range(acks):
        line = process.stdout.readline()
        assert line, "the worker died by itself"
        said.append(line)
    process.kill()
    said += process.stdout.readlines()
    process.wait(60)
    process.stdout.close()
    whole = [line.split() for line in said if line.endswith(b"\n")]
    return [(int(seq), kind.decode()) for seq, kind in whole]


@pytest.mark.timeout(180)
@pytest.mark.slow
async def test_kills_lose_nothing_and_repeat_nothing(tmp_path):
    chance = random.Random(7)
    session = "the-session"
    for life in range(KILLS):
        acked = live_and_die(tmp_path, session, f"life{life}", chance.randint(1, 25))
        store, notices = open_store(tmp_path / "sessions.db")
        assert not notices
        door = memory_door(Scripted(["fine"]), [EchoTool("mark")], store=store)
        kinds = {e.seq: type(e.body).__name__ for e in await door.history(session)}
        assert acked and all(kinds[seq] == kind for seq, kind in acked)
        assert sorted(kinds) == list(range(1, len(kinds) + 1))
        host_of(door).owner = f"check{life}"
        await door.load(session)
        state = host_of(door).live[session].state
        assert state.status not in ("running", "starting") and not state.journal
        calls, results = [], []
        for message in state.messages:
            calls += [b.id for b in message.content if isinstance(b, ToolCall)]
            results += [b.call_id for b in message.content if isinstance(b, ToolResult)]
        assert calls == results  # every call has exactly one result, in order
        await host_of(door).stop(1.0)
        await store.close()
    marks = (tmp_path / "marks").read_text().split()
    assert len(marks) == len(set(marks))
