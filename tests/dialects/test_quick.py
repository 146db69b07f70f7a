"""Quick answers and the whole way say the same, on random input."""

import json
import random
import re
from collections.abc import Iterator
from importlib import import_module
from typing import Any

import pytest

from dragoman.engine.host import OpenSpec
from dragoman.testing.host import memory_door
from dragoman.testing.script import Scripted
from dragoman.transports.memory import Client

METHODS = {
    "zeroclaw": "status",
    "humanlayer": "health",
    "openclawos": "app.heartbeat",
    "zot": "ping",
}
IDS: list[Any] = [1, 0, -3, 2**60, 2**70, 1.5, "a", "", "ä", "\ud800", "%d%s", None, [], {}, True]
PARAMS: list[Any] = [{}, {"status": {"a": 1}}, {"status": 5}, [], None, 7, "x"]
REGISTER = {
    "id": "r", "type": "request", "timestamp": 1, "method": "app.register",
    "params": {"manifest": {"id": "@t/app", "name": "t", "version": "1.0.0", "type": "app",
                            "main": "x", "protocol": {"version": "1.0"}, "capabilities": {}}},
}  # fmt: skip
HELLO = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {"protocolVersion": 1}}


def lines(name: str, dice: random.Random) -> Iterator[bytes]:
    """Requests for the quick method, from plain to odd."""
    for _ in range(600):
        made: dict[str, Any] = {"id": dice.choice(IDS)}
        if dice.randrange(9) == 0:
            del made["id"]
        if name == "zot":
            made["type"] = METHODS[name]
        else:
            made["method"] = METHODS[name]
            if name == "openclawos":
                made |= {"type": "request", "timestamp": 1}
                if dice.randrange(4) == 0:
                    made["token"] = dice.choice(["x", None, 5])
            else:
                made["jsonrpc"] = dice.choice(["2.0", "2.0", "2.0", "1.0"])
        if dice.randrange(2):
            made["params"] = dice.choice(
                [{}, {"status": {"a": 1}}, {"status": 5}, [], None, 7, "x"]
            )
        pairs = list(made.items())
        dice.shuffle(pairs)
        yield json.dumps(dict(pairs), ensure_ascii=dice.randrange(2) == 0).encode(
            errors="surrogatepass"
        )


def talk(name: str, desk: Any, sent: list[bytes]) -> list[str]:
    """What is answered; times and running numbers are left out."""
    client = Client(desk.hearer)
    first = {"zeroclaw": [HELLO], "openclawos": [REGISTER]}.get(name, [])
    client.send(*[json.dumps(one).encode() for one in first], *sent)
    text = b"\n".join(client.received()).decode()
    client.drop()
    return re.sub(r'"id":"\w+-\d+"|imestamp":\d+|erverTime":\d+|"token":"[^"]*"', "", text).split(
        "\n"
    )


@pytest.mark.parametrize("name", METHODS)
async def test_both_ways_answer_the_same(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    door = memory_door(Scripted([]))
    desk = import_module(f"dragoman.dialects.{name}").Desk(door)
    sent = list(lines(name, random.Random(815)))
    quick = talk(name, desk, sent)
    if name == "zot":
        hearer = import_module("dragoman.dialects.zot.hear").ZotHearer
        monkeypatch.setattr(hearer, "hear", lambda self, given: self.shell.hear(given))
    else:
        verb = import_module(f"dragoman.dialects.{name}.verbs").VERBS[METHODS[name]]
        monkeypatch.setattr(verb, "quick", None)
    slow = talk(name, desk, sent)
    assert len(quick) > 400
    tuis = r'"tuiId":"[^"]*"'
    assert [re.sub(tuis, "", one) for one in quick] == [re.sub(tuis, "", one) for one in slow]


async def test_the_known_list_is_the_read_one() -> None:
    door = memory_door(Scripted(["50% done"], loop=True))
    desk = import_module("dragoman.dialects.humanlayer").Desk(door)
    client = Client(desk.hearer)
    launch = {"query": "is it 100%?", "title": "%d %s"}
    client.send(
        json.dumps(
            {"jsonrpc": "2.0", "id": 1, "method": "launchSession", "params": launch}
        ).encode()
    )
    await client.receive()
    for live in door.live_ids():
        await door.idle(live)
    asked = b'{"jsonrpc":"2.0","method":"listSessions","id":7}'
    client.send(asked)
    read = await client.receive()
    client.send(asked, asked)
    assert [await client.receive(), await client.receive()] == [read, read]
    await desk.close()


@pytest.mark.parametrize("seed", range(3))
async def test_both_ways_to_a_list_answer_the_same(
    seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`listSessions` at hand and read, between random changes, asked in random words."""
    chance = random.Random(seed)
    door = memory_door(Scripted(["ok"], loop=True))
    desk = import_module("dragoman.dialects.humanlayer").Desk(door)
    client = Client(desk.hearer)
    verb = import_module("dragoman.dialects.humanlayer.verbs").VERBS["listSessions"]
    quick, hits = verb.quick, []

    def counted(conn: Any) -> Any:
        hits.append(quick(conn))
        return hits[-1]

    ids: list[str] = []
    for number in range(60):
        if not ids or chance.randrange(6) == 0:
            ids.append((await door.open(OpenSpec(cwd="/", title=f"%d {number} %s"))).id)
        elif chance.randrange(4) == 0:
            await door.rename(chance.choice(ids), chance.choice(["50 %", "ä", "%(x)s"]))
        asked: dict[str, Any] = {"jsonrpc": "2.0", "method": "listSessions"}
        asked["id"] = chance.choice([1, 0, -3, 2**60, "a", "ä", 1.5])
        if chance.randrange(3) == 0:
            asked["params"] = chance.choice([{}, {"leafOnly": True}, [], 7, None])
        line = json.dumps(asked).encode()
        said = []
        for way in (counted, None, counted):
            monkeypatch.setattr(verb, "quick", way)
            client.send(line)
            said.append(await client.receive())
        assert said[0] == said[1] == said[2], line
    assert sum(one is not None for one in hits) > 20
    await desk.close()
