"""Web Push with keys of our own: browsers that asked for it are told of questions.

What is sent is encrypted for the browser alone (RFC 8291) and signed by the host (RFC 8292), so
that the push service in between learns that something came, and nothing else. A subscription that
its service does not know any more is forgotten.
"""

import asyncio
import base64
import os
from collections.abc import Sequence
from time import time
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import msgspec

from dragoman.engine.events import Asked, Event, Who
from dragoman.engine.faults import Fault
from dragoman.engine.ports import row_of
from dragoman.engine.visible import brief
from dragoman.holding import Holder
from dragoman.observe.extras import adding
from dragoman.observe.log import get_log

from .origin import is_loopback

if TYPE_CHECKING:
    from .gate import Gate

KEYS = "push"
SPACE = "push_browsers"
MOST = 50  # browsers
_SECONDS = 900  # that a link lasts, and that a service keeps what it cannot deliver
_RECORD = 4096
log = get_log("gateway.push")


class Subscription(msgspec.Struct, frozen=True):
    """A browser, as it describes itself."""

    endpoint: str
    p256dh: str
    auth: str


def plain(text: str) -> bytes:
    """Bytes of base64url with or without its padding. Raises ValueError."""
    return base64.urlsafe_b64decode(text + "=" * (-len(text) % 4))


def coded(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).rstrip(b"=").decode()


def problem() -> str:
    """Why this host cannot push; empty when it can."""
    from importlib.util import find_spec

    if find_spec("cryptography") is None:
        return f"The host has no cryptography: {adding('push')}"
    return ""


def wrong_with(endpoint: str) -> str:
    """What is wrong with an address to push to; empty for nothing."""
    try:
        found = urlsplit(endpoint)
        host = found.hostname or ""
    except ValueError:
        return "The endpoint is no address."
    if found.scheme == "https" and host:
        return ""
    if found.scheme == "http" and is_loopback(host):  # a service on this machine
        return ""
    return "The endpoint must be an https address."


def encrypt(message: bytes, browser_key: bytes, secret: bytes) -> bytes:
    """A message for one browser, in one record (RFC 8188 and 8291). Raises ValueError."""
    from cryptography.hazmat.primitives import hashes
    from cryptography.hazmat.primitives.asymmetric import ec
    from cryptography.hazmat.primitives.ciphers.aead import AESGCM
    from cryptography.hazmat.primitives.kdf.hkdf import HKDF

    if len(message) > _RECORD - 17 - 86:
        raise ValueError("the message is too long")
    theirs = ec.EllipticCurvePublicKey.from_encoded_point(ec.SECP256R1(), browser_key)
    own = ec.generate_private_key(ec.SECP256R1())
    public = _point(own.public_key())
    salt = os.urandom(16)

    def derive(salt: bytes, key: bytes, info: bytes, size: int) -> bytes:
        return HKDF(hashes.SHA256(), size, salt, info).derive(key)

    shared = own.exchange(ec.ECDH(), theirs)
    key = derive(secret, shared, b"WebPush: info\0" + browser_key + public, 32)
    content = derive(salt, key, b"Content-Encoding: aes128gcm\0", 16)
    nonce = derive(salt, key, b"Content-Encoding: nonce\0", 12)
    sealed = AESGCM(content).encrypt(nonce, message + b"\2", None)
    head = salt + _RECORD.to_bytes(4, "big") + bytes([len(public)]) + public
    return head + sealed


def _point(key: Any) -> bytes:
    from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

    made: bytes = key.public_bytes(Encoding.X962, PublicFormat.UncompressedPoint)
    return made


class Signer:
    """The host's own key, by which push services know it."""

    def __init__(self, secret: bytes) -> None:
        from cryptography.hazmat.primitives.asymmetric import ec

        self._key = ec.derive_private_key(int.from_bytes(secret, "big"), ec.SECP256R1())
        self.public = coded(_point(self._key.public_key()))

    def header(self, endpoint: str) -> str:
        """`Authorization` for a push service."""
        from cryptography.hazmat.primitives import hashes
        from cryptography.hazmat.primitives.asymmetric import ec
        from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature

        place = urlsplit(endpoint)
        head = {"typ": "JWT", "alg": "ES256"}
        claims = {
            "aud": f"{place.scheme}://{place.netloc}",
            "exp": int(time()) + 3600,
            "sub": "mailto:dragoman@localhost",
        }
        said = ".".join(coded(msgspec.json.encode(part)) for part in (head, claims))
        numbers = decode_dss_signature(self._key.sign(said.encode(), ec.ECDSA(hashes.SHA256())))
        sign = b"".join(number.to_bytes(32, "big") for number in numbers)
        return f"vapid t={said}.{coded(sign)}, k={self.public}"


