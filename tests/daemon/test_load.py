"""Many clients, a stuck one, and two hundred thousand lines of nonsense."""

import asyncio
import json
import random
import resource
import socket
import time
from itertools import pairwise

import pytest
from tests.daemon.running import Daemon, Line, script
from tests.lane import share
from tests.timed import judging

INIT = b'{"jsonrpc":"2.0","method":"initialize","params":{"protocolVersion":1},"id":1}\n'


def raise_limit(wanted):
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft < wanted:
        most = wanted if hard == resource.RLIM_INFINITY else min(wanted, hard)
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))


async def one_client(path, name, gate, *, closes=True):
    """Connect, wait for all others, take one turn; returns the text that was streamed."""
    reader, writer = await asyncio.open_unix_connection(path, limit=1 << 20)
    try:
        new = {"agentAlias": "default", "sessionId": name}
        prompt = {"sessionId": name, "prompt": "go"}
        close = {"sessionId": name}
        writer.write(INIT)
        writer.write(request("session/new", new, 2))
        for id in (1, 2):
            answer = json.loads(await reader.readline())
            assert answer["id"] == id and "result" in answer, answer
        await gate()
        writer.write(request("session/prompt", prompt, 3))
        text = ""
        while True:
            message = json.loads(await reader.readline())
            if message.get("id") == 3:
                assert message["result"]["content"] == text, message
                break
            text += message["params"]["text"]
        if closes:
            writer.write(request("session/close", close, 4))
            assert json.loads(await reader.readline())["result"]["closed"]
        return text
    finally:
        writer.close()
        await writer.wait_closed()


def request(method, params, id):
    made = {"jsonrpc": "2.0", "method": method, "params": params, "id": id}
    return json.dumps(made).encode() + b"\n"


async def wave(path, label, count):
    """All clients at once: none begins its turn before every one is connected."""
    everybody = asyncio.Barrier(count)
    work = (one_client(path, f"{label}-{n}", everybody.wait) for n in range(count))
    async with asyncio.timeout(300):
        return await asyncio.gather(*work)


@pytest.mark.alone
@pytest.mark.timeout(400)
def test_a_thousand_connections_at_once(tmp_path):
    raise_limit(4096)
    words = " ".join(f"word{n:02d}" for n in range(50))
    turn = {"parts": [{"type": "say", "text": words}]}  # one delta per word
    config = script(tmp_path, [turn], loop=True)  # no limit of the defaults is in the way
    with Daemon(tmp_path, config=config).wait_ready() as daemon:
        texts = asyncio.run(wave(daemon.socket, "a", 1000))
        assert texts == [words] * 1000
        after = daemon.rss()
        with Line(daemon.socket) as line:
            assert line.ask("status")["sessionIds"] == []
            assert line.ask("dragoman/status")["clients"] == {"zeroclaw": 1}
        asyncio.run(wave(daemon.socket, "b", 300))
        assert daemon.rss() < after * 1.1 + 4_000_000  # what was used is used again
        assert daemon.stop() == 0


def test_many_who_leave_their_sessions_open_keep_nobody_out(tmp_path):
    limits = "[limits]\nmax_sessions = 60\n[zeroclaw]\nmax_sessions = 50\n"
    config = limits + script(tmp_path, ["hello"], loop=True)

    async def come_and_go(path):
        room = asyncio.Semaphore(30)  # fewer than may be open

        async def no_wait():
            return None

        async def one(n):
            async with room:
                return await one_client(path, f"s-{n}", no_wait, closes=False)

        async with asyncio.timeout(150):
            return await asyncio.gather(*(one(n) for n in range(400)))

    with Daemon(tmp_path, config=config).wait_ready() as daemon:
        assert asyncio.run(come_and_go(daemon.socket)) == ["hello"] * 400
        with Line(daemon.socket) as line:
            assert line.ask("status")["activeSessions"] <= 50
            assert line.ask("session/messages", {"sessionId": "s-0"})["total"] == 2
        assert daemon.stop() == 0


