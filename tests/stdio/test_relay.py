"""Between an editor and a host that comes and goes: `relay`, `acp`, `bridge`."""

import asyncio
import contextlib
import json
import os
import socket
import subprocess
from collections.abc import AsyncIterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from dragoman.engine.faults import BadInput, Fault
from dragoman.settings.host import Gateway
from dragoman.settings.model import Settings
from dragoman.settings.places import Places
from dragoman.stdio import acp, bridge, relay
from dragoman.stdio.relay import NotThere, Relay
from dragoman.wire.link import Blob, Peer


class End:
    """One end of a connection that keeps what is sent."""

    paused = False
    buffered = 0
    peer = Peer("x", "stdio")

    def __init__(self) -> None:
        self.sent: list[bytes] = []
        self.closed = self.ended = False

    def send(self, message: bytes) -> None:
        self.sent.append(message)

    def send_blob(self, blob: Blob) -> None:
        self.sent += blob.messages

    def on_resume(self, callback: Any) -> None:
        callback()

    def eof(self) -> None:
        self.ended = True

    def close(self) -> None:
        self.closed = True

    def abort(self) -> None:
        self.closed = True

    def said(self) -> list[Any]:
        return [json.loads(one) for one in self.sent]


class Way:
    """A way to hosts that answer what a relay itself asks."""

    def __init__(self, label: str = "the host", *, half_closes: bool = True) -> None:
        self.label = label
        self.half_closes = half_closes
        self.links: list[End] = []
        self.there = True
        self.closed = False
        self.taken = False

    async def connect(self, open: Any, name: str) -> Any:
        if not self.there:
            raise NotThere("nobody")
        made = End()
        hearer = open(made)
        send = made.send

        def answering(message: bytes) -> None:
            send(message)
            asked = json.loads(message)
            if str(asked.get("id", "")).startswith("dragoman-relay"):
                answer: dict[str, Any] = {"id": asked["id"], "result": {}}
                if self.taken:
                    error = {"code": 1, "data": {"code": "SESSION_IN_USE"}}
                    answer = {"id": asked["id"], "error": error}
                line = json.dumps(answer, separators=(",", ":")).encode()
                asyncio.get_running_loop().call_soon(hearer.hear, [line])

        made.send = answering  # type: ignore[method-assign]
        self.links.append(made)
        return made

    def busy(self) -> bool:
        return False

    async def close(self) -> None:
        self.closed = True


def waiting(relay: Any) -> dict[Any, Any]:
    """Requests of the editor that are not answered yet, by id."""
    found: dict[Any, Any] = relay._open
    return found


async def returned(relay: Any) -> None:
    """Wait until a relay that looks for its host has one."""
    if relay._returning is not None:
        await asyncio.wait_for(relay._returning, 60)


async def begun(way: Way, **more: Any) -> tuple[Any, End]:
    made: Any = Relay("test", way, patience=0.2, **more)
    made._host = await way.connect(made.hostward, "n")
    made._ready = True
    editor = End()
    made.joined(editor)
    return made, editor


def line(id: Any, method: str, **params: Any) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).encode()


def answer(id: Any, **result: Any) -> bytes:
    return json.dumps({"jsonrpc": "2.0", "id": id, "result": result}).encode()


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(relay, "_FIRST_WAIT", 0.01)
    monkeypatch.setattr(relay, "_LOOK_EVERY", 0.01)


def nobody(link: Any) -> Any:
    return None


# --- relay ---


