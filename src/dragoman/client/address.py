"""Where the daemon listens for us."""

import os
import sys

from dragoman import TYPE_CHECKING
from dragoman.engine.faults import BadInput
from dragoman.settings import places

from .problems import NotRunning

if TYPE_CHECKING:
    from collections.abc import Mapping


def whole(path: str) -> str:
    """A path of the caller's, so that a host elsewhere understands it; empty stays empty."""
    return os.path.abspath(os.path.expanduser(path)) if path else ""


def socket_path(
    config_dir: str | None = None,
    *,
    dialect: str = "zeroclaw",
    env: "Mapping[str, str]" = os.environ,
) -> str:
    """The socket of one dialect: as configured, else the override, else in the data directory.

    Raises NotRunning for a path that no socket can have: nobody listens there.
    """
    where = places.places(env, config_dir)
    given = env.get(f"DRAGOMAN_listen__{dialect}", "") or _configured(where.config_file, dialect)
    if given:
        return given if sys.platform == "win32" else places.listened(given, where, env)
    try:
        return places.endpoint(dialect, env, where)
    except BadInput as long:
        raise NotRunning(long.message, long.hint) from None


def _configured(file: str, dialect: str) -> str:
    try:
        with open(file, "rb", opener=places.readable) as opened:
            text = opened.read()
    except OSError:
        return ""  # whoever needs the file says what is wrong with it
    if b"listen" not in text:
        return ""
    from dragoman.settings import toml

    try:
        section = toml.parse(text.decode().removeprefix("\ufeff")).get("listen", {})
    except ValueError:
        return ""
    if not isinstance(section, dict):
        return ""
    more = section.get("more")
    found = section.get(dialect) or (more.get(dialect) if isinstance(more, dict) else "")
    return found if isinstance(found, str) else ""