def p99(path, until):
    """The 99th percentile of `status` round trips, in seconds, until told to stop."""
    times = []
    with Line(path) as line:
        while not until() or len(times) < 200:
            began = time.perf_counter()
            line.ask("status")
            times.append(time.perf_counter() - began)
    times.sort()
    return times[int(len(times) * 0.99)]


@judging
def test_a_client_that_never_reads(tmp_path, judged):
    deltas = 2_000
    turn = {
        "parts": [{"type": "say", "text": "x" * 1_000 * deltas, "deltas": deltas, "delay": 0.001}]
    }
    config = script(tmp_path, [turn], loop=True)
    with Daemon(tmp_path, config=config).wait_ready() as daemon:
        with Line(daemon.socket) as watcher, Line(daemon.socket) as healthy:
            for name, line in (("stuck", watcher), ("healthy", healthy)):
                line.ask("session/new", {"agentAlias": "default", "sessionId": name})

            def running(name):
                return watcher_state(daemon.socket, name) == "running"

            healthy.say("session/prompt", {"sessionId": "healthy", "prompt": "go"})
            reading = healthy.until("agent_message_chunk")
            assert reading
            normal = p99(daemon.socket, lambda: not running("healthy"))
            before = daemon.rss()
            watcher.say("session/prompt", {"sessionId": "stuck", "prompt": "go"})
            beside = p99(daemon.socket, lambda: not running("stuck"))
            # Both turns stream the same; the one to a stuck client must not cost the others more.
            assert not judged or beside < 3 * normal + 0.01, (beside, normal)
            assert daemon.rss() - before < 24 * 1024 * 1024
            # When it reads at last, everything is there, in order, and nothing twice.
            answer = watcher.answer(watcher._id)
            text = "".join(one["params"].get("text", "") for one in watcher.seen)
            assert answer["result"]["content"] == text == "x" * 1_000 * deltas
        assert daemon.stop() == 0


def watcher_state(path, name):
    with Line(path) as line:
        return line.ask("session/state", {"sessionId": name})["state"]


SEEDS = [
    INIT.strip(),
    b'{"jsonrpc":"2.0","method":"status","params":{},"id":2}',
    b'{"jsonrpc":"2.0","method":"session/new","params":{"agentAlias":"default","cwd":"/","sessionId":"f1"},"id":"a"}',
    b'{"jsonrpc":"2.0","method":"session/prompt","params":{"session_id":"f1","prompt":"hello"},"id":3}',
    b'{"jsonrpc":"2.0","method":"session/prompt","params":{"sessionId":"f1","prompt":"think"}}',
    b'{"jsonrpc":"2.0","method":"session/cancel","params":{"sessionId":"f1"},"id":4}',
    b'{"jsonrpc":"2.0","method":"session/close","params":{"sessionId":"f1"},"id":5}',
    b'{"jsonrpc":"2.0","method":"session/messages","params":{"sessionId":"f1","limit":2},"id":6}',
    b'{"jsonrpc":"2.0","method":"session/approve","params":{"sessionId":"f1","requestId":"r","decision":"reject"},"id":7}',
    b'{"jsonrpc":"2.0","method":"session/configure","params":{"sessionId":"f1","overrides":{"temperature":1}},"id":8}',
    b'{"jsonrpc":"2.0","method":"dragoman/watch","params":{},"id":9}',
    b'{"jsonrpc":"2.0","method":"dragoman/sessions","params":{"limit":3},"id":10}',
    b'[{"jsonrpc":"2.0","method":"status","id":1},{"jsonrpc":"2.0","method":"health","id":2},5]',
    b'{"jsonrpc":"2.0","result":{"action":"accept"},"id":"zc-out-0"}',
    b'{"jsonrpc":"2.0","method":"logs/query","params":{"limit":1},"id":11}',
    b'{"jsonrpc":"2.0","method":"fs/list_dir","params":{"path":"/proc/self"},"id":12}',
    '{"jsonrpc":"2.0","method":"é𝄞","params":[[[[]]]],"id":1e3}'.encode(),
]
PIECES = [
    b"null",
    b"true",
    b"-1",
    b"1e999",
    b'""',
    b"{}",
    b"[]",
    b'"\\ud800"',
    b"\xff",
    b"\x00",
    b",",
    b'"',
]


