"""Signing in to an MCP server through a browser: OAuth's authorization code, with PKCE.

The library knows the protocol; ours are the loopback address that the browser comes back to, and
the place where the tokens are kept.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any
from urllib.parse import parse_qs, urlsplit

from dragoman.engine.faults import BadInput, ProviderFailed

from .mcp_auth import TokenFile

_DONE = "<!doctype html><title>Dragoman</title><p>You are signed in. This page can be closed.</p>"
_LONGEST = 16_384  # bytes of a request's head


def provider(
    url: str,
    kept: TokenFile,
    back: str,
    show: Callable[[str], Awaitable[None]],
    answer: Callable[[], Awaitable[Any]],
) -> Any:
    """The library's way to sign requests, which asks a human where it must."""
    from mcp.client.auth import OAuthClientProvider
    from mcp.shared.auth import OAuthClientMetadata

    about = OAuthClientMetadata(
        client_name="Dragoman",
        redirect_uris=[back],
        grant_types=["authorization_code", "refresh_token"],
        response_types=["code"],
        token_endpoint_auth_method="none",
    )
    return OAuthClientProvider(url, about, kept, show, answer)


class LoginCallback:
    """A loopback address that a browser is sent back to, once."""

    def __init__(self) -> None:
        self._came: asyncio.Future[Any] = asyncio.get_running_loop().create_future()
        self._server: asyncio.Server | None = None

    async def open(self) -> str:
        """Listen; returns the address."""
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0, limit=_LONGEST)
        return f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}/callback"

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), 10)
            path = head.split(b" ", 2)[1].decode("ascii", "replace")
            asked = urlsplit(path)
            if asked.path != "/callback":
                writer.write(b"HTTP/1.1 404 Not Found\r\ncontent-length: 0\r\n\r\n")
                return
            given = {name: values[0] for name, values in parse_qs(asked.query).items()}
            body = _DONE.encode()
            writer.write(
                b"HTTP/1.1 200 OK\r\ncontent-type: text/html; charset=utf-8\r\n"
                b"connection: close\r\ncontent-length: %d\r\n\r\n%s" % (len(body), body)
            )
            if not self._came.done():
                self._came.set_result(given)
        except (TimeoutError, asyncio.IncompleteReadError, asyncio.LimitOverrunError, IndexError):
            return  # not a browser that comes back
        finally:
            writer.close()

    async def answer(self) -> Any:
        """What the authorization server said through the browser."""
        from mcp.shared.auth import AuthorizationCodeResult

        given = await self._came
        if "error" in given:
            why = given.get("error_description") or given["error"]
            raise ProviderFailed(f"Signing in was refused: {why}.", "auth")
        return AuthorizationCodeResult(
            code=given.get("code", ""), state=given.get("state"), iss=given.get("iss")
        )

    def close(self) -> None:
        if self._server is not None:
            self._server.close()


async def login(
    name: str, url: str, tokens: str, show: Callable[[str], None], within: float = 300.0
) -> int:
    """Sign in; `show` gets the address for the browser. Returns how many tools the server has.

    Raises ProviderFailed.
    """
    from .mcp import McpConnection, McpTools, read_server

    if not url:
        raise BadInput(f"MCP server {name} is not on the network.", "Only those have a sign-in.")
    callback = LoginCallback()
    back = await callback.open()
    kept = TokenFile(tokens, name, url)

    async def shown(address: str) -> None:
        show(address)

    def noted(title: str, text: str) -> None:
        notes.append(text or title)

    auth = provider(url, kept, back, shown, callback.answer)
    notes: list[str] = []
    server = read_server({"name": name, "url": url})
    try:
        one = McpConnection(server, noted, auth=auth)
        tools = McpTools([one], None)
        try:
            await tools.ready(within)
            if one.problem or notes:
                raise ProviderFailed(f"Signing in to {name} failed: {one.problem or notes[0]}.")
            return len(tools.specs())
        finally:
            await tools.close()
    finally:
        callback.close()
