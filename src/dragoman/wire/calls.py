"""Our own requests to the client: ids, waiting, time-outs."""

import asyncio
from collections.abc import Callable
from typing import Any

from msgspec import UNSET, Raw

from .jsonrpc import Id, Response, notification, request


class CallFailed(Exception):
    """The client answered a request of ours with an error."""

    def __init__(self, code: int, message: str, data: Raw | None = None) -> None:
        super().__init__(f"{message} ({code})")
        self.code = code
        self.message = message
        self.data = data


class LinkLost(ConnectionError):
    """The connection went away before the client answered."""


class TooManyCalls(RuntimeError):
    """The client leaves too many of our requests unanswered."""


class Outbound:
    """Correlates requests of ours with the client's responses, for one connection.

    Ids are `zc-out-0`, `zc-out-1`, … in our direction only, so that a client may use the same ones.
    """

    __slots__ = ("_lost", "_next", "_prefix", "_send", "_waiting", "most")

    def __init__(
        self, send: Callable[[bytes], None], *, prefix: str = "zc-out-", most: int = 1024
    ) -> None:
        self._send = send
        self._prefix = prefix
        self._next = 0
        self._waiting: dict[str, asyncio.Future[Raw]] = {}
        self._lost = False
        self.most = most

    @property
    def pending(self) -> int:
        """How many requests of ours wait for an answer."""
        return len(self._waiting)

    def begin(self, method: str, params: Any = UNSET) -> tuple[str, asyncio.Future[Raw]]:
        """Send a request; return its id and the future of its result.

        The future fails with CallFailed or LinkLost. Cancelling it forgets the request: its
        late answer will be ignored.
        """
        if self._lost:
            raise LinkLost("the connection is closed")
        if len(self._waiting) >= self.most:
            raise TooManyCalls(f"{self.most} requests to this client are unanswered")
        key = f"{self._prefix}{self._next}"
        self._next += 1
        future: asyncio.Future[Raw] = asyncio.get_running_loop().create_future()
        self._waiting[key] = future
        future.add_done_callback(lambda _: self._waiting.pop(key, None))
        self._send(request(key, method, params))
        return key, future

    async def call(self, method: str, params: Any = UNSET, *, within: float | None = None) -> Raw:
        """Send a request and wait for its result, at most `within` seconds.

        Raises CallFailed, LinkLost, TooManyCalls, TimeoutError.
        """
        _, future = self.begin(method, params)
        async with asyncio.timeout(within):
            return await future

    def notify(self, method: str, params: object = UNSET) -> None:
        """Send a notification."""
        self._send(notification(method, params))

    def settle(self, response: Response) -> bool:
        """Take a response; False when nobody waits for its id (it is then to be ignored)."""
        future = self._find(response.id)
        if future is None or future.done():
            return False
        if response.error is not None:
            data = response.error.data
            future.set_exception(
                CallFailed(
                    response.error.code, response.error.message, None if data is UNSET else data
                )
            )
        else:
            future.set_result(response.result)
        return True

    def lose(self) -> None:
        """The connection is gone: everybody who waits gets LinkLost."""
        self._lost = True
        for future in list(self._waiting.values()):
            if not future.done():
                future.set_exception(LinkLost("the client went away before it answered"))

    def _find(self, id: Id) -> asyncio.Future[Raw] | None:
        if id is None or isinstance(id, bool | list | dict):
            return None
        return self._waiting.get(id if isinstance(id, str) else str(id))
