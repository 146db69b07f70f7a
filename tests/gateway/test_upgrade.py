"""WebSockets: ACP at /acp, zeroclaw at /rpc, frames with limits, TLS."""

import asyncio
import json
import ssl
import subprocess
from pathlib import Path

import pytest
import websockets
from tests.gateway.making import Served, serving
from websockets.asyncio.client import connect

from dragoman.settings.host import Limits
from dragoman.testing.script import call, turn


async def ask(ws, id: int, method: str, **params) -> dict:
    """Send a request; returns its answer, whatever comes between."""
    await ws.send(json.dumps({"jsonrpc": "2.0", "id": id, "method": method, "params": params}))
    async with asyncio.timeout(60):
        while True:
            message = json.loads(await ws.recv())
            if message.get("id") == id and "method" not in message:
                return message


def bearer(served: Served) -> dict:
    return {"additional_headers": {"Authorization": f"Bearer {served.token}"}}


async def test_acp_runs_a_turn_one_message_per_text_frame(tmp_path: Path):
    async with serving(["Hello."]) as served:
        async with connect(served.ws + "/acp", **bearer(served)) as ws:
            assert len(ws.response.headers["Acp-Connection-Id"]) == 36
            assert ws.subprotocol is None
            await ask(ws, 1, "initialize", protocolVersion=1)
            made = await ask(ws, 2, "session/new", cwd=str(tmp_path), mcpServers=[])
            id = made["result"]["sessionId"]
            row = {"sessionId": id, "prompt": "hi"}
            text = json.dumps(
                {"jsonrpc": "2.0", "id": 3, "method": "session/prompt", "params": row}
            )
            await ws.send(text)
            seen = []
            async with asyncio.timeout(60):
                while not seen or seen[-1].get("id") != 3:
                    frame = await ws.recv()
                    assert isinstance(frame, str) and "\n" not in frame
                    seen.append(json.loads(frame))
            assert seen[-1]["result"]["content"] == "Hello."
            await ws.send(text.replace('"id": 3', '"id": 4').encode())  # binary counts as well
            async with asyncio.timeout(60):
                while json.loads(await ws.recv()).get("id") != 4:
                    pass
        # The session belongs to the host: another connection takes it up.
        async with connect(served.ws + "/acp", **bearer(served)) as ws:
            await ask(ws, 1, "initialize", protocolVersion=1)
            given = {"sessionId": id, "cwd": str(tmp_path), "mcpServers": []}
            refused = await ask(ws, 2, "session/load", **given)
            assert refused["error"]["code"] == -32000  # nothing is kept here
            join = {"dragoman": {"join": True}}
            assert "result" in await ask(ws, 3, "session/load", **given, _meta=join)


async def test_an_agent_may_be_named_in_the_address(tmp_path: Path):
    async with serving() as served:
        url = f"{served.ws}/acp?agent=nobody&token={served.token}"
        async with connect(url) as ws:
            await ask(ws, 1, "initialize", protocolVersion=1)
            refused = await ask(ws, 2, "session/new", cwd=str(tmp_path), mcpServers=[])
            assert "nobody" in refused["error"]["message"]
        async with connect(f"{served.ws}/acp?agent=default&token={served.token}") as ws:
            await ask(ws, 1, "initialize", protocolVersion=1)
            made = await ask(ws, 2, "session/new", cwd=str(tmp_path), mcpServers=[])
            assert made["result"]["_meta"]["dragoman"]["agent"] == "default"


async def test_zeroclaw_is_spoken_at_rpc(tmp_path: Path):
    async with serving(["Hi."]) as served, connect(served.ws + "/rpc", **bearer(served)) as ws:
        hello = await ask(ws, 1, "initialize", protocolVersion=1)
        assert "serverVersion" in hello["result"] or "server_version" in hello["result"]
        made = await ask(ws, 2, "session/new", agentAlias="default", cwd=str(tmp_path))
        assert "result" in made, made
        id = made["result"].get("sessionId") or made["result"].get("session_id")
        done = await ask(ws, 3, "session/prompt", sessionId=id, prompt="hello")
        assert done["result"]["content"] == "Hi."


