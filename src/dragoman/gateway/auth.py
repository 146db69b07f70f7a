"""Who a request comes from: tokens by header, subprotocol, query or cookie; pairing."""

import asyncio
import os
from collections import deque
from time import monotonic

import msgspec

from dragoman.engine.ports import Shelf
from dragoman.engine.visible import many
from dragoman.holding import Holder

from . import tokens
from .http import Refusal, Request
from .origin import is_same
from .tokens import Token

HEADER = "x-dragoman"  # a page of another origin cannot set it without asking us first
_TRIES = 5  # wrong codes of one address within the window
_TRIES_ALL = 30
_WINDOW = 60.0
_ADDRESSES = 1_000


class Throttle(Holder):
    """Counts wrong guesses of the last minute, by address and over all."""

    _wrong: dict[str, deque[float]] = {}
    _all: deque[float] = msgspec.field(default_factory=deque)

    def check(self, address: str) -> None:
        """Raises Refusal when there were too many."""
        now = monotonic()
        mine = self._wrong.get(address, deque())
        for times in (mine, self._all):
            while times and now - times[0] > _WINDOW:
                times.popleft()
        if len(mine) >= _TRIES or len(self._all) >= _TRIES_ALL:
            oldest = (mine or self._all)[0]
            wait = max(1, int(_WINDOW - (now - oldest)) + 1)
            raise Refusal(
                429,
                "too_many_tries",
                "Too many wrong codes.",
                f"Try again in {many(wait, 'second')}.",
                {"retry-after": str(wait)},
            )

    def wrong(self, address: str) -> None:
        now = monotonic()
        if len(self._wrong) >= _ADDRESSES and address not in self._wrong:
            self._wrong.clear()
        self._wrong.setdefault(address, deque()).append(now)
        self._all.append(now)


class Auth(Holder):
    """The gateway's lock."""

    shelf: Shelf
    required: bool
    cookie: str
    throttle: Throttle = msgspec.field(default_factory=Throttle)
    # A code works once, also for two who come together.
    _pairing: asyncio.Lock = msgspec.field(default_factory=asyncio.Lock)
    _first: str = ""  # the code that is shown until somebody has paired

    async def identify(self, request: Request) -> None:
        """Fill in who it is; raises Refusal when nobody we know."""
        given, via = _given(request)
        if not given and (cookie := request.cookie(self.cookie)):
            given, via = cookie, "cookie"
        token = await tokens.find_token(self.shelf, given) if given else None
        if token is None:
            if given and via != "cookie":
                raise _unknown("The token is not known here.")
            if not self.required and request.local:
                # Coming from this machine says nothing: a command of ours does, and other users do.
                if await request.is_owner():
                    request.authed, request.via = True, "open"
                    return
                raise _unknown("A token is needed: this is no program of the host's owner.")
            raise _unknown("A token is needed.")
        # Browsers send cookies to every port of a name: a server that a tool started is told ours.
        if token.kind == "browser" and via != "cookie":
            raise _unknown("The token of a browser is good in that browser alone.")
        if via == "cookie" and await request.is_tools():
            raise _unknown("No program that a tool started is let in by a browser's token.")
        if via == "cookie" and not await _is_of(token.user, request):
            raise _unknown("The token of a browser is good for the user who paired it alone.")
        request.authed, request.token_id, request.via = True, token.id, via
        if via == "cookie":
            self._check_page(request)

    def _check_page(self, request: Request) -> None:
        """A browser sends a cookie by itself: only our own page may make it act."""
        if request.upgrades:
            if not is_same(request.header("origin"), request.header("host")):
                raise Refusal(403, "bad_origin", "A WebSocket with a cookie needs our own page.")
            return
        if request.mutates:
            origin = request.header("origin")
            if not request.header(HEADER) or not is_same(origin, request.header("host")):
                raise Refusal(
                    403,
                    "bad_origin",
                    "A request with a cookie needs our own page.",
                    f"Send the header {HEADER} from our own origin, or use a bearer token.",
                )

    # --- pairing ---

    async def first_code(self) -> str | None:
        """The code of a host that nobody has paired with; None when somebody has."""
        if await tokens.list_tokens(self.shelf):
            self._first = ""
            return None
        if not self._first or not await tokens.is_code(self.shelf, self._first):
            self._first = await tokens.new_code(self.shelf)
        return self._first

    async def pair(self, request: Request, code: str, name: str, kind: str) -> tuple[Token, str]:
        """Exchange a code for a token. Raises Refusal."""
        address = request.peer.rpartition(":")[0]
        async with self._pairing:
            # Nobody guesses the secret of a link, and nobody locks its owner out.
            guessed = not tokens.is_link(code)
            if guessed:
                self.throttle.check(address)
            if not await tokens.use_code(self.shelf, code):
                if guessed:
                    self.throttle.wrong(address)
                raise Refusal(
                    403,
                    "bad_code",
                    "This pairing code is wrong, over, or was used.",
                    "Make a new one with: dragoman pair",
                )
            self._first = ""
            user = await request.user() if kind == "browser" else -1
            return await tokens.new_token(self.shelf, name, kind, user)


async def _is_of(user: int, request: Request) -> bool:
    """Whether a cookie comes from the user of this machine whose browser it was given to.

    Somebody else may have listened at our port before us, and have been sent it.
    """
    found = -1 if user < 0 else await request.user()
    return found in (-1, 0, user) or found == os.geteuid()


def _given(request: Request) -> tuple[str, str]:
    scheme, _, value = request.header("authorization").partition(" ")
    if scheme.lower() == "bearer" and value.strip():
        return value.strip(), "header"
    if request.upgrades:
        for offered in request.header("sec-websocket-protocol").split(","):
            if offered.strip().startswith("bearer."):
                return offered.strip().removeprefix("bearer."), "protocol"
        if request.query.get("token"):
            return request.query["token"], "query"
    elif request.method == "GET" and request.query.get("token"):
        return request.query["token"], "query"
    return "", ""


def _unknown(message: str) -> Refusal:
    return Refusal(
        401,
        "unauthorized",
        message,
        "Make one with: dragoman token new; or pair with: dragoman pair",
        {"www-authenticate": 'Bearer realm="dragoman"'},
    )


def cookie_header(name: str, value: str, *, secure: bool, path: str, age: int = 31_536_000) -> str:
    """A cookie that scripts cannot read and other sites cannot send."""
    words = [f"{name}={value}", f"Path={path or '/'}", f"Max-Age={age}", "HttpOnly",
             "SameSite=Strict"]  # fmt: skip
    if secure:
        words.append("Secure")
    return "; ".join(words)
