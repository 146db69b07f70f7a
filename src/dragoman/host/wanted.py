"""What the configuration asks for that cannot be had: rows for `doctor`."""

import errno
import os
import socket
from collections.abc import Iterator, Mapping

from dragoman.engine.ports.rows import DoctorRow as Row
from dragoman.settings import profiles
from dragoman.settings.host import Gateway
from dragoman.settings.load import Loaded
from dragoman.settings.model import Settings
from dragoman.settings.places import Places, log_file

_TRIED_BYTES = 65_536
_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EIO)
_SHELLS = {"*", "bash", "shell"}


def look(loaded: Loaded, where: Places, env: Mapping[str, str], running: bool) -> Iterator[Row]:
    """Everything but programs; `running`: a daemon has the gateway's port already."""
    given = loaded.settings
    yield from _log(given, where)
    if given.gateway.enabled:
        yield from _gateway(given.gateway, not running and ("gateway", "port") in loaded.sources)
    yield from _addresses(given)
    if given.web_search.provider == "brave":
        if not (given.web_search.api_key or env.get("BRAVE_API_KEY")):
            fix = "Set web_search.api_key, or BRAVE_API_KEY where the daemon starts."
            yield Row("error", "web_search", "there is no key for brave", fix)
    yield from _names(given)
    yield from _idle(given)


def lacks_place(path: str) -> str:
    """Why a file cannot be made at a path or written there; empty when it can."""
    if os.path.lexists(path):
        if os.path.isdir(path):
            return "is a directory"
        return "" if os.access(path, os.W_OK) else "cannot be written"
    folder = os.path.dirname(os.path.abspath(path))
    while not os.path.lexists(folder):
        folder = os.path.dirname(folder)
    if not os.path.isdir(folder):
        return f"cannot be made: {folder} is no directory"
    return "" if os.access(folder, os.W_OK | os.X_OK) else f"cannot be made: {folder} is closed"


def lacks_room(folder: str) -> str:
    """Why nothing more can be kept in a folder, found by trying; empty when it can.

    The file has no name and is gone when it is closed. A quota shows only so.
    """
    if not hasattr(os, "O_TMPFILE"):
        return ""
    try:
        made = os.open(folder, os.O_TMPFILE | os.O_RDWR | os.O_CLOEXEC, 0o600)
        try:
            os.write(made, b"x" * _TRIED_BYTES)
            os.fsync(made)
        finally:
            os.close(made)
    except OSError as problem:
        # Not every file system has files without a name.
        return (problem.strerror or str(problem)) if problem.errno in _NO_ROOM else ""
    return ""


def _log(given: Settings, where: Places) -> Iterator[Row]:
    path = log_file(given.log.file, where)
    why = "is a link" if os.path.islink(path) else lacks_place(path)
    if why and (given.log.file or os.path.isdir(where.data_dir)):
        yield Row(
            "warn", "log", f"{path} {why}: the daemon's lines go to its standard error",
            "Move it away, or set log.file to a place that you can write.",
        )  # fmt: skip


def _gateway(given: Gateway, port: bool) -> Iterator[Row]:
    from dragoman.gateway.origin import is_loopback

    if why := _unheard(given.host, given.port if port else 0):
        if port and not _unheard(given.host, 0):
            fix = "Set gateway.port to another one, or end what listens there."
        else:
            fix = "Set gateway.host to an address of this machine: 127.0.0.1, or 0.0.0.0 for all."
        yield Row("error", "gateway", f"{given.host} port {given.port}: {why}", fix)
    elif not (given.tls_cert or given.tls_self_signed) and not is_loopback(given.host):
        yield Row(
            "warn", "gateway",
            f"{given.host} port {given.port} can be reached from other machines without TLS: "
            "tokens and all that is said can be read on the way",
            "Set gateway.tls_self_signed true (or tls_cert and tls_key), or gateway.host "
            "127.0.0.1.",
        )  # fmt: skip
    if not given.require_pairing:
        yield Row(
            "warn", "gateway", "every program of this user is let in without a token",
            "Set gateway.require_pairing true.",
        )  # fmt: skip
    if given.tls_cert and not given.tls_self_signed:
        import ssl

        try:
            ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_cert_chain(given.tls_cert, given.tls_key)
        except (OSError, ValueError) as problem:
            said = getattr(problem, "strerror", None) or problem
            yield Row(
                "error", "gateway",
                f"{given.tls_cert} and {given.tls_key} cannot be used: {said}",
                "Correct gateway.tls_cert and gateway.tls_key, or set gateway.tls_self_signed true "
                "and unset both.",
            )  # fmt: skip


def _unheard(host: str, port: int) -> str:
    """Why nobody can listen there."""
    try:
        found = socket.getaddrinfo(host or None, port, type=socket.SOCK_STREAM)
        for family, kind, protocol, _, address in found[:1]:
            with socket.socket(family, kind, protocol) as sock:
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                sock.bind(address)
    except OSError as problem:
        return problem.strerror or str(problem)
    return ""


def _addresses(given: Settings) -> Iterator[Row]:
    """Addresses that lead nowhere for want of their beginning."""
    wanted = {f"gateway.callbacks.{name}.url": one.url for name, one in
              given.gateway.callbacks.items()}  # fmt: skip
    if given.telemetry.enabled:
        wanted["telemetry.endpoint"] = given.telemetry.endpoint
    for key, address in wanted.items():
        if address and not address.startswith(("http://", "https://")):
            yield Row(
                "error", key.partition(".")[0], f"{key} is no http address: {address}",
                f"Write it as http://host:port, or https://host: dragoman config set {key} …",
            )  # fmt: skip
    if given.web_search.provider == "searxng" and not given.web_search.base_url:
        fix = "Set web_search.base_url to its address: http://host:port"
        yield Row("error", "web_search", "it is not said where SearXNG is", fix)


def _names(given: Settings) -> Iterator[Row]:
    """Names of agents that there are not, as far as the settings do not warn of them."""
    known = profiles.names(given)
    asked = [(f"gateway.webhooks.{name}.agent", one.agent)
             for name, one in given.gateway.webhooks.items() if one.enabled]  # fmt: skip
    for key, name in asked:
        if name and name not in known:
            yield Row(
                "warn", "agents", f"{key} names {name}, and there is no such agent",
                f"Name one of: {', '.join(known)}; or add [agents.{name}].",
            )  # fmt: skip


def _idle(given: Settings) -> Iterator[Row]:
    """Rules that another one leaves without effect."""
    for alias in profiles.names(given):
        rules = profiles.rules(given, alias)
        if rules.allowed_commands and not _SHELLS.isdisjoint(rules.always_ask):
            yield Row(
                "warn", "agents",
                f"{alias}: allowed_commands has no effect, because always_ask names bash",
                "Take bash out of always_ask, or unset allowed_commands.",
            )  # fmt: skip
