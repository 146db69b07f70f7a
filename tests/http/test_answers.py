"""What a server may do wrong, and what the client makes of it."""

import asyncio
import gzip
import time
import zlib

import pytest
from tests.http.servers import STREAM, Line, Server, chunked, closing, head

from dragoman.http.client import Client
from dragoman.http.port import HttpFault, HungUp, NotHttp, TimedOut, Timeouts, Unreachable, Whole

QUICK = Timeouts(connect=0.2, first=0.2, between=0.2)
PATIENT = Timeouts(connect=5, first=5, between=5)


async def ask(*says: bytes, hold: bool = False, reset: bool = False, **more: object) -> Whole:
    """The answer that these writes make, after which the server hangs up or says no more."""

    async def play(line: Line) -> None:
        await line.asked()
        await line.say(*says)
        if reset:
            line.reset()
        if hold:
            await line.left()

    timeouts = more.pop("timeouts", PATIENT)
    async with Server(play) as server, closing(Client(env={}, timeouts=timeouts)) as client:
        return await client.fetch("POST", server.url, body=b"{}", **more)


async def pieces(client: Client, url: str) -> tuple[list[bytes], HttpFault | None]:
    """What the sink was given, and how it ended."""
    found: list[bytes] = []
    try:
        async with client.open("POST", url, body=b"{}") as answer:
            answer.into(found.append)
            while await answer.more():
                continue
    except HttpFault as fault:
        return found, fault
    return found, None


@pytest.mark.parametrize(
    ("said", "body"),
    [
        ([head("content-length: 5"), b"hello"], b"hello"),
        ([head("content-length: 5") + b"hello"], b"hello"),
        ([head("content-length: 0")], b""),
        ([head("Content-Length: 5"), b"he", b"llo"], b"hello"),
        ([STREAM, chunked(b"he", b"llo")], b"hello"),
        ([STREAM + chunked(b"he", b"llo")], b"hello"),
        ([STREAM, b"5;name=value\r\nhello\r\n0\r\nx-trailer: 1\r\n\r\n"], b"hello"),
        ([head("connection: close"), b"hel", b"lo"], b"hello"),
        ([b"HTTP/1.0 200 OK\r\n\r\nhello"], b"hello"),
        ([head(status="204 No Content")], b""),
        ([b"HTTP/1.1 200\r\ncontent-length: 5\r\n\r\nhello"], b"hello"),
    ],
)
async def test_every_way_to_end_an_answer(said: list[bytes], body: bytes) -> None:
    found = await ask(*said)
    assert found.body == body


async def test_bytes_one_by_one_give_the_same() -> None:
    said = head("content-type: x", "transfer-encoding: chunked") + chunked(b"he", b"llo")
    found = await ask(*(bytes([byte]) for byte in said), hold=True)
    assert found == Whole(200, found.headers, b"hello") and found.headers["content-type"] == "x"


async def test_headers_that_come_twice_are_joined() -> None:
    found = await ask(head("x-a: 1", "X-A: 2", "content-length: 0"))
    assert found.headers["x-a"] == "1, 2"


@pytest.mark.parametrize(
    "before",
    [
        head(status="100 Continue"),
        head("link: </a>; rel=preload", "x-only: early", status="103 Early Hints"),
        head(status="102 Processing") * 5,
    ],
)
async def test_what_is_said_before_the_answer_is_passed_over(before: bytes) -> None:
    for said in ([before, head("content-length: 2"), b"ok"], [before + STREAM + chunked(b"ok")]):
        found = await ask(*said)
        assert (found.status, found.body) == (200, b"ok") and "x-only" not in found.headers


async def test_a_change_of_protocol_that_nobody_asked_for() -> None:
    with pytest.raises(NotHttp, match="another protocol"):
        await ask(head("upgrade: x", "connection: upgrade", status="101 Switching"), b"hello")


