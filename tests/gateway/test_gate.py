"""What stands behind the routes: `gate`, `native`, `board`, `callbacks`, `metrics`."""

import asyncio
import json
from types import SimpleNamespace
from typing import Any

import pytest
from tests.gateway.making import serving

from dragoman.dialects.humanlayer import DIALECT
from dragoman.engine import events as ev
from dragoman.engine.ask import Ask
from dragoman.engine.events import Event, Who
from dragoman.engine.faults import AlreadySettled, BadInput, StoreFailed
from dragoman.engine.host import OpenSpec
from dragoman.gateway import callbacks
from dragoman.gateway.board import Board, FullShape, ShortShape
from dragoman.gateway.callbacks import Callback, Nudge
from dragoman.gateway.gate import STATUS, Gate, _plain
from dragoman.gateway.http import Refusal, Request, Response, joined
from dragoman.gateway.metrics import Meter, _escape, render
from dragoman.gateway.native import Native
from dragoman.http.port import Unreachable
from dragoman.settings.host import Callback as Settings
from dragoman.testing.host import host_of, memory_door
from dragoman.testing.script import Scripted


def request(method: str = "GET", target: str = "/", **headers: str) -> Request:
    rows = [
        (name.replace("_", "-"), value) for name, value in {"host": "127.0.0.1", **headers}.items()
    ]
    return Request(method, target, joined(rows), peer="9.9.9.9:1")


# --- gate ---


async def test_gate_crowds_out_the_silent_of_one_address_first() -> None:
    async with serving() as served:
        gate: Gate = served.gate
        gone: list[str] = []

        class Connected:
            streams, token_id = False, ""

            def __init__(self, name: str, address: str, welcome: bool = False) -> None:
                self.name, self.peer, self.welcome = name, f"{address}:1", welcome

            def abort(self) -> None:
                gone.append(self.name)

        gate.limits = SimpleNamespace(max_clients=8)  # type: ignore[assignment]
        assert all(gate.joined(Connected(f"a{n}", "1.1.1.1")) for n in range(2))
        assert gate.joined(Connected("owner", "2.2.2.2", welcome=True))
        assert gate.joined(Connected("a2", "1.1.1.1")) and gone == ["a0"]
        assert gate.meter.refusals["crowded_out"] == 1
        gate.limits = SimpleNamespace(max_clients=3)  # type: ignore[assignment]
        assert gate.joined(Connected("late", "3.3.3.3", welcome=True)) is False
        gate.connections.clear()


async def test_gate_answers_faults_with_their_status_and_plain_data() -> None:
    async with serving() as served:
        gate: Gate = served.gate
        fault = AlreadySettled("too late", by=Who("acp", name="phone"), verdict="allow")

        answer = gate.failure(request(), fault)
        assert answer.status == 409 and b'"phone"' in answer.body
    assert STATUS["unknown_session"] == 404
    assert _plain({"a": Who("x"), "b": object}) == {"a": {"dialect": "x"}, "b": str(object)}


async def test_gate_dresses_every_answer_and_no_stranger_more() -> None:
    async with serving(allowed_origins=["https://ours.example"]) as served:
        gate: Gate = served.gate
        plain = Response(200)
        gate.dress(None, plain)
        assert plain.headers["x-frame-options"] == "DENY"
        ours = request("OPTIONS", origin="https://ours.example")
        for status, allowed in ((204, True), (403, False), (421, False)):
            answer = Response(status)
            gate.dress(ours, answer)
            assert ("access-control-allow-origin" in answer.headers) is allowed
        with pytest.raises(Refusal) as found:
            gate.limit(request("OPTIONS", "/api/status", origin="https://evil.example"))
        assert found.value.status == 403


async def test_gate_pairing_is_a_code_or_a_link() -> None:
    async with serving() as served:
        code = await served.gate.pairing()
        assert code["address"] == served.address and "fingerprint" not in code
        link = await served.gate.pairing(link=True)
        assert link["link"].startswith(f"{served.address}/#enter=")


async def test_gate_says_why_it_cannot_listen(monkeypatch: pytest.MonkeyPatch) -> None:
    async with serving() as served:
        gate: Gate = served.gate
        sources: Any = gate.composed.config.loaded.sources
        sources[("gateway", "port")] = "file"
        given = SimpleNamespace(host="127.0.0.1", port=served.port)
        with pytest.raises(BadInput, match="cannot listen on 127.0.0.1"):
            await gate._listen(given, None)
        nothing = SimpleNamespace(tls_cert="/no/such", tls_key="", tls_self_signed=False)
        with pytest.raises(BadInput, match="certificate cannot be used"):
            await gate._tls(nothing)


