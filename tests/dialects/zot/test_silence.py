"""A place at a session: silence is told, and only while something is under way."""

import asyncio
import json

from dragoman.dialects.zot import Desk, Settings, seat
from dragoman.testing.host import memory_door
from dragoman.testing.script import Scripted, hang, turn
from dragoman.transports.memory import Client


async def frames_until(client, kind, count=1):
    frames = []
    while sum(one["type"] == kind for one in frames) < count:
        frames.append(json.loads(await client.receive(60)))
    return frames


async def test_a_model_that_says_nothing_is_told_of_until_it_ends(monkeypatch):
    monkeypatch.setattr(seat, "_SILENCE", 0.05)
    door = memory_door(Scripted([turn(hang()), "done"]), mode="full")
    client = Client(Desk(door, Settings(cwd="/", keeps=False)).hearer)
    client.send(b'{"id":"1","type":"prompt","message":"go"}')
    frames = await frames_until(client, "waiting", 3)
    kinds = [one["type"] for one in frames]
    assert kinds[:2] == ["response", "user_message"] and kinds.index("waiting") > 1
    seconds = [one["seconds"] for one in frames if one["type"] == "waiting"]
    assert seconds == sorted(seconds) and all(type(one) is int for one in seconds)
    client.send(b'{"id":"2","type":"abort"}')
    await frames_until(client, "done")
    # Nothing comes behind `done`: clients would take it for a part of their next prompt.
    await asyncio.sleep(0.09)
    client.send(b'{"id":"3","type":"ping"}')
    assert json.loads(await client.receive(60))["id"] == "3"


async def test_what_is_answered_soon_says_nothing_of_silence():
    door = memory_door(Scripted(["hello"]), mode="full")
    client = Client(Desk(door, Settings(cwd="/", keeps=False)).hearer)
    client.send(b'{"id":"1","type":"prompt","message":"go"}')
    frames = await frames_until(client, "done")
    assert "waiting" not in [one["type"] for one in frames]
