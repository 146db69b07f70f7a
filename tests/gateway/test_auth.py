"""Who is let in: tokens, pairing, cookies, origins and hosts."""

import asyncio
from pathlib import Path

import httpx
import msgspec
import pytest
import websockets
from tests.gateway.making import serving
from websockets.asyncio.client import connect

from dragoman.gateway import tokens
from dragoman.observe import log
from dragoman.testing.host import host_of

EVIL = "https://evil.example"


async def test_without_a_token_or_with_a_wrong_one_nothing_is_told():
    async with serving() as served, served.stranger() as client:
        for path in ("/api/sessions", "/api/config", "/api/events", "/api/live", "/api/tokens"):
            answer = await client.get(path)
            assert (
                answer.status_code == 401 and "bearer" in answer.headers["www-authenticate"].lower()
            )
        almost = served.token[:-1] + ("A" if served.token[-1] != "A" else "B")
        for wrong in (almost, "tok_00000000_x", "x", served.token[:12]):
            answer = await client.get("/api/sessions", headers={"authorization": f"Bearer {wrong}"})
            assert answer.status_code == 401
        answer = await client.post("/api/sessions", json={})
        assert answer.status_code == 401


@pytest.mark.parametrize("path", ["/acp", "/rpc"])
async def test_a_websocket_needs_a_token_as_well(path: str):
    async with serving() as served:
        for target in (path, f"{path}?token=tok_00000000_wrong"):
            with pytest.raises(websockets.InvalidStatus) as refused:
                await connect(served.ws + target)
            assert refused.value.response.status_code == 401
        with pytest.raises(websockets.InvalidStatus) as refused:
            await connect(served.ws + path, subprotocols=["bearer.wrong"])  # type: ignore[list-item]
        assert refused.value.response.status_code == 401


async def test_a_token_may_come_by_header_subprotocol_or_query():
    async with serving() as served:
        bearer = {"Authorization": f"Bearer {served.token}"}
        ways = (
            ("/acp", {"additional_headers": bearer}),
            ("/acp", {"subprotocols": [f"bearer.{served.token}"]}),
            ("/acp", {"subprotocols": ["zeroclaw.acp.v1", f"bearer.{served.token}"]}),
            (f"/acp?token={served.token}", {}),
        )
        for path, options in ways:
            async with connect(served.ws + path, **options) as ws:
                await ws.send('{"jsonrpc":"2.0","id":1,"method":"initialize","params":{}}')
                assert '"protocolVersion":1' in await ws.recv()
                if "zeroclaw.acp.v1" in options.get("subprotocols", ()):
                    assert ws.subprotocol == "zeroclaw.acp.v1"


async def test_a_revoked_token_ends_what_is_open_at_once():
    async with serving() as served:
        shelf = host_of(served.door).store
        made, secret = await tokens.new_token(shelf, "short")
        bearer = {"Authorization": f"Bearer {secret}"}
        async with connect(served.ws + "/acp", additional_headers=bearer) as ws:
            async with served.client() as owner:
                assert (await owner.delete(f"/api/tokens/{made.id}")).status_code == 204
            with pytest.raises(websockets.ConnectionClosed) as closed:
                async with asyncio.timeout(60):
                    await ws.recv()
            assert closed.value.rcvd is not None and closed.value.rcvd.code == 1008
        async with served.stranger(headers={"authorization": f"Bearer {secret}"}) as client:
            assert (await client.get("/api/status")).status_code == 401


async def test_a_token_revoked_by_another_process_ends_a_stream():
    async with serving() as served:
        shelf = host_of(served.door).store
        made, secret = await tokens.new_token(shelf)
        async with served.stranger(headers={"authorization": f"Bearer {secret}"}) as client:
            async with client.stream("GET", "/api/events") as stream:
                lines = stream.aiter_lines()
                assert await anext(lines) == ": hello"
                await shelf.put(tokens.TOKENS, made.id, None)  # as `dragoman token revoke` does
                with pytest.raises(Exception, match="."):
                    async with asyncio.timeout(60):
                        async for _ in lines:
                            pass
                        raise ConnectionError("ended")


async def test_tokens_are_stored_as_hashes_only():
    async with serving() as served:
        rows = await host_of(served.door).store.pairs(tokens.TOKENS)
        secret = served.token[13:]
        assert len(rows) == 1 and secret.encode() not in rows[0][1]


# --- pairing ---


async def test_no_code_is_told_to_anybody_for_coming_from_here(capfd):
    async with serving(token=False) as served, served.stranger() as client:
        code = capfd.readouterr().err.split("with the code ")[1].split()[0]
        for method in ("GET", "POST", "HEAD", "OPTIONS", "PUT"):
            for path in ("/pair/code", "/pair/code/", "/api/pair-codes", "/api/pair/code"):
                answer = await client.request(method, path)
                assert code not in answer.text and answer.status_code in (401, 404, 405), path
        paired = await client.post("/pair", headers={"X-Pairing-Code": code})
        token = paired.json()["token"]
        bearer = {"authorization": f"Bearer {token}"}
        assert (await client.get("/api/status", headers=bearer)).status_code == 200
        again = await client.post("/pair", headers={"X-Pairing-Code": code})
        assert again.status_code == 403