async def test_an_approval_crosses_from_rest_to_acp(tmp_path: Path):
    async with serving([turn(call("echo", text="x")), "done"]) as served, served.client() as client:
        async with connect(served.ws + "/acp", **bearer(served)) as ws:
            await ask(ws, 1, "initialize", protocolVersion=1)
            made = await ask(ws, 2, "session/new", cwd=str(tmp_path), mcpServers=[])
            id = made["result"]["sessionId"]
            row = {"sessionId": id, "prompt": "go"}
            await ws.send(
                json.dumps({"jsonrpc": "2.0", "id": 3, "method": "session/prompt", "params": row})
            )
            async with asyncio.timeout(60):
                while True:
                    message = json.loads(await ws.recv())
                    if message.get("method") == "session/request_permission":
                        (waiting,) = (await client.get("/api/approvals")).json()
                        url = f"/api/approvals/{waiting['ask']['id']}"
                        await client.post(url, json={"verdict": "allow"})
                    if message.get("id") == 3:
                        break
            assert message["result"]["stopReason"] == "end_turn"


async def test_an_oversized_frame_ends_the_connection():
    async with serving(limits=Limits(max_line_bytes=10_000)) as served:
        async with connect(served.ws + "/acp", **bearer(served)) as ws:
            await ws.send("x" * 20_000)
            async with asyncio.timeout(60):
                refused = json.loads(await ws.recv())
                assert refused["error"]["code"] == -32600 and refused["id"] is None, refused
                with pytest.raises(websockets.ConnectionClosed) as closed:
                    await ws.recv()
            assert closed.value.rcvd is not None and closed.value.rcvd.code == 1009


@pytest.mark.parametrize(
    ("change", "status"),
    [
        ({"Sec-WebSocket-Version": "8"}, b"426"),
        ({"Sec-WebSocket-Key": "short"}, b"400"),
        ({"Upgrade": "h2c"}, b"426"),
        ({"Connection": "keep-alive"}, b"426"),
    ],
)
async def test_a_wrong_handshake_is_refused(change: dict, status: bytes):
    async with serving() as served:
        fields = {
            "Host": "127.0.0.1",
            "Upgrade": "websocket",
            "Connection": "Upgrade",
            "Sec-WebSocket-Version": "13",
            "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
            "Authorization": f"Bearer {served.token}",
            **change,
        }
        head = "".join(f"{name}: {value}\r\n" for name, value in fields.items())
        said = await served.raw(f"GET /acp HTTP/1.1\r\n{head}\r\n".encode(), until_closed=False)
        assert said.split(b" ")[1] == status


async def test_too_many_clients_are_told_so():
    async with serving(limits=Limits(max_clients=2)) as served:
        async with connect(served.ws + "/acp", **bearer(served)) as one:
            async with connect(served.ws + "/acp", **bearer(served)) as two:
                async with connect(served.ws + "/acp", **bearer(served)) as three:
                    async with asyncio.timeout(60):
                        assert "clients are connected" in await three.recv()
                        with pytest.raises(websockets.ConnectionClosed):
                            await three.recv()
                await ask(one, 1, "initialize")
                await ask(two, 1, "initialize")


async def test_tls_with_a_given_certificate(tmp_path: Path):
    cert, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1",
         "-nodes", "-days", "2", "-subj", "/CN=localhost", "-addext",
         "subjectAltName=DNS:localhost,IP:127.0.0.1", "-keyout", key, "-out", cert],
        check=True, capture_output=True, timeout=60,
    )  # fmt: skip
    async with serving(["Hi."], tls_cert=str(cert), tls_key=str(key)) as served:
        assert served.address.startswith("https://")
        trust = ssl.create_default_context(cafile=cert)
        async with served.client(verify=trust) as client:
            assert (await client.get("/api/status")).status_code == 200
            code = (await client.post("/api/pair-codes")).json()["pairing_code"]
            made = await client.post("/pair", json={"code": code, "browser": True})
            assert "Secure" in made.headers["set-cookie"]
        url = served.address.replace("https", "wss") + "/acp"
        async with connect(url, ssl=trust, **bearer(served)) as ws:
            assert "result" in await ask(ws, 1, "initialize", protocolVersion=1)


async def test_everything_moves_behind_a_prefix():
    async with serving(path_prefix="/dm/") as served, served.client() as client:
        assert (await client.get("/livez")).status_code == 404
        assert (await client.get("/dm/livez")).status_code == 200
        page = await client.get("/dm/")
        assert '<base href="/dm/">' in page.text
        assert (await client.get("/dm/static/app.js")).status_code == 200
        made = await client.post("/dm/api/sessions")
        assert made.headers["location"].startswith("/dm/api/sessions/")
        async with connect(served.ws + "/dm/acp", **bearer(served)) as ws:
            assert "result" in await ask(ws, 1, "initialize", protocolVersion=1)
