"""Bytes: what is no request, what is too long, what comes in pieces, what comes at once."""

import asyncio
import json
import os

import pytest

from dragoman.transports import unix

from .talking import FULL, Talker, app, desk_of, manifest

BEAT = b'{"id":"%b","type":"request","timestamp":1,"method":"app.heartbeat","params":{}}'


async def failure(talker):
    message = json.loads(await talker.end.receive())
    assert message["success"] is False
    return message["requestId"], message["error"]["code"], message["error"]["message"]


@pytest.mark.parametrize(
    "line",
    [b"{bad json", b"null", b"5", b"[1]", b'"x"', b"[]", b"true", b"\xff\xfe", b"{}",
     b"[" * 5000, b'{"a":' * 3000, b'{"type":"banana","id":5.5,"method":"x"}'],
)  # fmt: skip
async def test_nonsense_is_refused_and_the_connection_goes_on(line):
    talker = await app(desk_of())
    talker.end.send(line)
    _, code, _ = await failure(talker)
    assert code == "INVALID_REQUEST"
    await talker.silence()


@pytest.mark.parametrize("kind", ["event", "response", "stream"])
async def test_what_only_kernels_send_is_passed_over(kind):
    talker = await app(desk_of())
    talker.end.send(b'{"id":"x","type":"%b","requestId":"y","event":"z"}' % kind.encode())
    await talker.silence()


async def test_ids_are_repeated_as_they_came():
    talker = await app(desk_of())
    for given in ("ü", "7", 7, -1, 1.5, "a\nb", "😀", "", "x" * 5000):
        talker.ask("app.heartbeat", {}, id=given)
        assert (await talker.answer(given))["requestId"] == given
        message = {"id": given, "type": "request", "method": "app.heartbeat"}
        talker.end.send(json.dumps(message, ensure_ascii=False).encode())
        assert (await talker.answer(given))["success"]


@pytest.mark.parametrize("given", ["null", "true", "{}", "[1]", None])
async def test_a_request_needs_an_id(given):
    talker = await app(desk_of())
    part = "" if given is None else f'"id":{given},'
    talker.end.send(f'{{{part}"type":"request","method":"app.heartbeat"}}'.encode())
    assert await failure(talker) == ("", "INVALID_REQUEST", "id must be a string")


async def test_ids_survive_broken_requests():
    talker = await app(desk_of())
    for line in (
        b'{"id":"a","type":"request"}',
        b'{"id":"a","type":"request","method":5}',
        b'{"id":"a","type":"request","method":""}',
        b'{"id":"a","method":"app.heartbeat"}',
        b'{"id":"a","type":"request","method":"app.heartbeat","token":5}',
    ):
        talker.end.send(line)
        assert (await failure(talker))[:2] == ("a", "INVALID_REQUEST")


async def test_broken_text_is_mended():
    talker = await app(desk_of())
    talker.end.send(b'{"id":"a\\ud800b","type":"request","method":"app.heartbeat"}')
    assert (await talker.answer("a\ufffdb"))["success"]
    talker.end.send(b'{"id":"a\xffb","type":"request","method":"app.heartbeat"}')
    assert (await talker.answer("a\ufffdb"))["success"]


async def test_crlf_blanks_and_pieces():
    talker = await app(desk_of())
    talker.end.feed(b"\r\n\n   \n" + BEAT % b"crlf" + b"\r\n")
    assert (await talker.answer("crlf"))["success"]
    line = BEAT % "ü".encode() + b"\n"
    for byte in line:
        talker.end.feed(bytes((byte,)))
    assert (await talker.answer("ü"))["success"]