# --- native ---


async def test_native_serves_the_api_of_the_owner_only() -> None:
    async with serving() as served:
        native = Native(served.gate, DIALECT.rest)
        with pytest.raises(Refusal, match="Only /api/v1"):
            native.limit(request(target="/api/sessions"))
        assert native.limit(request(target="/api/v1/health")) > 0
        for origin in ("tauri://localhost", "http://tauri.localhost"):
            assert native.limit(request(target="/api/v1/health", origin=origin)) > 0
        with pytest.raises(Refusal):
            native.limit(request(target="/api/v1/health", origin="https://evil.example"))
        await native.admit(request("OPTIONS", "/api/v1/health"))


# --- board ---


def told(session: str, body: Any, seq: int = 1) -> Event:
    return Event(session, 1, body, seq, seq)


async def test_board_says_in_short_what_changed_once() -> None:
    door = memory_door(Scripted([]))
    id = (await door.open(OpenSpec(cwd="/", title="T"))).id
    ask = Ask("q", id, "tool", "bash", 1)
    said = ShortShape(door).speak(
        [
            told(id, ev.Renamed("T")), told(id, ev.Asked(ask)), told(id, ev.Settled("q", "deny")),
            told(id, ev.TextDelta("t", "x"), 0), told("gone", ev.Deleted(), 0),
            told("elsewhere", ev.Renamed("U")),
        ]
    )  # fmt: skip
    assert said is not None
    names = [line for line in said.decode().split("\n") if line.startswith("event: ")]
    # Who is told of a question knows its session.
    assert names == ["event: gone", "event: session", "event: ask", "event: settled"]
    assert ShortShape(door).speak([told(id, ev.TextDelta("t", "x"), 0)]) is None
    assert FullShape().speak([]) is None


class Outlet:
    def __init__(self) -> None:
        self.written: list[bytes] = []
        self.on_close: list[Any] = []
        self.paused = False

    def write(self, data: bytes) -> None:
        self.written.append(data)

    def on_resume(self, callback: Any) -> None:
        callback()


async def test_board_tells_who_is_there_and_leaves_nothing_behind() -> None:
    door = memory_door(Scripted([]))
    gate: Any = SimpleNamespace(door=door, short=ShortShape(door))
    outlet: Any = Outlet()
    me = Who("dashboard", id="b1")
    Board(gate, me).begin(outlet, wire=True)
    assert b"event: hello" in outlet.written[0] and b'"dashboard"' in outlet.written[-1]
    outlet.paused = True
    before = len(outlet.written)
    door.visitors.arrive(Who("acp", id="x"))
    assert len(outlet.written) == before  # a page that does not read can ask again
    for close in outlet.on_close:
        close()
    assert me.id not in door.visitors.clients and not door.visitors.on_change


# --- callbacks ---


class Client:
    def __init__(self, *answers: Any) -> None:
        self.answers = list(answers)
        self.sent: list[Any] = []

    async def fetch(self, method: str, url: str, *, headers: Any, body: bytes) -> Any:
        self.sent.append(headers)
        found = self.answers.pop(0)
        if isinstance(found, Exception):
            raise found
        return SimpleNamespace(status=found)


def posting(*answers: Any, **settings: Any) -> tuple[Callback, Client]:
    client = Client(*answers)
    gate: Any = SimpleNamespace(door=memory_door(Scripted([])), client=lambda: client)
    given = Settings(url="http://x", retry_factor=0, **settings)
    return Callback(gate, "ci", given), client


EVENT = Event("s", 1, ev.Renamed("T"), 1, 7)


async def test_callbacks_try_again_what_may_change(monkeypatch: pytest.MonkeyPatch) -> None:
    lost: list[Any] = []
    log = SimpleNamespace(warning=lambda *words, **pairs: lost.append(pairs))
    monkeypatch.setattr(callbacks, "log", log)
    once, client = posting(503, Unreachable("down"), 204, secret="k")
    await once._post(EVENT)
    assert [one["x-dragoman-attempt"] for one in client.sent] == ["1", "2", "3"] and lost == []
    assert (
        client.sent[0]["x-dragoman-event"] == "renamed" and "x-dragoman-signature" in client.sent[0]
    )
    refused, client = posting(404, 204)
    await refused._post(EVENT)
    assert len(client.sent) == 1 and lost[0]["problem"] == "status 404"
    away, client = posting(*[500] * 9, retries=2)
    await away._post(EVENT)
    assert len(client.sent) == 3 and lost[1]["gseq"] == 7


