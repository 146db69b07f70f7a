"""Web Push: what a browser's push service gets can be read by that browser alone."""

import asyncio
import json

import msgspec
import pytest
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from tests.gateway.making import serving
from tests.gateway.test_links import asking

from dragoman.gateway import push
from dragoman.gateway.routes import push as routes


class Phone:
    """A browser's side: its keys, and a push service that takes what is sent."""

    def __init__(self) -> None:
        self.key = ec.generate_private_key(ec.SECP256R1())
        self.public = push._point(self.key.public_key())
        self.auth = b"0123456789abcdef"
        self.got: asyncio.Queue[tuple[dict[str, str], bytes]] = asyncio.Queue()
        self.status = 201

    async def __aenter__(self):
        self.server = await asyncio.start_server(self._take, "127.0.0.1", 0)
        port = self.server.sockets[0].getsockname()[1]
        self.endpoint = f"http://127.0.0.1:{port}/push/abc"
        return self

    async def __aexit__(self, *problem):
        self.server.close()

    async def _take(self, reader, writer):
        head = (await reader.readuntil(b"\r\n\r\n")).decode().split("\r\n")
        fields = dict(line.lower().split(": ", 1) for line in head[1:] if ": " in line)
        raw = {line.split(": ", 1)[0].lower(): line.split(": ", 1)[1] for line in head[1:-2]}
        body = await reader.readexactly(int(fields["content-length"]))
        writer.write(
            f"HTTP/1.1 {self.status} X\r\ncontent-length: 0\r\nconnection: close\r\n\r\n".encode()
        )
        await writer.drain()
        writer.close()
        self.got.put_nowait((raw, body))

    def subscription(self):
        keys = {"p256dh": push.coded(self.public), "auth": push.coded(self.auth)}
        return {"endpoint": self.endpoint, "keys": keys, "expirationTime": None}

    def read(self, body: bytes) -> bytes:
        salt, size, length = body[:16], int.from_bytes(body[16:20], "big"), body[20]
        theirs = body[21 : 21 + length]
        assert size == 4096 and length == 65
        point = ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), theirs)
        shared = self.key.exchange(ec.ECDH(), point)
        info = b"WebPush: info\0" + self.public + theirs
        key = HKDF(hashes.SHA256(), 32, self.auth, info).derive(shared)
        content = HKDF(hashes.SHA256(), 16, salt, b"Content-Encoding: aes128gcm\0").derive(key)
        nonce = HKDF(hashes.SHA256(), 12, salt, b"Content-Encoding: nonce\0").derive(key)
        said = AESGCM(content).decrypt(nonce, body[21 + length :], None)
        assert said[-1:] == b"\2"
        return said[:-1]


def verified(header: str, host_key: str, audience: str) -> None:
    assert header.startswith("vapid t=") and header.endswith(f", k={host_key}")
    token = header[8:].partition(",")[0]
    said, _, sign = token.rpartition(".")
    claims = json.loads(push.plain(said.split(".")[1]))
    assert claims["aud"] == audience
    raw = push.plain(sign)
    numbers = (int.from_bytes(raw[:32], "big"), int.from_bytes(raw[32:], "big"))
    key = ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), push.plain(host_key))
    key.verify(encode_dss_signature(*numbers), said.encode(), ec.ECDSA(hashes.SHA256()))
    with pytest.raises(InvalidSignature):
        key.verify(encode_dss_signature(*numbers), said.encode() + b"x", ec.ECDSA(hashes.SHA256()))


async def test_a_question_is_pushed_with_a_link_that_answers_it():
    async with Phone() as phone, serving() as served, served.client() as client:
        assert len(routes.ROUTES) == 3
        host = (await client.get("/api/push")).json()
        assert host["available"], host
        assert (await client.get("/api/push")).json()["key"] == host["key"]
        joined = await client.post("/api/push", json=phone.subscription())
        assert joined.status_code == 204, joined.text
        await asking(served, "ask_1", "rm -rf /tmp/x")
        async with asyncio.timeout(60):
            headers, body = await phone.got.get()
        assert headers["content-encoding"] == "aes128gcm" and b"rm" not in body[:16]
        verified(headers["authorization"], host["key"], phone.endpoint.rpartition("/push")[0])
        told = msgspec.json.decode(phone.read(body))
        assert told["tag"] == "ask_1" and "rm -rf" not in told["body"]
        async with served.stranger() as stranger:
            link = told["path"].removeprefix("approve#")
            seen = await stranger.post("/api/links/look", json={"link": link})
            assert "rm -rf /tmp/x" in seen.text
        await asking(served, "ask_2")
        async with asyncio.timeout(60):
            await phone.got.get()
        phone.status = 410  # the service does not know it any more
        await served.gate.pusher.tell("ask_2")
        assert await served.gate.pusher.browsers() == []


async def test_what_cannot_be_pushed_to_is_refused():
    async with Phone() as phone, serving() as served, served.client() as client:
        good = phone.subscription()
        for endpoint in ("ftp://x/y", "http://example.com/p", "https://", "nothing", "http://["):
            answer = await client.post("/api/push", json={**good, "endpoint": endpoint})
            assert answer.status_code == 400, endpoint
        for key in ("", "AAAA", push.coded(b"\4" + b"\1" * 64)):
            keys = {**good["keys"], "p256dh": key}
            answer = await client.post("/api/push", json={**good, "keys": keys})
            assert answer.status_code == 400
        async with served.stranger() as stranger:
            assert (await stranger.post("/api/push", json=good)).status_code == 401
        await client.post("/api/push", json=good)
        assert len(await served.gate.pusher.browsers()) == 1
        await client.post("/api/push/leave", json={"endpoint": good["endpoint"]})
        assert await served.gate.pusher.browsers() == []


def test_a_message_has_a_bound():
    with pytest.raises(ValueError, match="too long"):
        push.encrypt(b"x" * 5000, b"", b"")
