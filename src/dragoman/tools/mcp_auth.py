"""OAuth for MCP servers on the network: client credentials, with tokens kept in private files.

Signing in through a browser is not offered: a host has no human at its side when it connects.
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
        await asyncio.to_thread(self._save, tokens.model_dump_json())

    def _save(self, text: str) -> None:
        os.makedirs(self._folder, mode=0o700, exist_ok=True)
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
        with open(os.open(self._path, flags, 0o600), "w", encoding="utf-8") as file:
            file.write(text)

    async def get_client_info(self) -> Any:
        return None  # the client is the one of the configuration

    async def set_client_info(self, client_info: Any) -> None:
        return None


def auth_of(server: Any, tokens: str) -> Any:
    """How requests to this server are signed; None when nothing is configured."""
    if not server.oauth_client_id or not tokens:
        return None
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
