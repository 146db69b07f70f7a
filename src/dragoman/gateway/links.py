"""Links that answer one question: signed, good for one answer, over after a while.

A link is `<question>.<when it is over>.<once>.<signature>`. The signature covers the question's
digest as well, so that a link answers what it was made for and nothing else. Whoever has it needs
no token: it is sent where only the owner reads. The key is kept in the store; what was used is
remembered until it would be over anyway.
"""

import asyncio
import hmac
import secrets
from hashlib import sha256
from time import time

import msgspec

from dragoman.engine.ports import AskRow, Shelf, row_of
from dragoman.holding import Holder

from .http import Refusal

KEYS = "links"
USED = "links_used"
SECONDS = 900
LONGEST = 24 * 3600


class Links(Holder):
    """Makes links, and knows which still work."""

    _shelf: Shelf
    _key: bytes = b""
    # Of two who come together one is the first.
    answering: asyncio.Lock = msgspec.field(default_factory=asyncio.Lock)

    async def make(self, row: AskRow, seconds: int = SECONDS) -> tuple[str, int]:
        """The link's text, and when it is over (seconds since the epoch)."""
        until = int(time()) + seconds
        once = secrets.token_urlsafe(12)
        sign = await self._sign(row.ask.id, until, once, row.ask.digest)
        return f"{row.ask.id}.{until}.{once}.{sign}", until

    def question(self, text: str) -> str:
        """The id of the question that a link is about; not checked yet."""
        return _parts(text)[0]

    async def check(self, text: str, row: AskRow) -> None:
        """Raises Refusal for a link that is not ours, was used, or is over."""
        ask, until, once, sign = _parts(text)
        good = await self._sign(ask, until, once, row.ask.digest)
        if ask != row.ask.id or not hmac.compare_digest(good, sign):
            raise _wrong()
        if until < int(time()):
            raise Refusal(410, "link_over", "This link is over.", "Open the dashboard instead.")
        if await self._shelf.get(USED, once) is not None:
            raise Refusal(410, "link_used", "This link was used.", "It answers once.")

    async def use(self, text: str) -> None:
        """Make it worthless; those that are over are forgotten on the way."""
        _, until, once, _ = _parts(text)
        now = int(time())
        for key, raw in await self._shelf.pairs(USED):
            if (row_of(raw, int) or now) < now:
                await self._shelf.put(USED, key, None)
        await self._shelf.put(USED, once, str(until).encode())

    async def _sign(self, ask: str, until: int, once: str, digest: str) -> str:
        if not self._key:
            kept = await self._shelf.get(KEYS, "key")
            if kept is None:
                await self._shelf.put(KEYS, "key", secrets.token_bytes(32))
                kept = await self._shelf.get(KEYS, "key")  # another process may have been first
            self._key = kept or b""
        said = f"{ask}\n{until}\n{once}\n{digest}".encode()
        return hmac.new(self._key, said, sha256).hexdigest()


def _parts(text: str) -> tuple[str, int, str, str]:
    parts = text.rsplit(".", 3)
    if len(text) > 500 or len(parts) != 4 or not parts[1].isascii() or not parts[1].isdigit():
        raise _wrong()
    if not all(part.isascii() for part in parts):
        raise _wrong()
    return parts[0], int(parts[1]), parts[2], parts[3]


def _wrong() -> Refusal:
    return Refusal(403, "bad_link", "This link is not one of ours.", "Take it whole, unchanged.")