def mutated(chance):
    """One line: a seed that was bent a few times, never with a newline."""
    line = bytearray(chance.choice(SEEDS))
    for _ in range(chance.choice((0, 1, 1, 2, 3, 8))):
        at = chance.randrange(len(line) + 1)
        match chance.randrange(6):
            case 0:
                line[at : at + chance.randrange(1, 9)] = b""
            case 1:
                line[at:at] = chance.choice(PIECES)
            case 2 if at < len(line):
                line[at] = chance.randrange(256)
            case 3:
                line[at:] = b""
            case 4:
                line[at : at + 4] = chance.choice(PIECES)
            case _:
                other = chance.choice(SEEDS)
                line[at:] = other[chance.randrange(len(other)) :]
        if not line:
            line = bytearray(b"x")
    return bytes(line.replace(b"\n", b" "))


async def babble(path, number, lines):
    """Say bent lines; now and then wait for the answers, so that few are on their way."""
    chance = random.Random(number)
    reader, writer = await asyncio.open_unix_connection(path, limit=1 << 24)
    mark, heard = b"", asyncio.Event()

    async def drain():
        tail = b""
        while data := await reader.read(1 << 18):
            tail += data
            if mark in tail:
                heard.set()
            tail = tail[-64:]
        heard.set()

    reading = asyncio.ensure_future(drain())
    try:
        writer.write(INIT)
        for place in range(lines // 50):
            writer.write(b"\n".join(mutated(chance) for _ in range(50)) + b"\n")
            mark = b"mark %d %d." % (number, place)
            heard.clear()
            writer.write(b'{"jsonrpc":"2.0","method":"health","id":"%b"}\n' % mark)
            await writer.drain()
            if not reading.done():
                await heard.wait()
        writer.write_eof()
        await asyncio.wait_for(reading, 60)
    finally:
        reading.cancel()
        writer.close()


@pytest.mark.slow
def test_a_babel_of_bent_lines(tmp_path):
    config = '[log]\nlevel = "warning"\n' + script(tmp_path, ["ok"], loop=True)
    # Freed memory goes back at once, so that what is left is what is held.
    env = {"MALLOC_TRIM_THRESHOLD_": "65536", "MALLOC_MMAP_THRESHOLD_": "65536"}
    with Daemon(tmp_path, config=config, env=env).wait_ready() as daemon:

        async def babel(rounds, first):
            async with asyncio.timeout(60):
                await asyncio.gather(
                    *(babble(daemon.socket, first + n, rounds) for n in range(100))
                )

        sizes = []
        for first in range(4):
            asyncio.run(babel(share(500, 100), 1_000 * first))
            sizes.append(daemon.rss())
        # 1.5 to 3 MB more after each share of 50,000 lines. What is held grows with every one; the
        # allocator's own steps, of up to 16 MB, come once.
        steps = [after - before for before, after in pairwise(sizes)]
        assert min(steps) < 8_000_000, sizes
        with Line(daemon.socket) as line:
            line.ask("status")
        log = daemon.log()
        assert "Traceback" not in log and "request failed" not in log, log[-3000:]
        assert daemon.process.poll() is None
        assert daemon.stop() == 0


def test_a_connection_that_says_nothing_costs_little(tmp_path):
    raise_limit(4096)
    with Daemon(tmp_path).wait_ready() as daemon:
        with Line(daemon.socket) as line:
            line.ask("status")
        before = daemon.rss()
        links = []
        for _ in range(1_000):
            link = socket.socket(socket.AF_UNIX)
            link.connect(daemon.socket)
            links.append(link)
        with Line(daemon.socket) as line:
            assert line.ask("dragoman/status")["clients"] == {"zeroclaw": 1_001}
        each = (daemon.rss() - before) / 1_000
        for link in links:
            link.close()
        assert each < 16_384, f"{each} bytes per connection"