async def test_relay_takes_everything_up_again_on_another_connection() -> None:
    way = Way()
    made, editor = await begun(way)
    listed = line(9, "session/list", cwd="rel")
    made.heard([line(1, "initialize", a=1), line(2, "session/new", cwd="rel"), listed])
    whole = way.links[0].said()[1]["params"]["cwd"]
    assert way.links[0].said()[2]["params"]["cwd"] == whole
    assert whole == os.path.abspath("rel")  # the daemon's folder is another one
    made.told([answer(1), answer(2, sessionId="s1"), answer(9)])
    made.heard([line(3, "session/prompt", sessionId="s1")])
    way.links[0].sent.clear()
    made.host_gone()
    made.heard([line(4, "session/list"), b'{"method":"session/cancel","params":{}}'])
    await returned(made)
    again = way.links[1].said()
    assert [one["method"] for one in again] == [
        "_dragoman/connection", "initialize", "session/resume", "session/prompt", "session/list",
        "session/cancel",
    ]  # fmt: skip
    assert again[2]["params"]["sessionId"] == "s1" and again[2]["params"]["cwd"] == whole
    made.told([answer(3), answer(4)])
    assert [one["id"] for one in editor.said()] == [1, 2, 9, 3, 4] and waiting(made) == {}


async def test_relay_passes_on_what_it_cannot_hold() -> None:
    """A number of JSON that none of ours holds breaks no connection."""
    way = Way()
    made, editor = await begun(way)
    odd = b'{"id":%d,"method":"%b","params":{"cwd":"%b","x":1e999}}'
    lines = [odd % (1, b"initialize", b"/"), odd % (2, b"session/new", b"rel")]
    made.heard(lines)
    whole = os.path.abspath("rel").encode()
    assert way.links[0].sent == [lines[0], odd % (2, b"session/new", whole)]
    made.told([answer(1), answer(2, sessionId="s1")])
    way.links[0].sent.clear()
    made.host_gone()
    await returned(made)
    hello = next(sent for sent in way.links[1].sent if b"initialize" in sent)
    assert b'"x":1e999' in hello and not made.over.done() and len(editor.said()) == 2


async def test_relay_never_gives_up_on_a_prompt_that_has_begun() -> None:
    way = Way()
    made, editor = await begun(way)
    made.heard([line(1, "initialize"), line(2, "session/new", cwd="/w")])
    made.told([answer(1), answer(2, sessionId="s1")])
    made.heard([line(3, "session/prompt", sessionId="s1"), line(4, "poison")])
    place = {"jsonrpc": "2.0", "method": "_dragoman/place"}
    made.told(
        [
            json.dumps(
                {**place, "params": {"sessionId": "s1", "seq": 4}}, separators=(",", ":")
            ).encode()
        ]
    )
    for _ in range(5):  # each time at once: others end the host
        made.host_gone()
        await returned(made)
    made.told([answer(3)])
    assert [one["id"] for one in editor.said()] == [1, 2, 4, 3]
    assert "result" in editor.said()[-1]


async def test_relay_gives_up_on_a_request_that_ends_the_host_each_time() -> None:
    way = Way()
    made, editor = await begun(way)
    made.heard([line(7, "poison")])
    for _ in range(3):
        made.host_gone()
        await returned(made)
    (refused,) = editor.said()
    assert refused["id"] == 7 and "each time it got this" in refused["error"]["message"]
    made.leave()


async def test_relay_without_a_host_fails_what_is_open() -> None:
    way = Way()
    made, editor = await begun(way)
    made.heard([line(1, "session/list")])
    way.there = False
    made.host_gone()
    assert await asyncio.wait_for(made.over, 60) == 1
    assert editor.said()[0]["id"] == 1 and "did not come back" in str(editor.said()[0])


async def test_relay_goes_to_the_spare_way_and_back_when_nothing_runs() -> None:
    first, spare = Way("the daemon"), Way("its own")
    made, _ = await begun(first, spare=spare)
    first.there = False
    made.host_gone()
    await returned(made)
    assert made._way is spare and len(spare.links) == 1
    first.there = True
    looking = made._looking
    assert looking is not None
    await asyncio.wait_for(looking, 60)
    await returned(made)
    assert spare.closed and made._way is first and made._ready
    made.leave()


async def test_relay_declines_what_is_asked_when_the_editor_has_gone() -> None:
    way = Way(half_closes=False)
    made, _ = await begun(way)
    made.heard([line(1, "session/prompt")])
    made.told([line(50, "session/request_permission"), line(51, "fs/read_text_file")])
    made.ended()
    said = [one for one in way.links[0].said() if "method" not in one]
    assert said[0]["result"]["outcome"] == {"outcome": "cancelled"} and "error" in said[1]
    assert not made.over.done()  # the prompt's answer still comes
    made.told([answer(1)])
    assert await made.over == 0