async def test_a_link_works_once_and_not_for_long():
    async with serving() as served, served.stranger() as client:
        made = await served.gate.pairing(link=True)
        address, _, secret = made["link"].partition("/#enter=")
        assert address == made["address"] == served.gate.address and made["expires_in"] <= 120
        assert len(secret) > 40
        for wrong in (secret[:-1], secret.lower(), secret + "x", secret.removeprefix("link_")):
            refused = await client.post("/pair", json={"code": wrong, "browser": True})
            assert refused.status_code == 403, wrong
        entered = await client.post("/pair", json={"code": secret, "browser": True})
        assert entered.status_code == 200 and "dragoman_" in entered.headers["set-cookie"]
        assert "token" not in entered.json()
        client.cookies.clear()
    async with serving() as served, served.stranger() as client:
        secret = await tokens.new_link(host_of(served.door).store)
        tries = [client.post("/pair", json={"code": secret}) for _ in range(2)]
        answers = await asyncio.gather(*tries)
        assert sorted(one.status_code for one in answers) == [200, 403]
        late = await tokens.new_link(host_of(served.door).store, seconds=-1)
        assert (await client.post("/pair", json={"code": late})).status_code == 403


async def test_a_code_works_once_even_for_two_who_come_together():
    async with serving() as served, served.stranger() as client:
        code = await tokens.new_code(host_of(served.door).store)
        tries = [client.post("/pair", json={"code": text}) for text in (code, code.lower())]
        answers = await asyncio.gather(*tries)
        assert sorted(one.status_code for one in answers) == [200, 403]


async def test_a_code_is_over_after_its_time():
    async with serving() as served, served.stranger() as client:
        code = await tokens.new_code(host_of(served.door).store, seconds=-1)
        assert (await client.post("/pair", json={"code": code})).status_code == 403


async def test_guessing_codes_is_slowed_down():
    async with serving() as served, served.stranger() as client:
        code = await tokens.new_code(host_of(served.door).store)
        seen = [
            (await client.post("/pair", json={"code": f"WRONG{n}"})).status_code for n in range(6)
        ]
        assert seen == [403] * 5 + [429]
        refused = await client.post("/pair", json={"code": code})
        assert refused.status_code == 429 and int(refused.headers["retry-after"]) > 0


# --- browsers ---


async def pair(served, client) -> dict[str, str]:
    """Pair a browser; returns the headers that our own page sends."""
    code = await tokens.new_code(host_of(served.door).store)
    own = {"origin": served.address, "x-dragoman": "1"}
    answer = await client.post("/pair", json={"code": code, "browser": True}, headers=own)
    cookie = answer.headers["set-cookie"]
    assert "HttpOnly" in cookie and "SameSite=Strict" in cookie
    assert "token" not in answer.json()
    return own


async def test_a_cookie_acts_only_from_our_own_page():
    async with serving() as served:
        async with served.stranger() as client:
            own = await pair(served, client)
            assert (await client.get("/api/status")).status_code == 200
            assert (await client.post("/api/sessions", json={}, headers=own)).status_code == 201
            forged = (
                {},
                {"x-dragoman": "1"},
                {"origin": served.address},
                {"origin": EVIL, "x-dragoman": "1"},
                {"origin": "null", "x-dragoman": "1"},
                {"origin": f"http://127.0.0.1:{served.port + 1}", "x-dragoman": "1"},
            )
            for headers in forged:
                answer = await client.post("/api/sessions", json={}, headers=headers)
                assert answer.status_code == 403, headers
            cross = {"sec-fetch-site": "cross-site", "sec-fetch-mode": "no-cors"}
            assert (await client.get("/api/sessions", headers=cross)).status_code == 403
            cookie = "; ".join(f"{name}={value}" for name, value in client.cookies.items())
            with pytest.raises(websockets.InvalidStatus) as refused:
                await connect(served.ws + "/acp", additional_headers={"Cookie": cookie})
            assert refused.value.response.status_code == 403
            async with connect(
                served.ws + "/acp",
                additional_headers={"Cookie": cookie, "Origin": served.address},
            ):
                pass


async def test_leaving_revokes_the_browser():
    async with serving() as served:
        async with served.stranger() as client:
            own = await pair(served, client)
            kept = dict(client.cookies)
            assert (await client.post("/api/leave", headers=own)).status_code == 200
            client.cookies.clear()
            client.cookies.update(kept)
            assert (await client.get("/api/status")).status_code == 401


async def test_foreign_origins_are_refused_with_a_good_token_too():
    async with serving() as served, served.client() as client:
        for origin in (
            EVIL,
            "null",
            "http://localhost:1",
            f"http://127.0.0.1.evil.example:{served.port}",
        ):
            answer = await client.get("/api/sessions", headers={"origin": origin})
            assert answer.status_code == 403, origin
            with pytest.raises(websockets.InvalidStatus) as refused:
                await connect(f"{served.ws}/acp?token={served.token}", origin=origin)
            assert refused.value.response.status_code == 403


