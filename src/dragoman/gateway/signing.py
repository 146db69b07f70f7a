"""Signatures of webhooks: HMAC-SHA256 over the time and the body, so that none can be replayed."""

import hmac
from hashlib import sha256
from time import time

from dragoman.engine.reading import counted

from .http import Refusal, Request

HEADER = "x-dragoman-signature"
_TOLERANCE = 300  # seconds that clocks may differ


def sign(secret: str, body: bytes, at: int | None = None) -> str:
    """`t=<seconds>,v1=<hex>`, the header of a webhook of ours."""
    when = int(time()) if at is None else at
    return f"t={when},v1={_mac(secret, str(when).encode() + b'.' + body)}"


def verify(secret: str, request: Request) -> None:
    """Raises Refusal when a body is not signed with this secret.

    Takes our own header, and `X-Hub-Signature-256` (over the body alone) as code forges send it.
    """
    ours = request.header(HEADER)
    if ours:
        fields = dict(one.strip().partition("=")[::2] for one in ours.split(","))
        when = fields.get("t", "")
        made = counted(when)
        if made is None or abs(time() - made) > _TOLERANCE:
            raise Refusal(403, "bad_signature", "The signature is too old.", "Check the clock.")
        wanted = _mac(secret, when.encode() + b"." + request.body)
        given = fields.get("v1", "")
    else:
        wanted = _mac(secret, request.body)
        given = request.header("x-hub-signature-256").removeprefix("sha256=")
    if not given:
        raise Refusal(401, "unsigned", "The body is not signed.", f"Send the header {HEADER}.")
    if not hmac.compare_digest(wanted.encode(), given.encode("utf-8", "replace")):
        raise Refusal(403, "bad_signature", "The signature does not fit the body.")


def _mac(secret: str, body: bytes) -> str:
    return hmac.new(secret.encode(), body, sha256).hexdigest()
