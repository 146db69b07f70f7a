"""A provider behind HTTP: one shared client, one streaming loop, any format."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from typing import TYPE_CHECKING, Protocol

import msgspec

from dragoman.engine.faults import ProviderFailed
from dragoman.engine.ports import ModelOpened, ModelPart, ModelRequest

from . import failures
from .reading import PartReader, Reading, Silent
from .retry import RetryRules, with_retry
from .sse import EventTooLong

if TYPE_CHECKING:
    from dragoman.http.client import Client
    from dragoman.http.connection import Incoming
    from dragoman.http.port import HttpFault

_ERROR_BYTES = 64 * 1024
_ERROR_SECONDS = 10.0  # for the text of a refusal: what came by then is shown


class Format(Protocol):
    """One provider API: where to post, what to post, how to read the answer."""

    def path(self, request: ModelRequest) -> str: ...

    def headers(self, key: str) -> dict[str, str]: ...

    def body(self, request: ModelRequest) -> bytes: ...

    def reader(self, provider: str, secret: str) -> PartReader: ...


class Timeouts(msgspec.Struct, frozen=True):
    """Seconds to connect, to the first byte of an answer, and between two of its bytes.

    `first` is `read` when it is not given. `silence` bounds a stream that moves but says nothing.
    """

    connect: float = 10.0
    read: float = 120.0
    first: float | None = None
    silence: float = 600.0


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
        client: "Client | None" = None,
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
        self._client = client

    @property
    def serves(self) -> frozenset[str]:
        """Tools that the provider's own service can do."""
        return getattr(self.format, "serves", frozenset())

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
            await client.close()

    async def _attempt(self, url: str, body: bytes) -> AsyncGenerator[ModelPart, None]:
        from dragoman.http.port import HttpFault

        client = self._client or self._make_client()
        reader = self.format.reader(self.name, self._key)
        reading = Reading(reader, self.timeouts.silence)
        try:
            async with client.open("POST", url, headers=self._headers, body=body) as answer:
                await self._check(answer)
                yield ModelOpened()
                answer.into(reading.feed)
                while await answer.more():
                    for part in reading.take():
                        yield part
                    if reader.finished:
                        answer.leave()
                        return
                    if reading.broken:
                        break
                reading.end()
                while parts := reading.take():
                    for part in parts:
                        yield part
        except HttpFault as error:
            raise self._failure(error) from error
        except Silent as error:
            raise ProviderFailed(
                f"{self.name} did not answer in time ({self._place}): {error}", "network"
            ) from error
        except (msgspec.DecodeError, EventTooLong, RecursionError) as error:
            raise ProviderFailed(
                f"{self.name} sent something that cannot be read: {error}", "network"
            ) from error
        if not reader.finished:
            raise ProviderFailed(f"{self.name} hung up in the middle of the answer", "network")

    async def _check(self, answer: "Incoming") -> None:
        """Raise what the status or the kind of the body tells."""
        status, headers = answer.status, answer.headers
        kind = headers.get("content-type", "")
        if status == 200 and not kind.startswith(("application/json", "text/html")):
            return
        body = await _beginning(answer)
        if status == 200:
            raise ProviderFailed(
                f"{self.name} answered with {kind} where a stream was asked for: "
                f"{body[:200].decode('utf-8', 'replace')}",
                "bad_request",
                status=200,
                hint="Check base_url.",
            )
        if 300 <= status < 400:
            raise ProviderFailed(
                f"{self.name} sends us on to {headers.get('location', 'nowhere')[:200]} "
                f"({status}), where a key must not follow",
                "bad_request",
                status=status,
                hint="Check base_url.",
            )
        raise failures.from_response(self.name, status, headers, body, self._key)

    @property
    def _place(self) -> str:
        """The address as everybody who watches the session may see it."""
        from dragoman.observe.redact import scrub

        return scrub(self.base_url)

    def _failure(self, error: "HttpFault") -> ProviderFailed:
        from dragoman.http import port

        where = f"({self._place}): {error}"
        if isinstance(error, port.BadRequest):
            return ProviderFailed(f"{self.name} cannot be asked {where}", "bad_request")
        if isinstance(error, port.Untrusted):
            return ProviderFailed(
                f"{self.name} cannot be trusted {where}", "bad_request",
                hint="Set SSL_CERT_FILE to a file of certificates that vouch for it.",
            )  # fmt: skip
        said = (
            "did not answer in time" if isinstance(error, port.TimedOut)
            else "cannot be reached" if isinstance(error, port.Unreachable)
            else "sent something that cannot be read" if isinstance(error, port.NotHttp)
            else "hung up"
        )  # fmt: skip
        return ProviderFailed(f"{self.name} {said} {where}", "network")

    def _make_client(self) -> "Client":
        from dragoman.http.client import Client
        from dragoman.http.port import Timeouts as Limits

        given = self.timeouts
        first = given.read if given.first is None else given.first
        self._client = Client(timeouts=Limits(given.connect, first, given.read))
        return self._client


async def _beginning(answer: "Incoming") -> bytes:
    """What can be had of a refusal's text."""
    from dragoman.http.port import HttpFault

    body = bytearray()
    answer.into(lambda data: body.extend(data[: _ERROR_BYTES - len(body)]))
    try:
        async with asyncio.timeout(_ERROR_SECONDS):
            while len(body) < _ERROR_BYTES and await answer.more():
                continue
    except (HttpFault, TimeoutError):
        return bytes(body)  # the status says enough
    if len(body) == _ERROR_BYTES:
        answer.leave()
    return bytes(body)