async def test_relay_tells_the_editor_what_is_not_its_own_alone() -> None:
    way = Way()
    made, editor = await begun(way)
    place = b'{"jsonrpc":"2.0","method":"_dragoman/place","params":{"sessionId":"s","seq":1}}'
    made.told([place, b'{"method":"session/update"}', b"no json"])
    made.told_all(Blob([place, b'{"a":1}']))
    made.told_all(Blob([b'{"b":1}']))
    assert editor.sent == [b'{"method":"session/update"}', b"no json", b'{"a":1}', b'{"b":1}']
    made.overlong(1)
    assert editor.said()[-1]["error"]["code"] == -32600 if editor.sent.pop(1) else True
    made.leave()


async def test_relay_has_a_bound_for_what_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(relay, "_MOST_WAITING", 10)
    made, _ = await begun(Way())
    made._ready = False
    made.heard([b'{"method":"a"}'])
    assert await made.over == 1


async def test_relay_adopts_a_conversation_that_began_without_it() -> None:
    made = Relay("test", Way(), patience=1)
    made.adopt([line(1, "initialize"), line(2, "session/new", cwd="/w")], [answer(1)])
    assert made._hello is not None and list(waiting(made)) == [2]
    made._answered(relay.read(answer(2, sessionId="s1")))
    assert made._sessions["s1"].cwd == "/w"
    made.adopt([line(3, "session/close", sessionId="s1")], [answer(3)])
    assert made._sessions == {}


async def test_relay_keeps_what_the_host_says_before_the_editor_is_there() -> None:
    made = Relay("test", Way(), patience=1)
    made.adopt([line(1, "initialize")], [])
    ear = made.hostward(End())  # type: ignore[arg-type]
    ear.hear([answer(1, protocolVersion=1)])
    editor = End()
    made.joined(editor)  # type: ignore[arg-type]
    assert [one["id"] for one in editor.said()] == [1] and not waiting(made)


async def test_relay_knows_that_a_fraction_is_answered_without_it() -> None:
    made, editor = await begun(Way())
    made.heard([line(1.5, "session/list"), line(2, "session/list")])
    made.told([b'{"jsonrpc":"2.0","error":{"code":-32600,"message":"no"},"id":null}'])
    assert list(waiting(made)) == [2] and len(editor.sent) == 1
    made.told([b'{"jsonrpc":"2.0","error":{"code":-32700,"message":"no"},"id":null}'])
    assert list(waiting(made)) == [2]


# --- acp ---


@pytest.mark.parametrize("told", [b"", b'{"id":1,"resu'])
async def test_acp_goes_on_with_what_was_read_before(told: bytes, tmp_path: Path) -> None:
    ours, theirs = socket.socketpair(socket.AF_UNIX)
    whole = answer(1, protocolVersion=1).replace(b'"jsonrpc": "2.0", ', b"").replace(b" ", b"")
    theirs.sendall(whole[len(told) :] + b"\n")  # it is there before anybody looks
    begun = acp.Begun(ours)
    begun.left = told
    made = Relay("test", Way(), patience=1)
    made.adopt([line(1, "initialize")], [])
    link = await acp.DaemonWay(str(tmp_path)).adopt(made.hostward, begun)
    for _ in range(100_000):
        if not waiting(made):
            break
        await asyncio.sleep(0)
    editor = End()
    made.joined(editor)  # type: ignore[arg-type]
    assert editor.said() == [{"id": 1, "result": {"protocolVersion": 1}}]
    link.close()
    theirs.close()


