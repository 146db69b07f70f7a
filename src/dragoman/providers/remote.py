"""A provider behind HTTP: one shared client, one streaming loop, any format."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from typing import TYPE_CHECKING, Protocol

import msgspec

from dragoman.engine.faults import ProviderFailed
from dragoman.engine.ports import ModelOpened, ModelPart, ModelRequest

from . import failures
from .retry import RetryRules, with_retry
from .sse import EventParser, EventTooLong

if TYPE_CHECKING:
    import httpx

_ERROR_BYTES = 64 * 1024
_DRAIN = 0.1  # seconds given to the end of a finished answer, so that its connection can be kept


class Reader(Protocol):
    """Turns the events of one answer into parts. No I/O."""

    finished: bool

    def take(self, data: bytes) -> Sequence[ModelPart]:
        """The parts of one event. Raises ProviderFailed, msgspec.DecodeError."""
        ...

    def end(self) -> Sequence[ModelPart]:
        """The parts that are due when the stream ends; sets `finished` when it was complete."""
        ...


class Format(Protocol):
    """One provider API: where to post, what to post, how to read the answer."""

    def path(self, request: ModelRequest) -> str: ...

    def headers(self, key: str) -> dict[str, str]: ...

    def body(self, request: ModelRequest) -> bytes: ...

    def reader(self, provider: str, secret: str) -> Reader: ...


class Timeouts(msgspec.Struct, frozen=True):
    """Seconds to connect, and between two bytes of an answer."""

    connect: float = 10.0
    read: float = 120.0


class Remote:
    """Streams answers of one provider; cancelling a stream closes its connection."""

    def __init__(
        self,
        name: str,
        format: Format,
        *,
        base_url: str,
        key: str = "",
        headers: dict[str, str] | None = None,
        timeouts: Timeouts | None = None,
        rules: RetryRules | None = None,
    ) -> None:
        self.name = name
        self.format = format
        self.base_url = base_url.rstrip("/")
        self.rules = rules or RetryRules()
        self.timeouts = timeouts or Timeouts()
        self._key = key
        self._headers = {
            "accept": "text/event-stream",
            "accept-encoding": "identity",
            "content-type": "application/json",
            **format.headers(key),
            **(headers or {}),
        }
        self._client: httpx.AsyncClient | None = None
        self._opening: asyncio.Lock | None = None

    def stream(self, request: ModelRequest) -> AsyncIterator[ModelPart]:
        url = self.base_url + self.format.path(request)
        try:
            body = self.format.body(request)
        except UnicodeEncodeError as error:
            raise ProviderFailed(
                f"the conversation holds text that is not valid Unicode: {error.reason}",
                "bad_request",
                hint="Clear or compact the session.",
            ) from error
        return with_retry(lambda: self._attempt(url, body), self.rules)

    async def close(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            await client.aclose()

    async def _attempt(self, url: str, body: bytes) -> AsyncGenerator[ModelPart, None]:
        client = await self._open()
        import httpx

        reader = self.format.reader(self.name, self._key)
        parser = EventParser()
        try:
            async with client.stream("POST", url, content=body, headers=self._headers) as response:
                await self._check(response)
                yield ModelOpened()
                chunks = response.aiter_raw()
                async for chunk in chunks:
                    for data in parser.feed(chunk):
                        for part in reader.take(data):
                            yield part
                    if reader.finished:
                        await self._drain(chunks)
                        return
                for data in parser.flush():
                    for part in reader.take(data):
                        yield part
                for part in reader.end():
                    yield part
        except httpx.TimeoutException as error:
            raise self._unreachable(error, "did not answer in time") from error
        except httpx.TransportError as error:
            said = "cannot be reached" if isinstance(error, httpx.ConnectError) else "hung up"
            raise self._unreachable(error, said) from error
        except (httpx.InvalidURL, httpx.StreamError) as error:
            raise ProviderFailed(
                f"{self.name} cannot be asked at {self.base_url}: {error}", "bad_request"
            ) from error
        except (msgspec.DecodeError, EventTooLong) as error:
            raise ProviderFailed(
                f"{self.name} sent something that cannot be read: {error}", "network"
            ) from error
        if not reader.finished:
            raise ProviderFailed(f"{self.name} hung up in the middle of the answer", "network")

    async def _check(self, response: "httpx.Response") -> None:
        """Raise what the status or the kind of the body tells."""
        kind = response.headers.get("content-type", "")
        if response.status_code == 200 and not kind.startswith(("application/json", "text/html")):
            return
        body = b""
        async for chunk in response.aiter_raw():
            body += chunk
            if len(body) >= _ERROR_BYTES:
                break
        if response.status_code == 200:
            raise ProviderFailed(
                f"{self.name} answered with {kind} where a stream was asked for: "
                f"{body[:200].decode('utf-8', 'replace')}",
                "bad_request",
                status=200,
                hint="Check base_url.",
            )
        raise failures.from_response(
            self.name, response.status_code, response.headers, body[:_ERROR_BYTES], self._key
        )

    async def _drain(self, chunks: AsyncIterator[bytes]) -> None:
        try:
            async with asyncio.timeout(_DRAIN):
                async for _ in chunks:
                    continue
        except TimeoutError:
            return  # the connection is closed instead of kept

    def _unreachable(self, error: Exception, said: str) -> ProviderFailed:
        reason = str(error) or type(error).__name__
        return ProviderFailed(f"{self.name} {said} ({self.base_url}): {reason}", "network")

    async def _open(self) -> "httpx.AsyncClient":
        if self._client is None:
            self._opening = self._opening or asyncio.Lock()
            async with self._opening:
                if self._client is None:
                    # Import and certificates take a while: not in the loop's thread.
                    self._client = await asyncio.to_thread(self._make_client)
        return self._client

    def _make_client(self) -> "httpx.AsyncClient":
        import httpx

        return httpx.AsyncClient(
            # Plain http has no use for the certificate store, which takes long to load.
            verify=not self.base_url.startswith("http://"),
            timeout=httpx.Timeout(
                connect=self.timeouts.connect, read=self.timeouts.read, write=60.0, pool=30.0
            ),
            limits=httpx.Limits(
                max_connections=512, max_keepalive_connections=32, keepalive_expiry=60.0
            ),
        )
