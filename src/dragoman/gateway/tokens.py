"""Tokens and pairing codes, as they are kept in the store: only their hashes.

A token is `tok_<id>_<secret>`: the id finds its row, the secret is compared in constant time. A
pairing code is short and works once, for ten minutes; the secret of a link is long and works once,
for two. Both are found by their hash, so how long that takes says nothing. Other processes may add
and revoke at any time, so nothing is remembered here.
"""

import hmac
import secrets
from hashlib import sha256
from time import time

import msgspec

from dragoman.engine.ports import Shelf, row_of

TOKENS = "tokens"
CODES = "pairing"
CODE_SECONDS = 600
LINK_SECONDS = 120
_LINK = "link_"
_SLACK = 60  # seconds by which clocks are set right now and then
_ALPHABET = "ABCDEFGHJKMNPQRSTVWXYZ23456789"  # nothing that looks like something else
_UNREADABLE = "(cannot be read)"
_ID = 12  # characters of an id: tok_ and eight hexadecimal digits


class Token(msgspec.Struct, frozen=True, omit_defaults=True):
    """A token without its secret."""

    id: str
    name: str
    created_at: int  # seconds since the epoch
    kind: str = "client"  # client | browser | bridge
    user: int = -1  # of this machine, who paired a browser; -1: not known, or not of it


class TokenRow(msgspec.Struct, frozen=True):
    """What the store keeps of a token."""

    hash: str
    name: str
    created_at: int
    kind: str = "client"
    user: int = -1


class Code(msgspec.Struct, frozen=True):
    """What the store keeps of a code; one that was made later than now is over, too.

    Else a clock that is set back would let it live on.
    """

    expires_at: int
    made_at: int = 0

    def holds(self) -> bool:
        return self.made_at - _SLACK <= int(time()) <= self.expires_at


def _hash(text: str) -> str:
    return sha256(text.encode()).hexdigest()


async def new_token(
    shelf: Shelf, name: str = "", kind: str = "client", user: int = -1
) -> tuple[Token, str]:
    """Make a token; returns what lists show of it, and the token itself, for this one time."""
    id = f"tok_{secrets.token_hex(4)}"
    secret = secrets.token_urlsafe(32)
    now = int(time())
    row = TokenRow(_hash(secret), name[:200], now, kind, user)
    await shelf.put(TOKENS, id, msgspec.json.encode(row))
    return Token(id, name[:200], now, kind), f"{id}_{secret}"


async def find_token(shelf: Shelf, text: str) -> Token | None:
    """The token of this text, if it is one."""
    id, secret = text[:_ID], text[_ID + 1 :]
    if len(text) > 200 or not id.startswith("tok_") or text[_ID : _ID + 1] != "_":
        return None
    kept = row_of(await shelf.get(TOKENS, id), TokenRow)
    row = kept or TokenRow("", "", 0)
    same = hmac.compare_digest(_hash(secret), row.hash)
    if kept is None or not same:
        return None
    return Token(id, row.name, row.created_at, row.kind, row.user)


async def list_tokens(shelf: Shelf) -> list[Token]:
    """Every token; one that cannot be read lets nobody in, and is listed to be revoked."""
    found = []
    for id, raw in await shelf.pairs(TOKENS):
        row = row_of(raw, TokenRow) or TokenRow("", _UNREADABLE, 0)
        found.append(Token(id, row.name, row.created_at, row.kind))
    return sorted(found, key=lambda token: (token.created_at, token.id))


async def revoke_token(shelf: Shelf, id: str) -> bool:
    """Make a token worthless; False when there is none of this id."""
    if await shelf.get(TOKENS, id) is None:
        return False
    await shelf.put(TOKENS, id, None)
    return True


async def new_code(shelf: Shelf, seconds: int = CODE_SECONDS) -> str:
    """A fresh pairing code; codes that are over are forgotten on the way."""
    letters = "".join(secrets.choice(_ALPHABET) for _ in range(8))
    await _keep(shelf, letters, seconds)
    return f"{letters[:4]}-{letters[4:]}"


async def new_link(shelf: Shelf, seconds: int = LINK_SECONDS) -> str:
    """A code for a link that a program opens: nobody types it, so nobody can guess it."""
    secret = f"{_LINK}{secrets.token_urlsafe(32)}"
    await _keep(shelf, secret, seconds)
    return secret


def is_link(text: str) -> bool:
    """Whether this is the secret of a link, right or wrong."""
    return text.startswith(_LINK)


async def _keep(shelf: Shelf, text: str, seconds: int) -> None:
    now = int(time())
    for key, raw in await shelf.pairs(CODES):
        code = row_of(raw, Code)
        if code is None or not code.holds():
            await shelf.put(CODES, key, None)
    await shelf.put(CODES, _hash(text), msgspec.json.encode(Code(now + seconds, now)))


async def is_code(shelf: Shelf, text: str) -> bool:
    """Whether a code still works; it is not used up."""
    code = row_of(await shelf.get(CODES, _hash(_plain(text))), Code)
    return code is not None and code.holds()


async def use_code(shelf: Shelf, text: str) -> bool:
    """Use a code up; False when it is wrong, over or was used."""
    code = row_of(await shelf.pop(CODES, _hash(_plain(text))), Code)
    return code is not None and code.holds()


def _plain(text: str) -> str:
    if is_link(text):
        return text[:64]
    return "".join(char for char in text.upper() if char.isalnum())[:64]
