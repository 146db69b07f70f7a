"""The environment that commands see: a short list of names, and never a secret."""

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
# Nothing waits for a key press or a password where nobody can give one.
_QUIET = {"PAGER": "cat", "GIT_PAGER": "cat", "GIT_TERMINAL_PROMPT": "0"}


def secret(name: str) -> bool:
    """Whether a variable of this name is kept from commands whatever the configuration says."""
    upper = name.upper()
    return any(fnmatchcase(upper, pattern) for pattern in SECRET)


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
