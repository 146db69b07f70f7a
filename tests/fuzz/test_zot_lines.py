"""Mutated zot lines: each gets one answer, nothing breaks, nothing grows."""

import asyncio
import json
import os
import random
import subprocess
import sys
import threading

import pytest
from tests.lane import share

from dragoman.dialects.zot import Desk, Settings
from dragoman.testing.host import memory_door
from dragoman.testing.script import Scripted
from dragoman.transports.memory import Client

SEEDS = [
    b'{"id":"1","type":"ping"}',
    b'{"id":"2","type":"abort"}',
    b'{"id":"3","type":"get_state"}',
    b'{"id":"4","type":"get_messages"}',
    b'{"id":"5","type":"get_models"}',
    b'{"id":"6","type":"hello","token":"shared-secret"}',
    b'{"id":"7","type":"get_capabilities"}',
    b'{"id":"8","type":"list_sessions","limit":3,"cursor":""}',
    b'{"id":"9","type":"approve","approval":"ask_1","decision":"allow"}',
    b'{"id":"10","type":"steer","message":"left"}',
    b'{"id":"11","type":"set_model","model":"nope"}',
    b'{"id":"12","type":"prompt","message":"hi","images":[{"mime_type":"image/png","data":"!"}]}',
    b'{"id":"13","type":"frobnicate","deep":{"a":[1,2,{"b":null}]},"n":1e308}',
    '{"id":"é\\u2028😀","type":"ping","x":"\\ud83d\\ude00"}'.encode(),
    b"null",
    b"[]",
]
PIECES = [
    b'"', b"\\", b"{", b"}", b"[" * 300, b"]" * 300, b":", b",", b"null", b"-0", b"1e999", b"\x00",
    b"\xff\xfe", b"\xed\xa0\x80", b"\\ud800", b"\\u", b"\xe2\x80\xa8", b"\r", b"\t", b" ",
    b"\xef\xbb\xbf",
    b'"id":5,', b'"type":"ping",', b'"TYPE":"ping"', b"9" * 400, b"tru", b"/*", b"'",
]  # fmt: skip


def mutated(chance: random.Random) -> bytes:
    line = bytearray(chance.choice(SEEDS))
    for _ in range(chance.choice((0, 1, 1, 2, 3, 8))):
        at = chance.randrange(len(line) + 1)
        kind = chance.randrange(6)
        if kind == 0 and line:
            line[at % len(line)] = chance.randrange(256)
        elif kind == 1:
            line[at:at] = chance.choice(PIECES)
        elif kind == 2:
            del line[at : at + chance.randrange(12)]
        elif kind == 3:
            line[at:at] = line[at : at + chance.randrange(40)]
        elif kind == 4:
            line[at:] = chance.choice(SEEDS)[chance.randrange(10) :]
        else:
            line[at:at] = chance.randbytes(chance.randrange(6))
    return bytes(line).replace(b"\n", b"?")


def resident() -> int:
    with open("/proc/self/statm", "rb") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


async def settle(hearer, door) -> None:
    """Wait until all commands are answered; a mutation may have become a prompt."""
    async with asyncio.timeout(60):
        while hearer.shell.working:
            await asyncio.wait(set(hearer.shell.tasks))
        for info in door.live_infos():
            await door.idle(info.id)
        for _ in range(3):  # the last words are said one turn of the loop later
            await asyncio.sleep(0)


@pytest.mark.timeout(120)
@pytest.mark.slow
async def test_many_lines_through_the_hearer():
    door = memory_door(Scripted(["hello"], loop=True), mode="full")
    made = []

    def open_link(link):
        made.append(Desk(door, Settings(cwd="/", keeps=False)).hearer(link))
        return made[0]

    client = Client(open_link)
    chance = random.Random(20260419)
    before = 0
    for round_number in range(share(1_000, 300)):
        lines = [mutated(chance) for _ in range(200)]
        data = b"\n".join(lines) + b"\n"
        cut = chance.randrange(len(data))
        client.feed(data[:cut])
        client.feed(data[cut:])
        await settle(made[0], door)
        answers = [line for line in client.received() if line.startswith(b'{"command":')]
        said = [line for line in lines if line.strip()]
        assert len(answers) == len(said), "every line gets one answer"
        for answer in answers:
            assert answer.endswith(b'"type":"response"}')
        if round_number % 50 == 0:
            for answer in answers:
                json.loads(answer)
        client.wire.out.clear()
        client.wire.writes.clear()
        client._read = 0
        if round_number == 200:
            before = resident()
    assert resident() - before < 8 * 1024 * 1024
    client.send(b'{"id":"after","type":"ping"}')
    await asyncio.sleep(0)
    assert json.loads(await client.receive())["id"] == "after"
    client.drop()


@pytest.mark.timeout(60)
def test_twenty_thousand_lines_through_a_process(tmp_path):
    chance = random.Random(7)
    lines = [mutated(chance) for _ in range(20_000)]
    env = {k: v for k, v in os.environ.items() if not k.endswith("_API_KEY")}
    env |= {"DRAGOMAN_CONFIG_DIR": str(tmp_path), "OLLAMA_HOST": "127.0.0.1:9"}
    process = subprocess.Popen(
        [sys.executable, "-m", "dragoman", "rpc", "--provider", "demo"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=env,
    )  # fmt: skip

    def memory() -> int:
        with open(f"/proc/{process.pid}/statm", "rb") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

    def feed(part: list[bytes]) -> None:
        process.stdin.write(b"\n".join(part) + b"\n")
        process.stdin.flush()

    def hear(wanted: int) -> None:
        """Read until so many answers came; some wait until a prompt before them is done."""
        while wanted:
            frame = json.loads(process.stdout.readline())
            wanted -= frame["type"] == "response"

    sizes = []
    for part in (lines[:10_000], lines[10_000:]):
        writer = threading.Thread(target=feed, args=(part,))
        writer.start()
        hear(sum(1 for line in part if line.strip()))
        writer.join(60)
        sizes.append(memory())
    assert sizes[1] - sizes[0] < 4 * 1024 * 1024
    process.stdin.write(b'{"id":"after","type":"ping"}\n')
    process.stdin.close()
    last = [frame for line in process.stdout if (frame := json.loads(line))["type"] == "response"]
    assert [frame["id"] for frame in last] == ["after"]
    assert process.wait(60) == 0
    assert process.stderr.read() == b""
    process.stdout.close()
    process.stderr.close()