async def test_acp_own_host_passes_lines_both_ways_and_ends_once(tmp_path: Path) -> None:
    own: Any = acp.OwnHost(str(tmp_path), {})
    own.relay = SimpleNamespace(editor=None, told_all=lambda blob: told.extend(blob.messages))
    told: list[bytes] = []
    log: list[str] = []
    hearer = SimpleNamespace(
        hear=told.extend, lost=lambda: log.append("lost"), ended=lambda: log.append("ended")
    )
    inner, outer = acp._Inner(), acp._Outer(own)
    inner.outer, outer.inner, inner.hearer, outer.told = outer, inner, hearer, hearer
    inner.send_blob(Blob([b"1", b"2"]))
    outer.send(b"3")
    outer.send_blob(Blob([b"4"]))
    assert told == [b"1", b"2", b"3", b"4"] and not outer.paused and outer.buffered == 0
    inner.eof()
    outer.close()
    await asyncio.sleep(0)
    inner.close()
    inner.send(b"5")
    outer.send(b"6")
    assert log == ["ended", "lost", "lost"] and outer.closed and len(told) == 4
    assert own.busy() is False
    await own.close()


@pytest.mark.parametrize(
    ("flags", "sound"),
    [({}, True), ({"acp.max_sessions": 0}, False), ({"acp.session_timeout_secs": -1}, False),
     ({"acp.max_sessions": 1, "acp.session_timeout_secs": 0}, True)],
)  # fmt: skip
def test_acp_flags_beyond_doubt(flags: dict[str, Any], sound: bool) -> None:
    assert acp._sound(flags) is sound


async def test_acp_daemon_way_says_that_nobody_is_there(tmp_path: Path) -> None:
    with pytest.raises(NotThere, match="does not answer"):
        await acp.DaemonWay(str(tmp_path / "none")).connect(nobody, "n")


# --- bridge ---


def note(where: Places, address: str, pid: int | None = None) -> None:
    os.makedirs(where.data_dir, exist_ok=True)
    row = {"address": address, "pid": os.getpid() if pid is None else pid}
    Path(where.data_dir, "gateway.json").write_text(json.dumps(row))


async def test_bridge_finds_the_gateway_anew_for_every_connection(
    where: Places, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Any] = []

    async def connect(address: str, token: str, open: Any, **more: Any) -> None:
        asked.append((address, token, more["query"]))

    monkeypatch.setattr(bridge, "connect", connect)
    note(where, "http://a:1")
    way = bridge.GatewayWay(where, Settings(), "tok", None, "agent")
    await way.connect(nobody, "n1")
    note(where, "http://b:2")
    await way.connect(nobody, "n1")
    assert asked[0] == ("http://a:1", "tok", {"agent": "agent", "connection": "n1"})
    assert asked[1][0] == "http://b:2" and way.busy() is False and not way.half_closes
    os.unlink(Path(where.data_dir, "gateway.json"))
    with pytest.raises(NotThere, match="is away"):  # its usual port may be a stranger's meanwhile
        await way.connect(nobody, "n1")
    assert len(asked) == 2
    note(where, "http://c:3")
    await way.connect(nobody, "n1")
    assert asked[2][0] == "http://c:3"


@pytest.fixture
async def stranger() -> AsyncIterator[int]:
    """The port of a gateway that knows nobody."""

    served: list[Any] = []

    async def refuse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        served.append(asyncio.current_task())
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 401 Unauthorized\r\n\r\n")
        writer.close()
        with contextlib.suppress(ConnectionError):
            await writer.wait_closed()

    async with await asyncio.start_server(refuse, "127.0.0.1", 0) as server:
        yield server.sockets[0].getsockname()[1]
    await asyncio.gather(*served)


