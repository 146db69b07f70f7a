"""Webhooks in and out, routes and methods of apps, the configuration."""

import asyncio
import contextlib
import hmac
import json
from hashlib import sha256
from pathlib import Path
from time import time

from tests.gateway.making import Served, serving

from dragoman.daemon.guests import Guests
from dragoman.engine.content import Text
from dragoman.engine.host import OpenSpec
from dragoman.engine.offers import Offer
from dragoman.gateway import open_gateway, tokens
from dragoman.gateway.signing import sign
from dragoman.host.compose import compose
from dragoman.host.desks import Desks
from dragoman.settings.host import Callback, Webhook
from dragoman.testing.host import host_of

SECRET = "whsec-test"


# --- in ---


async def test_a_signed_call_begins_a_turn_and_goes_on_in_its_session():
    hook = Webhook(agent="default", secret=SECRET, prompt="Look: {body}", session="ci")
    async with serving(["one", "two"], webhooks={"ci": hook}) as served:
        async with served.stranger() as client:
            body = b'{"build":"failed"}'
            headers = {"x-dragoman-signature": sign(SECRET, body), "idempotency-key": "a"}
            taken = await client.post("/hooks/ci", content=body, headers=headers)
            assert taken.status_code == 202
            id = taken.json()["session"]
            await asyncio.wait_for(served.door.idle(id), 60)
            said = await served.door.messages(id)
            assert said[0].content[0].text == 'Look: {"build":"failed"}'
            again = await client.post("/hooks/ci", content=body, headers=headers)
            assert again.status_code == 200 and again.json()["again"]
            forge = hmac.new(SECRET.encode(), b"x", sha256).hexdigest()
            more = await client.post(
                "/hooks/ci", content=b"x", headers={"x-hub-signature-256": f"sha256={forge}"}
            )
            assert more.status_code == 202 and more.json()["session"] == id
            await asyncio.wait_for(served.door.idle(id), 60)


async def test_a_call_that_is_not_signed_or_wrongly_begins_nothing():
    hooks = {"ci": Webhook(secret=SECRET), "off": Webhook(secret=SECRET, enabled=False),
             "open": Webhook()}  # fmt: skip
    async with serving(webhooks=hooks) as served, served.stranger() as client:
        body = b"x"
        assert (await client.post("/hooks/ci", content=body)).status_code == 401
        for wrong in (
            sign("other", body),
            sign(SECRET, b"y"),
            sign(SECRET, body, int(time()) - 3_600),
            "t=x,v1=y",
            "nonsense",
        ):
            answer = await client.post(
                "/hooks/ci", content=body, headers={"x-dragoman-signature": wrong}
            )
            assert answer.status_code in (401, 403), wrong
        signed = {"x-dragoman-signature": sign(SECRET, body)}
        assert (await client.post("/hooks/off", content=body, headers=signed)).status_code == 404
        assert (await client.post("/hooks/none", content=body, headers=signed)).status_code == 404
        # A hook without a secret needs a token.
        assert (await client.post("/hooks/open", content=body)).status_code == 401
        assert not host_of(served.door).live
        async with served.client() as owner:
            assert (await owner.post("/hooks/open", content=body)).status_code == 202


# --- out ---


class Endpoint:
    """A small HTTP server that takes posts, after refusing the first ones."""

    def __init__(self, refuse: int) -> None:
        self.refuse = refuse
        self.taken: list[tuple[dict[str, str], bytes]] = []
        self.tries = 0
        self.ended = asyncio.Event()
        self.serving: list[asyncio.Task] = []

    async def serve(self, reader, writer) -> None:
        self.serving.append(asyncio.current_task())
        with contextlib.suppress(asyncio.IncompleteReadError, ConnectionError):
            while True:
                head = (await reader.readuntil(b"\r\n\r\n")).decode()
                fields = dict(
                    line.lower().split(": ", 1) if ": " in line else (line, "")
                    for line in head.split("\r\n")[1:]
                )
                body = await reader.readexactly(int(fields["content-length"]))
                self.tries += 1
                refused = self.tries <= self.refuse
                if not refused:
                    self.taken.append((fields, body))
                    if b'"turn_ended"' in body:
                        self.ended.set()
                status = "503 Busy" if refused else "204 No Content"
                writer.write(f"HTTP/1.1 {status}\r\nContent-Length: 0\r\n\r\n".encode())
        writer.close()
        await writer.wait_closed()


@contextlib.asynccontextmanager
async def listening(endpoint: Endpoint):
    server = await asyncio.start_server(endpoint.serve, "127.0.0.1", 0)
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/told"
        await asyncio.wait_for(asyncio.gather(*endpoint.serving), 60)