class _Questions(Holder):
    """`engine.hub.Shape` that says nothing and hands questions on."""

    _waiting: asyncio.Queue[str]

    def speak(self, events: Sequence[Event]) -> None:
        for one in events:
            if isinstance(one.body, Asked) and not self._waiting.full():
                self._waiting.put_nowait(one.body.ask.id)
        return None


class Pusher(Holder):
    """Tells browsers. Runs once the first of them has asked for it."""

    _gate: "Gate"
    _signer: Signer | None = None
    _running: bool = False
    _watching: asyncio.Event = msgspec.field(default_factory=asyncio.Event)

    async def signer(self) -> Signer:
        if self._signer is None:
            secret = await self._gate.door.shelf.get(KEYS, "key")
            if secret is None:
                # below the curve's order whatever it is
                await self._gate.door.shelf.put(KEYS, "key", b"\0" + os.urandom(31))
                secret = await self._gate.door.shelf.get(KEYS, "key")
            self._signer = Signer(secret or b"")
        return self._signer

    async def browsers(self) -> list[Subscription]:
        rows = await self._gate.door.shelf.pairs(SPACE)
        found = (row_of(raw, Subscription) for _, raw in rows)
        return [one for one in found if one is not None]

    async def join(self, browser: Subscription) -> None:
        await self._gate.door.shelf.put(
            SPACE, _name(browser.endpoint), msgspec.json.encode(browser)
        )
        self.start()
        await self._watching.wait()  # whatever is asked from now on is pushed

    async def leave(self, endpoint: str) -> None:
        await self._gate.door.shelf.put(SPACE, _name(endpoint), None)

    async def resume(self) -> None:
        """After a start: go on when there is somebody to tell."""
        if not problem() and await self.browsers():
            self.start()

    def start(self) -> None:
        if not self._running:
            self._running = True
            self._gate.spawn(self._run())

    async def _run(self) -> None:
        waiting: asyncio.Queue[str] = asyncio.Queue(1000)
        await self._gate.door.reached()
        who = Who("webhook", "out", "push", "push")
        watch = self._gate.door.watch_all(who, _Questions(waiting), lambda said: None)
        self._watching.set()
        try:
            while True:
                ask = await waiting.get()
                try:
                    await self.tell(ask)
                except Fault as fault:
                    log.warning("not pushed", ask=ask, problem=str(fault))
        finally:
            watch.close()

    async def tell(self, ask_id: str) -> None:
        """Push one question to every browser, each with a link of its own."""
        row = await self._gate.door.ask(ask_id)
        if row.settled is not None:
            return
        info = await self._gate.door.info(row.ask.session)
        for browser in await self.browsers():
            link, _ = await self._gate.answers.make(row, _SECONDS)
            message = {
                "title": brief(f"Needs you: {info.title or info.query}", 120),
                "body": brief(row.ask.title or "A question", 200),
                "tag": ask_id[:100],
                "path": f"approve#{link}",
            }
            await self._send(browser, msgspec.json.encode(message))

    async def _send(self, browser: Subscription, message: bytes) -> None:
        from dragoman.http.port import HttpFault

        signer = await self.signer()
        try:
            body = encrypt(message, plain(browser.p256dh), plain(browser.auth))
            headers = {
                "authorization": signer.header(browser.endpoint),
                "content-encoding": "aes128gcm",
                "content-type": "application/octet-stream",
                "ttl": str(_SECONDS),
                "urgency": "high",
            }
            async with asyncio.timeout(20):
                answer = await self._gate.client().fetch(
                    "POST", browser.endpoint, headers=headers, body=body
                )
        except (HttpFault, TimeoutError, ValueError) as trouble:
            log.warning("not pushed", place=urlsplit(browser.endpoint).netloc, problem=str(trouble))
            return
        if answer.status in (404, 410):
            await self.leave(browser.endpoint)
        elif answer.status >= 300:
            log.warning("not pushed", place=urlsplit(browser.endpoint).netloc, status=answer.status)


def _name(endpoint: str) -> str:
    from hashlib import sha256

    return sha256(endpoint.encode()).hexdigest()