async def test_callbacks_begin_now_and_go_on_after_a_restart() -> None:
    made, client = posting(200, 200, events=["turn_began", "opened"])
    door = made._gate.door
    await door.open(OpenSpec(cwd="/"))
    assert await made._start() == await door.newest()  # a new address is not told the past
    await door.open(OpenSpec(cwd="/"))
    await made.post_what_came()
    assert len(client.sent) == 1 and made.at == await door.newest()
    assert made._wants(EVENT) is False
    assert int(await door.shelf.get(callbacks.SPACE, "ci")) <= made.at


@pytest.mark.parametrize("broken", ["get", "put", "entries_since"])
async def test_callbacks_go_on_after_the_store_was_away(
    broken: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(callbacks, "_AGAIN_SECONDS", 0.01)
    made, client = posting(200, 200, events=["opened"])
    door = made._gate.door
    store = host_of(door).store
    usual, away = getattr(store, broken), asyncio.Event()

    def fails(*given: Any) -> Any:
        if not away.is_set():
            away.set()
            raise StoreFailed("no disk")
        return usual(*given)

    await store.put(callbacks.SPACE, "ci", b"0")
    await door.open(OpenSpec(cwd="/"))
    monkeypatch.setattr(store, broken, fails)
    running = asyncio.ensure_future(made.run())
    await asyncio.wait_for(away.wait(), 60)
    await door.open(OpenSpec(cwd="/"))
    async with asyncio.timeout(60):
        while len(client.sent) < 2 and not running.done():  # noqa: ASYNC110
            await asyncio.sleep(0.01)
    running.cancel()
    places = [int(one["x-dragoman-delivery"]) for one in client.sent]
    assert len(places) == 2 and places == sorted({*places})  # each once


async def test_gate_looks_after_tokens_also_when_the_store_was_away(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    from dragoman.gateway import gate as module

    monkeypatch.setattr(module, "_GUARD_SECONDS", 0.01)
    async with serving() as served:
        looked = asyncio.Event()
        answers: list[Exception | None] = [StoreFailed("no disk"), None]

        async def check() -> None:
            if (answer := answers.pop(0) if answers else None) is not None:
                raise answer
            looked.set()

        monkeypatch.setattr(served.gate, "check_tokens", check)
        stream: Any = Outlet()
        served.gate.keep_awake(stream)
        await asyncio.wait_for(looked.wait(), 60)
        for closed in stream.on_close:
            closed()


async def test_callbacks_are_woken_by_what_is_kept() -> None:
    nudge = Nudge()
    nudge.speak([Event("s", 1, ev.TextDelta("t", "x"))])
    assert not nudge.woken.is_set()
    nudge.speak([EVENT])
    await asyncio.wait_for(nudge.woken.wait(), 60)


# --- metrics ---


async def test_metrics_count_and_escape() -> None:
    meter = Meter()
    meter.spent(0.25)
    for method in ("GET", "GET", "BREW", "FOO1", "", ""):
        meter.answered(method, 200)
    meter.refusals['odd"\n\\'] += 1
    door = memory_door(Scripted([]))
    await door.open(OpenSpec(cwd="/"))
    page = await render(SimpleNamespace(door=door, meter=meter, connections={}))
    lines = page.splitlines()
    assert 'dragoman_http_requests_total{method="GET",status="200"} 2' in lines
    assert 'dragoman_http_requests_total{method="other",status="200"} 2' in lines
    assert 'dragoman_http_requests_total{method="none",status="200"} 2' in lines
    assert "dragoman_cost_usd_total 0.25" in lines and "dragoman_model_calls_total 1" in lines
    assert 'dragoman_sessions{status="idle"} 1' in lines
    assert r'dragoman_refusals_total{reason="odd\"\n\\"} 1' in lines
    assert all(line.startswith("#") or line.rpartition(" ")[2] for line in lines)
    assert _escape("plain") == "plain" and json.loads(f'"{_escape(chr(10))}"') == "\n"