@pytest.mark.parametrize(
    ("said", "fault"),
    [
        ([], HungUp),
        ([b"HTTP/1.1 200 OK\r\ncontent-"], HungUp),
        ([head("content-length: 9"), b"hello"], HungUp),
        ([STREAM, chunked(b"hello", end=False)], HungUp),
        ([STREAM, b"9\r\nhell"], HungUp),
        ([STREAM, b"5\r\nhello"], HungUp),
        ([STREAM, b"zz\r\nhello\r\n"], NotHttp),
        ([STREAM, b"5\r\nhelloXX"], NotHttp),
        ([STREAM, b"fffffffffffffffffff\r\nhello"], NotHttp),
        ([head("content-length: 5", "transfer-encoding: chunked"), b"hello"], NotHttp),
        ([head("content-length: 5", "content-length: 6"), b"hello!"], NotHttp),
        ([head("content-length: -5")], NotHttp),
        ([head("content-length: five")], NotHttp),
        ([b"SSH-2.0-OpenSSH\r\n"], NotHttp),
        ([b"hello\r\n\r\n"], NotHttp),
        ([b"HTTP/1.1 abc OK\r\n\r\n"], NotHttp),
        ([b"HTTP/1.1 200 OK\r\nno colon here\r\n\r\n"], NotHttp),
        ([b"\0\0\x12\x04\0\0\0\0\0" + bytes(18)], NotHttp),
        ([b"HTTP/1.1 200 OK\r\nx: " + b"y" * 80_000], NotHttp),
        ([b"HTTP/1.1 200 OK\r\n" + b"x: y\r\n" * 20_000], NotHttp),
        ([head("content-encoding: br", "content-length: 5"), b"hello"], NotHttp),
        ([head("content-encoding: gzip", "content-length: 5"), b"hello"], NotHttp),
        ([head("content-encoding: gzip"), gzip.compress(b"hello" * 99, mtime=0)[:-9]], HungUp),
    ],
)  # fmt: skip
@pytest.mark.parametrize("hold", [False, True])
async def test_answers_that_break_off_or_are_none(
    said: list[bytes], fault: type[HttpFault], hold: bool
) -> None:
    expected = TimedOut if hold and fault is HungUp else fault
    with pytest.raises(expected):
        await ask(*said, hold=hold, timeouts=QUICK if hold else PATIENT)


async def test_http2_frames_are_named() -> None:
    with pytest.raises(NotHttp, match="HTTP/2"):
        await ask(b"\0\0\x12\x04\0\0\0\0\0" + bytes(18))
    with pytest.raises(NotHttp, match="no HTTP"):  # a GOAWAY is no better
        await ask(b"\0\0\x08\x07\0\0\0\0\0" + bytes(8))


@pytest.mark.parametrize("said", [[], [STREAM], [STREAM, chunked(b"hello", end=False)]])
async def test_a_reset_is_a_hang_up(said: list[bytes]) -> None:
    with pytest.raises(HungUp):
        await ask(*said, reset=True)


@pytest.mark.parametrize(
    ("packed", "name"),
    [
        (gzip.compress(b"hello" * 1000, mtime=0), "gzip"),
        (gzip.compress(b"hello" * 1000, mtime=0), "X-GZIP"),
        (zlib.compress(b"hello" * 1000), "deflate"),
    ],
)
async def test_answers_that_are_packed_though_nobody_asked(packed: bytes, name: str) -> None:
    top = head(f"content-encoding: {name}", f"content-length: {len(packed)}")
    found = await ask(top, *(packed[at : at + 7] for at in range(0, len(packed), 7)))
    assert found.body == b"hello" * 1000


async def test_a_packed_stream_is_read_as_it_comes() -> None:
    squeeze = zlib.compressobj(wbits=31)
    first = squeeze.compress(b"data: 1\n\n") + squeeze.flush(zlib.Z_SYNC_FLUSH)
    seen, go_on = asyncio.Event(), asyncio.Event()

    async def play(line: Line) -> None:
        await line.asked()
        await line.say(head("content-encoding: gzip", "transfer-encoding: chunked"))
        await line.say(chunked(first, end=False))
        await go_on.wait()
        await line.say(chunked(squeeze.compress(b"data: 2\n\n") + squeeze.flush()))

    async with Server(play) as server, closing(Client(env={})) as client:
        found = bytearray()
        async with asyncio.timeout(60), client.open("POST", server.url) as answer:
            answer.into(found.extend)
            while b"1" not in found:
                await answer.more()
            seen.set()
            go_on.set()
            while await answer.more():
                continue
        assert bytes(found) == b"data: 1\n\ndata: 2\n\n" and seen.is_set()


async def test_a_bomb_is_read_no_further_than_wanted() -> None:
    bomb = gzip.compress(bytes(50_000_000))
    found = await ask(
        head("content-encoding: gzip", f"content-length: {len(bomb)}"), bomb, most=100
    )
    assert found.body == bytes(100)


async def test_what_came_before_a_break_is_handed_over() -> None:
    for ending in (b"", b"zz\r\n"):

        async def play(line: Line, ending: bytes = ending) -> None:
            await line.asked()
            await line.say(STREAM + chunked(b"one", end=False))
            await line.say(chunked(b"two", end=False) + ending)

        async with Server(play) as server, closing(Client(env={})) as client:
            found, fault = await pieces(client, server.url)
            assert b"".join(found) == b"onetwo"
            assert isinstance(fault, NotHttp if ending else HungUp)


