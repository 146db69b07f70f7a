"""Lines that are almost right: nothing breaks, and what must be answered is."""

import json
import random

import pytest
from tests.lane import share

from dragoman.testing.host import host_of

from .talking import FULL, Talker, desk_of, manifest

METHODS = [
    "app.register", "app.heartbeat", "app.ready", "app.shutdown", "capability.register",
    "capability.unregister", "hook.subscribe", "hook.unsubscribe", "hook.result", "hook.info",
    "config.get", "config.watch", "nope", "gateway.call",
]  # fmt: skip
VALUES = [
    None, True, 0, -1, 1.5, "", "x", "ü😀", [], [1], {}, {"a": 1}, "telegram", "message_sending",
    "null", 10**30, "\u2028", ["message_sending"], {"id": "telegram"}, {"eventId": "x"},
]  # fmt: skip
KEYS = ["id", "type", "timestamp", "method", "params", "token", "manifest", "config", "events",
        "eventId", "result", "path", "paths", "status", "capabilityId", "event"]  # fmt: skip
COUNT = share(200_000, 30_000)


def lines(chance: random.Random):
    """Requests, then requests with wrong parts, then bytes that were requests once."""
    seeds = [
        {"id": "1", "type": "request", "timestamp": 1, "method": method, "params": params}
        for method in METHODS
        for params in ({}, {"manifest": manifest(**FULL)}, {"events": ["message_sending"]},
                       {"type": "channel", "config": {"id": "telegram"}},
                       {"eventId": "x", "result": None})
    ]  # fmt: skip
    texts = [json.dumps(seed, ensure_ascii=False).encode() for seed in seeds]
    while True:
        way = chance.random()
        if way < 0.4:
            message = dict(chance.choice(seeds))
            for _ in range(chance.randint(1, 3)):
                message[chance.choice(KEYS)] = chance.choice(VALUES)  # type: ignore[assignment]
            if chance.random() < 0.5:
                params = {chance.choice(KEYS): chance.choice(VALUES) for _ in range(3)}
                message["params"] = params  # type: ignore[assignment]
            yield json.dumps(message, ensure_ascii=chance.random() < 0.5).encode()
            continue
        text = bytearray(chance.choice(texts))
        for _ in range(chance.randint(1, 4)):
            at = chance.randrange(len(text))
            match chance.randrange(4):
                case 0:
                    text[at] = chance.randrange(256)
                case 1:
                    del text[at : at + chance.randint(1, 8)]
                case 2:
                    text[at:at] = chance.randbytes(chance.randint(1, 4))
                case 3:
                    text[at:at] = text[: chance.randint(1, 30)]
            if not text:
                text = bytearray(b" ")
        yield bytes(text).replace(b"\n", b" ")


@pytest.mark.slow
async def test_mutated_lines_break_nothing():
    chance = random.Random(7)
    desk = desk_of(config={"a": 1})
    broken = []
    host_of(desk.door).trouble = lambda what, error, **data: broken.append((what, error))
    talker = Talker(desk)
    source = lines(chance)
    answers = 0
    for round in range(COUNT // 100):
        if talker.end.pump.closed:
            talker = Talker(desk)
        talker.end.send(*[next(source) for _ in range(100)])
        for line in talker.end.received():
            assert line.isascii()
            message = json.loads(line)
            answers += message["type"] == "response"
            if message["type"] == "response" and not message["success"]:
                assert message["error"]["code"] != "INTERNAL_ERROR", message
        if round % 500 == 0:
            talker = Talker(desk)
    assert broken == []
    assert answers > COUNT // 2
    last = Talker(desk)
    await last.call("app.register", {"manifest": manifest("@last/app")})
    await last.call("app.heartbeat", {})