async def test_events_are_posted_signed_in_order_and_again_after_a_failure():
    endpoint = Endpoint(refuse=2)
    async with listening(endpoint) as url:
        out = Callback(
            url=url, secret=SECRET, events=("turn_began", "turn_ended"), retry_factor=0.01
        )
        async with serving(["hello"], callbacks={"x": out}) as served:
            info = await served.door.open(OpenSpec())
            await (await served.door.prompt(info.id, (Text("hi"),))).done
            await asyncio.wait_for(endpoint.ended.wait(), 60)
    assert endpoint.tries == 4
    kinds = [json.loads(body)["body"]["type"] for _, body in endpoint.taken]
    assert kinds == ["turn_began", "turn_ended"]
    fields, body = endpoint.taken[0]
    stamp, mac = (part.partition("=")[2] for part in fields["x-dragoman-signature"].split(","))
    wanted = hmac.new(SECRET.encode(), stamp.encode() + b"." + body, sha256).hexdigest()
    assert mac == wanted and fields["x-dragoman-attempt"] == "3"


# --- apps ---


async def test_routes_and_methods_of_apps_are_served():
    seen = []

    async def page(request):
        seen.append(request)
        headers = {"X-App": "yes", "Set-Cookie": "a=b", "Content-Security-Policy": "x"}
        return {"status": 201, "headers": headers, "body": f"{request['method']} {request['path']}"}

    async def add(params):
        return {"sum": sum(params)}

    async with serving() as served, served.client() as client:
        offers = served.door.offers
        offers.add(Offer("1", "http_route", "/api/tg/webhook", "tg", call=page))
        offers.add(Offer("2", "http_route", "/open/*", "tg", call=page, config={"public": True}))
        offers.add(Offer("3", "gateway_method", "math.add", "tg", call=add))
        answer = await client.post("/apps/tg/api/tg/webhook?x=1", content=b"body")
        assert answer.status_code == 201 and answer.text == "POST /api/tg/webhook"
        assert answer.headers["x-app"] == "yes" and "set-cookie" not in answer.headers
        assert "sandbox" in answer.headers["content-security-policy"]
        assert seen[0]["body"] == b"body" and seen[0]["query"] == {"x": "1"}
        assert "authorization" not in seen[0]["headers"]
        assert (await client.get("/apps/tg/none")).status_code == 404
        assert (await client.get("/apps/other/api/tg/webhook")).status_code == 404
        async with served.stranger() as stranger:
            assert (await stranger.get("/apps/tg/api/tg/webhook")).status_code == 401
            assert (await stranger.get("/apps/tg/open/a/b")).status_code == 201
        done = await client.post("/api/methods/math.add", json=[1, 2, 3])
        assert done.json() == {"sum": 6}
        assert (await client.post("/api/methods/none", json={})).status_code == 404


# --- configuration ---


async def test_the_running_configuration_is_read_and_changed(tmp_path: Path):
    (tmp_path / "config.toml").write_text(
        "# mine\n[gateway]\nport = 0\n"
        '[providers.x]\nkind = "openai"\napi_key = "sk-very-secret-key"\n'
    )
    composed = await compose(config_dir=str(tmp_path))
    desks = Desks(composed.door, composed.settings)
    composed.config.applied.append(desks.apply)
    gate = await open_gateway(composed, desks, Guests(10, lambda link: None))
    _, token = await tokens.new_token(composed.host.store)
    try:
        noted = json.loads((tmp_path / "data" / "gateway.json").read_text())
        assert noted["address"] == gate.address
        async with Served(gate, token).client() as client:
            whole = await client.get("/api/config")
            assert "very-secret" not in whole.text
            assert whole.json()["value"]["acp"]["max_sessions"] == 10
            fields = (await client.get("/api/config/fields?path=acp")).json()
            by_key = {one["key"]: one for one in fields}
            assert by_key["acp.max_sessions"]["schema"]["type"] == "integer"
            body = {"key": "acp.max_sessions", "value": 3}
            assert (await client.put("/api/config", json=body)).json()["value"] == 3
            assert desks.desk("acp").settings.max_sessions == 3
            text = (tmp_path / "config.toml").read_text()
            assert "max_sessions = 3" in text and text.startswith("# mine")
            for key, value in (
                ("acp.max_sessions", 0),
                ("acp.max_sessions", "many"),
                ("no.such", 1),
            ):
                bad = await client.put("/api/config", json={"key": key, "value": value})
                assert bad.status_code == 400, key
            body = {"key": "acp.max_sessions", "value": None}
            assert (await client.put("/api/config", json=body)).json()["value"] == 10
    finally:
        await gate.close()
        await composed.close()
    assert not (tmp_path / "data" / "gateway.json").exists()