async def test_chunks_of_one_read_are_handed_over_at_once() -> None:
    async def play(line: Line) -> None:
        await line.asked()
        await line.say(STREAM + chunked(*(b"%d" % n for n in range(50))))

    async with Server(play) as server, closing(Client(env={})) as client:
        found, fault = await pieces(client, server.url)
        assert fault is None and b"".join(found) == b"".join(b"%d" % n for n in range(50))
        assert len(found) < 5


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ([], "no answer began"),
        ([b"HTTP/1.1 200 OK\r\n"], "no answer began"),
        ([head(status="100 Continue")], "no answer began"),
        ([STREAM], "nothing came"),
        ([STREAM, chunked(b"he", end=False)], "nothing came"),
    ],
)
async def test_a_stall_anywhere_ends_in_time(said: list[bytes], words: str) -> None:
    began = time.monotonic()
    with pytest.raises(TimedOut, match=words):
        await ask(*said, hold=True, timeouts=QUICK)
    assert time.monotonic() - began < 30


async def test_a_head_that_drips_does_not_move_the_limit() -> None:
    async def play(line: Line) -> None:
        await line.asked()
        await line.say(b"HTTP/1.1 200 OK\r\n")
        while True:
            await line.say(b"x: y\r\n")
            await asyncio.sleep(0.02)

    async with Server(play) as server, closing(Client(env={}, timeouts=QUICK)) as client:
        with pytest.raises(TimedOut, match="no answer began"):
            async with asyncio.timeout(60):
                await client.fetch("POST", server.url)


async def test_a_body_that_drips_is_not_cut() -> None:
    async def play(line: Line) -> None:
        await line.asked()
        await line.say(STREAM)
        for _ in range(12):
            await asyncio.sleep(0.2)
            await line.say(chunked(b"x", end=False))
        await line.say(chunked())

    patient = Timeouts(between=2)  # of one pause, not of all
    async with Server(play) as server, closing(Client(env={}, timeouts=patient)) as client:
        assert (await client.fetch("POST", server.url)).body == b"x" * 12


async def test_nobody_there_and_nobody_listening_in_time() -> None:
    async with Server(lambda line: line.left()) as server:
        url = server.url
    async with closing(Client(env={}, timeouts=QUICK)) as client:
        with pytest.raises(Unreachable):
            await client.fetch("GET", url)
        with pytest.raises(Unreachable):
            await client.fetch("GET", "http://no-such-host.invalid/")


async def test_a_connection_that_is_never_taken_times_out() -> None:
    import socket

    with socket.socket() as full:  # its queue is full, so further connections are not answered
        full.bind(("127.0.0.1", 0))
        full.listen(0)
        port = full.getsockname()[1]
        crowd = [socket.socket() for _ in range(3)]
        for one in crowd:
            one.setblocking(False)
            one.connect_ex(("127.0.0.1", port))
        async with closing(Client(env={}, timeouts=QUICK)) as client:
            with pytest.raises(TimedOut, match="no connection|no answer"):
                await client.fetch("GET", f"http://127.0.0.1:{port}/")
        for one in crowd:
            one.close()


async def test_leaving_early_closes_the_connection_at_once() -> None:
    gone = asyncio.Event()

    async def play(line: Line) -> None:
        await line.asked()
        await line.say(STREAM, chunked(b"hello", end=False))
        await line.left()
        gone.set()

    async with Server(play) as server, closing(Client(env={})) as client:
        async with client.open("POST", server.url) as answer:
            answer.into(lambda data: None)
            await answer.more()
        async with asyncio.timeout(60):  # by no limit of the client's, which are longer
            await gone.wait()


@pytest.mark.parametrize("said", [[], [STREAM], [STREAM, chunked(b"hello", end=False)]])
async def test_cancel_anywhere_closes_the_connection_at_once(said: list[bytes]) -> None:
    gone, here = asyncio.Event(), asyncio.Event()

    async def play(line: Line) -> None:
        await line.asked()
        await line.say(*said)
        here.set()
        await line.left()
        gone.set()

    async with Server(play) as server, closing(Client(env={})) as client:
        task = asyncio.create_task(client.fetch("POST", server.url))
        async with asyncio.timeout(60):  # by no limit of the client's, which are longer
            await here.wait()
            await asyncio.sleep(0.02)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            await gone.wait()


async def test_a_sink_that_nobody_empties_stops_the_sender() -> None:
    sent = 0

    async def play(line: Line) -> None:
        nonlocal sent
        await line.asked()
        await line.say(STREAM)
        for _ in range(400):
            await line.say(chunked(bytes(100_000), end=False))
            sent += 1
        await line.say(chunked())

    async with Server(play) as server, closing(Client(env={})) as client:
        size = 0

        def count(data: bytes) -> None:
            nonlocal size
            size += len(data)

        async with client.open("POST", server.url) as answer:
            answer.into(count)
            await answer.more()
            before = -1
            while before != sent:  # until the server, too, can send no more
                before = sent
                await asyncio.sleep(0.2)
            assert sent < 400 and size < 3_000_000
            while await answer.more():
                continue
        assert size == 40_000_000
