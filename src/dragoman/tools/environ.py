"""The environment that commands and programs of ours see: a short list, and never a secret."""

import os
from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase

ALLOWED = (
    *("PATH", "HOME", "LANG", "LC_*", "TERM", "TZ", "USER", "LOGNAME", "SHELL", "TMPDIR"),
    *("SYSTEMROOT", "COMSPEC", "PATHEXT"),
)
SECRET = (
    *("*_KEY", "*_TOKEN", "*_SECRET", "*_PASSWORD", "*_PASSWD", "*_CREDENTIALS"),
    *("*APIKEY*", "*API_KEY*", "*SECRET*", "*PASSWORD*", "*TOKEN*", "*PRIVATE_KEY*", "*_DSN"),
    *("*ACCESS_KEY*", "DRAGOMAN_*", "ZEROCLAW_*", "ZOTCORE_*", "HUMANLAYER_*", "OPENCLAWOS_*"),
)
# What programs that stay (hosted agents, MCP servers, apps) find beside it.
STAYING = (
    *ALLOWED,
    *("LANGUAGE", "COLORTERM", "NO_COLOR", "XDG_*", "SSL_CERT_FILE", "SSL_CERT_DIR"),
    *("REQUESTS_CA_BUNDLE", "NODE_EXTRA_CA_CERTS", "CURL_CA_BUNDLE", "GIT_SSL_CAINFO"),
    *("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "FTP_PROXY"),
    *("http_proxy", "https_proxy", "all_proxy", "no_proxy", "ftp_proxy"),
    *("APPDATA", "LOCALAPPDATA", "USERPROFILE", "TEMP", "TMP"),
)
_OURS = frozenset("PATH HOME SHELL TMPDIR USER LOGNAME PWD PATHEXT COMSPEC SYSTEMROOT".split())
# Nothing waits for a key press or a password where nobody can give one.
_QUIET = {"PAGER": "cat", "GIT_PAGER": "cat", "GIT_TERMINAL_PROMPT": "0"}


def secret(name: str) -> bool:
    """Whether a variable of this name is kept from commands whatever the configuration says."""
    upper = name.upper()
    return any(fnmatchcase(upper, pattern) for pattern in SECRET)


def staying(
    names: Iterable[str] = (),
    own: Mapping[str, str] | None = None,
    source: Mapping[str, str] | None = None,
) -> dict[str, str]:
    """Variables for a program that stays: usual ones, those of `names`, and its `own`.

    A name passes whatever it is; a pattern (`AWS_*`) passes nothing that looks like a secret.
    """
    given = os.environ if source is None else source
    wanted = tuple(names)
    found = {
        name: value
        for name, value in given.items()
        if name in wanted
        or (not secret(name) and any(fnmatchcase(name, one) for one in (*STAYING, *wanted)))
    }
    found.setdefault("PATH", os.defpath)
    return found | dict(own or {})


def with_clients(variables: Mapping[str, str]) -> Mapping[str, str] | None:
    """Our environment with a client's over it; None: ours alone.

    Where programs and homes are is not the client's to say: rules judge commands by our own.
    """
    if not variables:
        return None
    return {**os.environ, **{k: v for k, v in variables.items() if k not in _OURS}}


def environment(
    allow: Iterable[str] = (),
    extra: Mapping[str, str] | None = None,
    source: Mapping[str, str] | None = None,
) -> dict[str, str]:
    """Variables for a command: allowed names (globs) of `source`, and `extra` ones."""
    given = os.environ if source is None else source
    patterns = (*ALLOWED, *allow)
    found = {
        name: value
        for name, value in given.items()
        if any(fnmatchcase(name, pattern) for pattern in patterns)
    }
    found = {**_QUIET, **found, **(extra or {})}
    found.setdefault("PATH", os.defpath)
    found.setdefault("TERM", "dumb")
    return {name: value for name, value in found.items() if not secret(name)}
