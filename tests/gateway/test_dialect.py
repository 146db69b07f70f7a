"""HTTP of dialects that packages bring: derived from their descriptors, like ours."""

from collections.abc import Sequence
from typing import Any

import httpx
import msgspec
import pytest
from tests.gateway.making import serving
from websockets.asyncio.client import connect

from dragoman.dialects.descriptor import OURS, REGISTRY, Dialect, RestPlace, Streams
from dragoman.engine.door import Door
from dragoman.engine.events import Who
from dragoman.host.desks import Desks
from dragoman.settings.model import Settings
from dragoman.testing.host import memory_door
from dragoman.testing.script import Scripted
from dragoman.wire.link import Link


class Said(msgspec.Struct, frozen=True):
    status: int
    body: bytes = b""
    shape: Any = None


class Rest:
    async def answer(
        self, who: Who, method: str, path: Sequence[str], query: str, body: bytes
    ) -> Said:
        row = [who.dialect, method, *path, query, body.decode()]
        return Said(201, msgspec.json.encode(row))


class Hearer:
    """Says back what it is told, with what the address asked for."""

    max_line = 1000
    limit_counts_newline = False
    max_pending = 2000

    def __init__(self, link: Link) -> None:
        self._link = link

    def hear(self, lines: list[bytes]) -> None:
        for line in lines:
            asked = msgspec.json.decode(line)
            came = self._link.peer.came
            result = [came.agent, came.connection.partition(":")[2], asked["method"]]
            self._link.send(msgspec.json.encode({"id": asked["id"], "result": result}))

    def overlong(self, size: int) -> None: ...
    def ended(self) -> None: ...
    def lost(self) -> None: ...


class Desk:
    def __init__(self, door: Door, settings: Any) -> None:
        self.rest = Rest()
        self.settings = settings

    def hearer(self, link: Link) -> Hearer:
        return Hearer(link)


class Port(msgspec.Struct, frozen=True):
    port: int = 4711


MINE = Dialect(
    "mine",
    "a test",
    desk=f"{__name__}:Desk",
    first_line=lambda message: 0,
    settings=f"{__name__}:Port",
    websocket=("/mine /other", "mine.v1"),
    rest=RestPlace("/their/api", port=4711, setting="port", origins=("mine://here",)),
    streams=Streams("Mine", of_sessions=("room/say",)),
    programs=lambda socket, id: {"MINE": f"{socket} {id}"},
)


@pytest.fixture(autouse=True)
def installed(monkeypatch: pytest.MonkeyPatch) -> None:
    ours = {name: REGISTRY.find(name) for name in OURS}
    known = {**ours, "mine": MINE}
    monkeypatch.setattr(REGISTRY, "all", lambda: list(known.values()))
    monkeypatch.setattr(REGISTRY, "find", known.get)


def request(method: str, id: int) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": id, "method": method, "params": {}}


async def test_its_rest_answers_below_its_path_with_a_token() -> None:
    async with serving() as served, served.client() as client, served.stranger() as stranger:
        said = await client.put("/their/api/a/b?c=d", content=b"x")
        assert said.status_code == 201 and said.json() == ["mine", "PUT", "a", "b", "c=d", "x"]
        assert (await stranger.get("/their/api/a")).status_code == 401
        assert (await client.get("/their/other")).status_code == 404


async def test_its_own_port_serves_that_path_alone(unused_tcp_port: int) -> None:
    async with serving() as served:
        assert MINE.rest is not None
        address = await served.gate.open_native(MINE.rest, unused_tcp_port)
        async with httpx.AsyncClient(base_url=address) as native:
            assert (await native.get("/their/api/a")).status_code == 201
            assert (await native.get("/api/v1/health")).status_code == 404
            own, foreign = {"origin": "mine://here"}, {"origin": "tauri://localhost"}
            assert (await native.get("/their/api/a", headers=own)).status_code == 201
            assert (await native.get("/their/api/a", headers=foreign)).status_code == 403


async def test_it_is_spoken_over_streams_with_its_own_headers() -> None:
    async with serving() as served, served.client() as client:
        asked = {"agent": "ada", "connection": "desk"}
        begun = await client.post("/mine", params=asked, json=request("initialize", 1))
        assert begun.json()["result"] == ["ada", "desk", "initialize"]
        own = {"Mine-Connection-Id": begun.headers["Mine-Connection-Id"]}
        said = await client.post("/mine", json=request("room/list", 2), headers=own)
        assert said.status_code == 202
        refused = await client.post("/mine", json=request("room/say", 3), headers=own)
        assert refused.status_code == 400 and "Mine-Session-Id is missing" in refused.text
        head = {**own, "accept": "text/event-stream"}
        async with client.stream("GET", "/mine", headers=head) as stream:
            async for line in stream.aiter_lines():
                if line.startswith("data: "):
                    assert msgspec.json.decode(line[6:])["id"] == 2
                    break
        assert (await client.delete("/mine", headers=own)).status_code == 202
        missing = await client.post("/mine", json=request("room/list", 4))
        assert missing.status_code == 400 and "Mine-Connection-Id is missing" in missing.text
        # The second path of its WebSocket has none of this.
        assert (await client.post("/other", json=request("initialize", 1))).status_code in (
            405,
            426,
        )


async def test_a_page_of_another_origin_may_send_the_headers_of_every_dialect() -> None:
    page = {"origin": "https://page.example"}
    async with serving(allowed_origins=("https://page.example",)) as served:
        async with served.client() as client:
            may = (await client.options("/mine", headers=page)).headers
            for name in ("acp-session-id", "mine-session-id", "mine-connection-id"):
                assert name in may["access-control-allow-headers"]
            assert "mine-connection-id" in may["access-control-expose-headers"]


async def test_a_websocket_names_its_connection_where_streams_do() -> None:
    async with serving() as served:
        head = {"Authorization": f"Bearer {served.token}"}
        for path, name in (("/mine", "Mine-Connection-Id"), ("/acp", "Acp-Connection-Id")):
            async with connect(served.ws + path, additional_headers=head) as ws:
                assert ws.response is not None and len(ws.response.headers[name]) == 36
        async with connect(served.ws + "/rpc", additional_headers=head) as ws:
            assert ws.response is not None
            assert not [name for name in ws.response.headers if name.endswith("connection-id")]


def test_its_port_opens_when_it_is_named_or_addresses_are_native() -> None:
    settings = msgspec.structs.replace(Settings(), dialects={"mine": {"port": 99}})
    desks = Desks(memory_door(Scripted([])), settings)
    assert desks.port(MINE, {}, native=False) == 0
    assert desks.port(MINE, {("dialects", "mine", "port"): 1}, native=False) == 99
    assert desks.port(MINE, {}, native=True) == 99
    theirs = REGISTRY.find("humanlayer")
    assert theirs is not None
    assert desks.port(theirs, {("humanlayer", "http_port"): 1}, native=False) == 7777
    assert desks.port(theirs, {("humanlayer", "version"): 1}, native=False) == 0
    plain = REGISTRY.find("acp")
    assert plain is not None and desks.port(plain, {}, native=True) == 0


def test_streams_need_the_path_of_a_websocket() -> None:
    with pytest.raises(ValueError, match="WebSocket's path"):
        Dialect("x", "x", desk="x:y", first_line=lambda message: 0, streams=Streams("X"))