async def test_names_that_point_here_are_not_taken_for_ours():
    async with serving() as served, served.client() as client:
        for host in (
            "evil.example",
            f"evil.example:{served.port}",
            "127.0.0.1.evil.example",
            "a@b",
            "",
        ):
            said = await served.raw(
                f"GET /livez HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n".encode()
            )
            assert said.split(b" ")[1] in (b"421", b"400"), (host, said[:80])
        for host in ("localhost", f"localhost:{served.port}", "[::1]:1234", "192.168.1.7:42617"):
            answer = await client.get("/livez", headers={"host": host})
            assert answer.status_code == 200, host


async def test_an_allowed_origin_may_ask_across_origins():
    async with serving(allowed_origins=("https://agents.example",)) as served:
        async with served.client() as client:
            theirs = {"origin": "https://agents.example"}
            asked = {**theirs, "access-control-request-method": "POST"}
            first = await client.options("/api/sessions", headers=asked)
            assert first.status_code == 204
            assert first.headers["access-control-allow-origin"] == "https://agents.example"
            assert "authorization" in first.headers["access-control-allow-headers"]
            answer = await client.get("/api/sessions", headers=theirs)
            assert answer.headers["access-control-allow-origin"] == "https://agents.example"
            assert (await client.get("/livez", headers={"host": "agents.example"})).is_success
            assert "access-control-allow-credentials" not in answer.headers


async def test_who_is_let_in_is_followed_while_it_runs():
    async with serving(require_pairing=False) as served, served.stranger() as client:
        theirs = {"origin": "https://agents.example"}
        assert (await client.get("/api/sessions")).status_code == 200
        assert (await client.get("/api/sessions", headers=theirs)).status_code == 403
        async with (
            connect(served.ws + "/acp", origin=None) as socket,
            client.stream("GET", "/api/events") as stream,
            served.client() as paired,
            paired.stream("GET", "/api/events") as known,
        ):
            told, said = stream.aiter_bytes(), known.aiter_bytes()
            assert await anext(told) == await anext(said) == b": hello\n\n"
            given = msgspec.structs.replace(
                served.gate.settings, require_pairing=True, allowed_origins=(theirs["origin"],)
            )
            composed = served.gate.composed
            composed.settings = msgspec.structs.replace(composed.settings, gateway=given)
            served.gate.follow()
            async with asyncio.timeout(60):
                await socket.wait_closed()
            assert socket.close_code == 1008
            with pytest.raises(httpx.RemoteProtocolError):  # it was cut off
                await asyncio.wait_for(anext(told), 60)
            assert (await paired.post("/api/sessions", json={})).status_code == 201
            assert b"event: opened" in await asyncio.wait_for(anext(said), 60)
        assert (await client.get("/api/sessions")).status_code == 401
        answer = await client.options(
            "/api/sessions", headers={**theirs, "access-control-request-method": "POST"}
        )
        assert answer.status_code == 204


async def test_without_pairing_loopback_is_let_in_but_not_foreign_pages():
    async with serving(require_pairing=False) as served, served.stranger() as client:
        assert (await client.get("/api/sessions")).status_code == 200
        assert (await client.post("/api/sessions", json={})).status_code == 201
        refused = await client.post("/api/sessions", json={}, headers={"origin": EVIL})
        assert refused.status_code == 403
        async with connect(served.ws + "/acp", origin=None):
            pass


async def test_no_token_reaches_the_log(tmp_path: Path):
    file = tmp_path / "log"
    log.configure("debug", file=str(file))
    try:
        async with serving() as served:
            async with served.client() as client:
                await client.get(f"/api/sessions?token={served.token}")
                await client.get("/api/sessions")
                await client.get("/nothing")
                made = (await client.post("/api/tokens", json={"name": "x"})).json()["token"]
            async with served.stranger() as client:
                await client.get("/api/sessions?token=tok_00000000_a-wrong-but-secret-one")
            async with connect(f"{served.ws}/acp?token={served.token}") as ws:
                await ws.send("nonsense")
                await ws.recv()
    finally:
        log.configure("warning")
    said = file.read_text()
    assert "/api/sessions" in said and "unauthorized" in said
    assert served.token not in said and served.token[13:] not in said
    assert made[13:] not in said and "a-wrong-but-secret-one" not in said


async def test_wrong_codes_lock_nobody_out_who_has_a_link() -> None:
    """Any program of this machine may send wrong codes, for as long as it likes."""
    async with serving(token=False) as served, served.stranger() as client:
        for number in range(6):
            answer = await client.post("/pair", json={"code": f"AAAA-AAA{number}"})
        assert answer.status_code == 429
        for _ in range(40):
            wrong = await client.post("/pair", json={"code": "link_" + "x" * 40})
            assert wrong.status_code == 403
        link = await tokens.new_link(host_of(served.door).store)
        assert (await client.post("/pair", json={"code": link})).status_code == 200
        assert (await client.post("/pair", json={"code": link})).status_code == 403  # once