@pytest.mark.parametrize("letter", ["x", "ü", "😀"])
async def test_the_longest_line_is_counted_in_characters(letter):
    talker = await app(desk_of())
    units = len(letter.encode("utf-16-le")) // 2
    shell = '{"id":"big","type":"request","method":"app.heartbeat","x":"%s"}'
    room = 262_144 - len(shell % "")
    fits = shell % (letter * (room // units) + "x" * (room % units))
    talker.end.send(fits.encode())
    assert (await talker.answer("big"))["success"]
    talker.end.send(fits.replace('"x":"', '"x":"y').encode())
    assert await failure(talker) == ("", "INVALID_REQUEST", "Message too large")
    await talker.silence()


async def test_a_line_that_never_ends_is_cut_off():
    talker = await app(desk_of())
    for _ in range(16):
        talker.end.feed(b"x" * 65_536)
    await asyncio.get_running_loop().run_in_executor(None, lambda: None)
    assert talker.end.received() == []
    talker.end.feed(b"x")
    assert await failure(talker) == (
        "", "INVALID_REQUEST", "Message too large - buffer limit exceeded",
    )  # fmt: skip
    with pytest.raises(EOFError):
        await talker.end.receive()


async def test_a_long_line_within_the_buffer_keeps_the_connection():
    talker = await app(desk_of())
    talker.end.feed(b"x" * 900_000)
    talker.end.feed(b"\n")
    assert await failure(talker) == ("", "INVALID_REQUEST", "Message too large")
    await talker.silence()


async def test_answers_come_after_half_a_close():
    desk = desk_of()
    talker = await app(desk)
    talker.ask("session.list", {})
    talker.ask("app.heartbeat", {}, id="last")
    talker.end.end()
    assert (await talker.answer("r3"))["success"] and (await talker.answer("last"))["success"]
    with pytest.raises(EOFError):
        await talker.end.receive()


async def test_registering_and_more_in_one_chunk():
    talker = Talker(desk_of())
    register = {"id": "1", "type": "request", "method": "app.register",
                "params": {"manifest": manifest()}}  # fmt: skip
    talker.end.feed(json.dumps(register).encode() + b"\n" + BEAT % b"2" + b"\n")
    assert (await talker.answer("1"))["success"] and (await talker.answer("2"))["success"]


@pytest.fixture
async def socket(tmp_path):
    path = str(tmp_path / "kernel.sock")
    desk = desk_of()
    listener = await unix.listen(path, desk.hearer)
    yield path, desk
    await desk.close()
    await listener.close()


async def register(reader, writer):
    message = {"id": "reg", "type": "request", "method": "app.register",
               "params": {"manifest": manifest(**FULL)}}  # fmt: skip
    writer.write(json.dumps(message).encode() + b"\n")
    return json.loads(await reader.readline())["result"]["token"]


async def test_ten_thousand_heartbeats_before_a_single_read(socket):
    path, _ = socket
    assert os.stat(path).st_mode & 0o777 == 0o600
    reader, writer = await asyncio.open_unix_connection(path, limit=1 << 25)
    token = (await register(reader, writer)).encode()
    reader._transport.pause_reading()  # type: ignore[attr-defined]
    for number in range(10_000):
        line = BEAT[:-1] + b',"token":"%b"}\n'
        writer.write(line % (b"%d" % number, token))
    await asyncio.wait_for(writer.drain(), 60)
    reader._transport.resume_reading()  # type: ignore[attr-defined]
    seen = set()
    for _ in range(10_000):
        message = json.loads(await asyncio.wait_for(reader.readline(), 60))
        assert message["success"]
        seen.add(message["requestId"])
    assert len(seen) == 10_000
    writer.close()
    await writer.wait_closed()


async def test_a_client_that_never_reads_and_goes_harms_nobody(socket):
    path, desk = socket
    for _ in range(5):
        reader, writer = await asyncio.open_unix_connection(path)
        await register(reader, writer)
        writer.write((BEAT % b"x" + b"\n") * 2000)
        writer.transport.abort()
    reader, writer = await asyncio.open_unix_connection(path)
    assert await register(reader, writer)
    writer.close()
    await writer.wait_closed()
