"""OAuth for MCP servers on the network, with tokens kept in private files.

A server of the configuration may have client credentials. Where a human has to sign in, that is
done once, by a command with a browser at hand (`mcp_login.py`); the host then uses and refreshes
what was kept, and says so when a human is needed again.
"""

import asyncio
import hashlib
import os
from typing import Any

from dragoman.engine.faults import BadInput


class TokenFile:
    """Keeps the tokens of one server (the library's `TokenStorage`)."""

    def __init__(self, folder: str, name: str, url: str) -> None:
        mark = hashlib.sha256(f"{name}\n{url}".encode()).hexdigest()[:16]
        self._folder = folder
        self._path = os.path.join(folder, f"{mark}.json")

    async def get_tokens(self) -> Any:
        return await asyncio.to_thread(self._load)

    def _load(self) -> Any:
        from mcp.shared.auth import OAuthToken
        from pydantic import ValidationError

        try:
            with open(self._path, encoding="utf-8") as file:
                return OAuthToken.model_validate_json(file.read())
        except (FileNotFoundError, ValidationError):
            return None  # none yet, or one that nobody can use: a new one is asked for

    async def set_tokens(self, tokens: Any) -> None:
        await asyncio.to_thread(self._save, tokens.model_dump_json(), self._path)

    def _save(self, text: str, path: str) -> None:
        os.makedirs(self._folder, mode=0o700, exist_ok=True)
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
        with open(os.open(path, flags, 0o600), "w", encoding="utf-8") as file:
            file.write(text)

    async def get_client_info(self) -> Any:
        return await asyncio.to_thread(self._load_client)

    def _load_client(self) -> Any:
        from mcp.shared.auth import OAuthClientInformationFull
        from pydantic import ValidationError

        try:
            with open(f"{self._path}.client", encoding="utf-8") as file:
                return OAuthClientInformationFull.model_validate_json(file.read())
        except (FileNotFoundError, ValidationError):
            return None  # nobody signed in here, or the client is the one of the configuration

    async def set_client_info(self, client_info: Any) -> None:
        text = client_info.model_dump_json()
        await asyncio.to_thread(self._save, text, f"{self._path}.client")

    @property
    def signed_in(self) -> bool:
        """Whether a human signed in to this server from here."""
        return os.path.exists(f"{self._path}.client")


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
    from .mcp_login import provider

    async def nobody(*_: Any) -> Any:
        raise BadInput(
            f"MCP server {server.name} wants a human to sign in again.",
            f"Run: dragoman mcp login {server.name}",
        )

    return provider(server.url, kept, "http://127.0.0.1/callback", nobody, nobody)
