"""OAuth for MCP servers on the network, with tokens kept in private files.

A server of the configuration may have client credentials. Where a human has to sign in, that is
done once, by a command with a browser at hand (authorization code, with PKCE); the host then uses
and refreshes what was kept, and says so when a human is needed again. The library knows the
protocol; ours are the loopback address that the browser comes back to, and the kept tokens.
"""

import asyncio
import hashlib
import os
from collections.abc import Awaitable, Callable
from typing import Any
from urllib.parse import parse_qs, urlsplit

from dragoman.engine.faults import BadInput, ProviderFailed

_DONE = "<!doctype html><title>Dragoman</title><p>You are signed in. This page can be closed.</p>"
_LONGEST = 16_384  # bytes of a request's head


class TokenFile:
    """Keeps the tokens of one server (the library's `TokenStorage`)."""

    def __init__(self, folder: str, name: str, url: str) -> None:
        mark = hashlib.sha256(f"{name}\n{url}".encode()).hexdigest()[:16]
        self._folder = folder
        self._path = os.path.join(folder, f"{mark}.json")

    async def get_tokens(self) -> Any:
        from mcp.shared.auth import OAuthToken

        return await asyncio.to_thread(_kept, OAuthToken, self._path)

    async def set_tokens(self, tokens: Any) -> None:
        await asyncio.to_thread(self._save, tokens.model_dump_json(), self._path)

    def _save(self, text: str, path: str) -> None:
        os.makedirs(self._folder, mode=0o700, exist_ok=True)
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
        with open(os.open(path, flags, 0o600), "w", encoding="utf-8") as file:
            file.write(text)

    async def get_client_info(self) -> Any:
        from mcp.shared.auth import OAuthClientInformationFull

        return await asyncio.to_thread(_kept, OAuthClientInformationFull, f"{self._path}.client")

    async def set_client_info(self, client_info: Any) -> None:
        text = client_info.model_dump_json()
        await asyncio.to_thread(self._save, text, f"{self._path}.client")

    @property
    def signed_in(self) -> bool:
        """Whether a human signed in to this server from here."""
        return os.path.exists(f"{self._path}.client")


def _kept(kind: Any, path: str) -> Any:
    """What a file keeps of one of the library's kinds; None when nobody can use it.

    Then a new one is asked for; a client may also be the one of the configuration.
    """
    from pydantic import ValidationError

    try:
        with open(path, encoding="utf-8") as file:
            return kind.model_validate_json(file.read())
    except (FileNotFoundError, ValidationError):
        return None


def auth_of(server: Any, tokens: str) -> Any:
    """How requests to this server are signed; None when nothing is configured or signed in."""
    if not tokens:
        return None
    if not server.oauth_client_id:
        kept = TokenFile(tokens, server.name, server.url)
        return _kept_auth(server, kept) if kept.signed_in else None
    if not server.oauth_issuer:
        raise BadInput(
            f"MCP server {server.name}: oauth_client_id needs oauth_issuer.",
            "Name the authorization server that the client belongs to.",
        )
    from mcp.client.auth.extensions.client_credentials import ClientCredentialsOAuthProvider

    return ClientCredentialsOAuthProvider(
        server.url,
        TokenFile(tokens, server.name, server.url),
        server.oauth_client_id,
        server.oauth_client_secret,
        issuer=server.oauth_issuer,
    )


def _kept_auth(server: Any, kept: TokenFile) -> Any:
    """Uses and refreshes the tokens of a human who signed in; nobody is here to do it again."""

    async def nobody(*_: Any) -> Any:
        raise BadInput(
            f"MCP server {server.name} wants a human to sign in again.",
            f"Run: dragoman mcp login {server.name}",
        )

    return provider(server.url, kept, "http://127.0.0.1/callback", nobody, nobody)


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