async def test_bridge_that_is_not_let_in_says_whom_it_asked(
    where: Places, stranger: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = Settings(gateway=Gateway(port=stranger))
    way = bridge.GatewayWay(where, settings, "tok", None, "")
    with pytest.raises(BadInput, match="may be another daemon.*does not run here") as told:
        await way.connect(nobody, "n")
    assert where.data_dir in str(told.value) and "acp-bridge-token" not in str(told.value)

    note(where, f"http://127.0.0.1:{stranger}")
    with pytest.raises(BadInput, match=r"does not know the bridge's token.*acp-bridge-token"):
        await way.connect(nobody, "n")
    monkeypatch.setenv("ZEROCLAW_ACP_BRIDGE_TOKEN", "tok")
    with pytest.raises(BadInput, match="that of ZEROCLAW_ACP_BRIDGE_TOKEN: set another") as told:
        await way.connect(nobody, "n")
    assert "acp-bridge-token" not in str(told.value)
    way = bridge.GatewayWay(where, settings, "", None, "")
    with pytest.raises(BadInput, match="require_pairing is false") as told:
        await way.connect(nobody, "n")
    assert "acp-bridge-token" not in str(told.value)

    gone = subprocess.Popen(["true"])
    gone.wait(60)
    note(where, f"http://127.0.0.1:{stranger}", gone.pid)
    with pytest.raises(NotThere, match="may be another daemon.*has ended"):  # it is waited for
        await way.connect(nobody, "n")


def test_bridge_without_a_gateway_says_so(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "config.toml").write_text("[gateway]\nport = 1\n")
    monkeypatch.setattr(bridge.stdio, "claim_stdout", lambda: 1)
    args = SimpleNamespace(config_dir=str(tmp_path), pair_code="", agent="")
    assert bridge.main(args) == 1
    assert "does not answer" in capsys.readouterr().err


# --- the way into the gateway ---


@pytest.fixture
def where(tmp_path: Path) -> Places:
    return Places(str(tmp_path), str(tmp_path / "data"), True)


def test_dial_takes_the_token_that_is_kept_and_refuses_what_is_none(
    where: Places, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = Path(where.config_dir) / "acp-bridge-token"
    bridge._keep(str(kept), "tok-1")
    assert kept.stat().st_mode & 0o777 == 0o600
    assert bridge.find_token(where, Settings()) == "tok-1"
    kept.write_bytes(b"\xff\xfe\xff")
    with pytest.raises(BadInput, match="is no text"):
        bridge.find_token(where, Settings())
    kept.write_text("two words")
    with pytest.raises(BadInput, match="is no token"):
        bridge.find_token(where, Settings())
    monkeypatch.setenv("DRAGOMAN_ACP_BRIDGE_TOKEN", " env ")
    assert bridge.find_token(where, Settings()) == "env"


def test_dial_makes_no_token_for_somebody_elses_gateway(where: Places) -> None:
    with pytest.raises(NotThere, match="is not the daemon of"):
        bridge.find_token(where, Settings())


class Transport:
    aborted = False

    def abort(self) -> None:
        self.aborted = True


@pytest.mark.parametrize(
    ("head", "kind", "why"),
    [
        (b"HTTP/1.1 401 Unauthorized\r\n\r\n", BadInput, "does not know"),
        (b"HTTP/1.1 503 Busy\r\n\r\n", NotThere, "busy .503"),
        (b"HTTP/1.1 200 OK\r\n\r\n", BadInput, "refused the connection"),
        (b"SSH-2.0-OpenSSH\r\n\r\n", BadInput, "refused the connection"),
    ],
)
def test_dial_says_why_the_gateway_refused(head: bytes, kind: type[Fault], why: str) -> None:
    transport: Any = Transport()
    with pytest.raises(kind, match=why):
        bridge._check(head, SimpleNamespace(handshake_exc=None), transport)
    assert transport.aborted


async def test_dial_reads_one_head_and_keeps_what_follows() -> None:
    whole = bridge._Greeting()
    whole.data_received(b"HTTP/1.1 101 X\r\nA: b\r\n\r")
    whole.data_received(b"\nframe")
    assert await whole.head == (b"HTTP/1.1 101 X\r\nA: b\r\n\r\n", b"frame")
    for said in (b"", b"x" * 40_000):
        broken = bridge._Greeting()
        broken.data_received(said)
        broken.connection_lost(None)
        with pytest.raises(ConnectionError):
            await broken.head


def test_dial_trusts_the_configured_certificate_only(where: Places) -> None:
    assert bridge.tls("http://x", where, Settings()) is None
    assert bridge.tls("https://x", where, Settings()).check_hostname is True
    assert bridge._decoded(b"{") is None and bridge._decoded(b"[1]") == [1]
