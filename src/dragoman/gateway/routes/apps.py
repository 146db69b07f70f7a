"""What apps offer to the web: their routes under /apps/<app>/…, their methods by name."""

import asyncio
from typing import Any

import msgspec

from dragoman.engine.faults import Fault
from dragoman.engine.offers import Offer

from ..http import Refusal, Response, reply
from .table import LARGE, Call, Plain, Route

_SECONDS = 30.0
_KEPT_BACK = frozenset({"authorization", "cookie", "x-pairing-code", "proxy-authorization"})
_NOT_TAKEN = frozenset(
    {"connection", "content-length", "transfer-encoding", "upgrade", "set-cookie",
     "content-security-policy", "keep-alive", "date", "server"}
)  # fmt: skip
# An app's page is a stranger on our origin: it may run, but it is nobody's cookie.
_SANDBOX = "sandbox allow-scripts allow-forms allow-popups"


async def method(call: Call[Any, None]) -> Any:
    name = call.path["name"]
    offer = call.door.offers.find("gateway_method", name)
    if offer is None or offer.call is None:
        raise Refusal(404, "unknown_method", f"No app offers the method {name[:100]}.")
    return reply(await _invoke(offer, call.body))


async def route(call: Plain) -> Any:
    found = _find(call.door.offers.all("http_route"), "/" + call.path["rest"])
    if found is None or found[0].call is None:
        raise Refusal(404, "not_found", "No app answers at this path.")
    offer, rest = found
    request = call.request
    if not request.authed and not offer.config.get("public"):
        await call.gate.auth.identify(request)
    headers = {name: value for name, value in request.headers.items() if name not in _KEPT_BACK}
    given = {
        "method": request.method,
        "path": rest,
        "query": {name: value for name, value in request.query.items() if name != "token"},
        "headers": headers,
        "body": request.body,
    }
    return _response(await _invoke(offer, given))


def _find(offers: list[Offer], path: str) -> tuple[Offer, str] | None:
    """The route for a path, and the path as the app knows it; app names may have slashes.

    The path itself wins, else the longest one that ends in `/*`.
    """
    best: tuple[Offer, str] | None = None
    longest = -1
    for offer in offers:
        if not path.startswith(f"/{offer.app}/"):
            continue
        rest = path[len(offer.app) + 1 :]
        name = offer.name if offer.name.startswith("/") else f"/{offer.name}"
        if name == rest:
            return offer, rest
        if name.endswith("/*") and f"{rest}/".startswith(name[:-1]) and len(name) > longest:
            best, longest = (offer, rest), len(name)
    return best


async def _invoke(offer: Offer, given: Any) -> Any:
    assert offer.call is not None
    try:
        async with asyncio.timeout(_SECONDS):
            return await offer.call(given)
    except TimeoutError:
        raise Refusal(502, "app_silent", f"The app {offer.app} did not answer in time.") from None
    except Fault as fault:
        raise Refusal(502, fault.code, fault.message, fault.hint) from None


def _response(result: object) -> Response:
    """`{status, headers, body}` as an app gives it; anything else is the JSON body itself."""
    if not isinstance(result, dict) or not ({"status", "body"} & result.keys()):
        return reply(result, headers={"content-security-policy": _SANDBOX})
    status = result.get("status", 200)
    if not isinstance(status, int) or not 200 <= status <= 599:
        raise Refusal(502, "bad_app", "The app answered with a status that is none.")
    headers = {"content-security-policy": _SANDBOX}
    given = result.get("headers")
    for name, value in (given if isinstance(given, dict) else {}).items():
        plain = str(name).lower()
        line = str(value).strip()
        usable = plain.isascii() and plain.replace("-", "").isalnum() and line.isprintable()
        if usable and plain not in _NOT_TAKEN:
            headers[plain] = line
    body = result.get("body", "")
    if isinstance(body, bytes):
        data = body
        headers.setdefault("content-type", "application/octet-stream")
    elif isinstance(body, str):
        data = body.encode()
        headers.setdefault("content-type", "text/plain; charset=utf-8")
    else:
        data = msgspec.json.encode(body)
        headers.setdefault("content-type", "application/json")
    return Response(status, data, headers=headers)


ROUTES = [
    Route("POST", "/api/methods/{name}", method, "Call a method that an app offers", "apps",
          body=Any, returns=Any, may_fail=(400, 404, 502)),
    Route("*", "/apps/{rest...}", route, "A page or endpoint of an app", "apps", open=True,
          raw_body=True, hidden=True, limit=LARGE),
]  # fmt: skip
