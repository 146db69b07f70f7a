"""Where things are: configuration, data, and one address per dialect.

Pure functions of an environment. Thin commands import this, so it imports next to nothing.
"""

import os
import stat
import sys

from dragoman import TYPE_CHECKING
from dragoman.dialects.descriptor import OURS, REGISTRY
from dragoman.engine.faults import BadInput

if TYPE_CHECKING:
    from collections.abc import Mapping

_FOLDERS = (
    "DRAGOMAN_CONFIG_DIR", "DRAGOMAN_DATA_DIR", "ZEROCLAW_CONFIG_DIR", "ZEROCLAW_DATA_DIR",
)  # fmt: skip
_ANY = "any"  # no dialect: it takes all of them, by the first line

# sun_path holds 108 bytes on Linux and 104 elsewhere, the final NUL among them.
LONGEST = 107 if sys.platform == "linux" else 103


class Places:
    """The directories of one installation."""

    __slots__ = ("config_dir", "data_dir", "given")

    def __init__(self, config_dir: str, data_dir: str, given: bool) -> None:
        self.config_dir = config_dir
        self.data_dir = data_dir
        self.given = given  # somebody chose the directory; it is not the platform's own

    @property
    def config_file(self) -> str:
        return os.path.join(self.config_dir, "config.toml")

    @property
    def bridge_token(self) -> str:
        """Where `dragoman acp-bridge` keeps its key to the gateway."""
        return os.path.join(self.config_dir, "acp-bridge-token")


def log_file(given: str, where: Places) -> str:
    """Where the daemon's lines go, from the root on, wherever it was started."""
    if given == "~" or given.startswith("~/"):
        return absolute(given, os.environ)
    return os.path.abspath(os.path.join(where.data_dir, given or "daemon.log"))


def listened(given: str, where: Places, env: "Mapping[str, str]") -> str:
    """A socket that the configuration names, from the root on, whoever asks and wherever."""
    if given == "~" or given.startswith("~/"):
        return absolute(given, env)
    return os.path.abspath(os.path.join(where.data_dir, given))


def deciding(env: "Mapping[str, str]") -> dict[str, str]:
    """The variables that say where things are, as they read in every folder.

    For a daemon that runs in another folder than who starts it, or in another environment.
    """
    found = {name: _path(env, name) for name in _FOLDERS}
    found |= {name: _xdg(env, name) for name in ("XDG_CONFIG_HOME", "XDG_DATA_HOME")}
    for name in names():
        found |= {variable: _path(env, variable) for variable in _socket(name)[1]}
    return {name: path for name, path in found.items() if path}


def readable(path: str, flags: int) -> int:
    """Opens a file, and no pipe: nobody may ever write to it."""
    opened = os.open(path, flags | getattr(os, "O_NONBLOCK", 0))
    if stat.S_ISFIFO(os.fstat(opened).st_mode):
        os.close(opened)
        raise OSError(29, "It is a pipe", path)  # ESPIPE
    return opened


def places(
    env: "Mapping[str, str]", config_dir: str | None = None, platform: str = sys.platform
) -> Places:
    """The directories for this environment; `config_dir` is the command line's, which wins."""
    data = _path(env, "DRAGOMAN_DATA_DIR")
    chosen = absolute(config_dir, env) if config_dir else ""
    chosen = chosen or _path(env, "DRAGOMAN_CONFIG_DIR") or _path(env, "ZEROCLAW_CONFIG_DIR")
    config, own = _platform_dirs(env, platform)
    beside = os.path.join(chosen, "data")
    if chosen and (chosen != os.path.abspath(config) or os.path.isdir(beside)):
        return Places(chosen, data or beside, True)
    # The platform's own directory by its name is no other installation, unless it was one before.
    if data:
        return Places(config, data, True)
    theirs = _path(env, "ZEROCLAW_DATA_DIR")
    if theirs and not os.path.isfile(os.path.join(theirs, "config.toml")):
        return Places(config, _zeroclaw_data(theirs), True)
    if theirs and not chosen:
        return Places(theirs, os.path.join(theirs, "data"), True)
    return Places(config, own, False)


def _zeroclaw_data(path: str) -> str:
    """Where zeroclaw's own clients look below their ZEROCLAW_DATA_DIR."""
    beside = os.path.join(os.path.dirname(path), ".zeroclaw", "config.toml")
    if os.path.basename(path) in ("data", "workspace") or os.path.isfile(beside):
        return path
    return os.path.join(path, "data")


def _platform_dirs(env: "Mapping[str, str]", platform: str) -> tuple[str, str]:
    home = _home(env)
    if platform == "win32":
        roaming = env.get("APPDATA") or os.path.join(home, "AppData", "Roaming")
        local = env.get("LOCALAPPDATA") or os.path.join(home, "AppData", "Local")
        return os.path.join(roaming, "dragoman"), os.path.join(local, "dragoman", "data")
    if platform == "darwin":
        base = os.path.join(home, "Library", "Application Support", "dragoman")
        return base, os.path.join(base, "data")
    config = _xdg(env, "XDG_CONFIG_HOME") or os.path.join(home, ".config")
    data = _xdg(env, "XDG_DATA_HOME") or os.path.join(home, ".local", "share")
    return os.path.join(config, "dragoman"), os.path.join(data, "dragoman")


def endpoint(
    name: str, env: "Mapping[str, str]", where: Places, platform: str = sys.platform
) -> str:
    """The address of one dialect: its override, else its place in the data directory.

    Raises BadInput for an unknown name and for a path that no socket can have.
    """
    file, overrides = _socket(name)
    for variable in overrides:
        given = env.get(variable, "").strip()
        if given:
            if platform == "win32":
                return given
            return check_length(absolute(given, env), f"Set {variable} to a shorter path.")
    if platform == "win32":
        ending = "" if name == "zeroclaw" else f"-{name}"
        return f"\\\\.\\pipe\\dragoman-{_hash(where.data_dir)}{ending}"
    return check_length(
        os.path.join(where.data_dir, file),
        f"Set DRAGOMAN_DATA_DIR to a shorter directory, or {overrides[0]} to a shorter path.",
    )


def endpoints(
    env: "Mapping[str, str]", where: Places, platform: str = sys.platform
) -> dict[str, str]:
    """The addresses of all dialects."""
    return {name: endpoint(name, env, where, platform) for name in names()}


def names() -> list[str]:
    """Every name that has an address: dialects with a socket of their own, and `any`."""
    found = [one.name for one in REGISTRY.all() if one.socket]
    ours = [name for name in found if name in OURS]
    return [*ours, _ANY, *found[len(ours) :]]


def _socket(name: str) -> tuple[str, tuple[str, ...]]:
    """A socket's file name and the variables that choose another path."""
    if name == _ANY:
        return "any.sock", ("DRAGOMAN_ANY_SOCKET",)
    dialect = REGISTRY.find(name)
    if dialect is None or not dialect.socket:
        raise BadInput(f"There is no endpoint {name!r}.", f"Known: {', '.join(names())}.")
    return dialect.socket, dialect.env or (f"DRAGOMAN_{name.upper()}_SOCKET",)


def native(env: "Mapping[str, str]") -> "list[tuple[str, str]]":
    """Where each family's own clients look when nobody tells them otherwise: (dialect, path)."""
    found: dict[tuple[str, str], None] = {}
    runtime = _xdg(env, "XDG_RUNTIME_DIR") or "/tmp"
    for one in REGISTRY.all():
        for place in one.native.split(":") if one.native else ():
            path = absolute(place.replace("$XDG_RUNTIME_DIR", runtime), env)
            found[one.name, check_length(path, "Turn [listen] native off.")] = None
    return list(found)


def check_length(path: str, hint: str) -> str:
    """The path itself, or BadInput when it is too long for a Unix socket."""
    size = len(os.fsencode(path))
    if size > LONGEST:
        raise BadInput(
            f"The socket path is {size} bytes long, the system allows {LONGEST}: {path}.", hint
        )
    return path


def _home(env: "Mapping[str, str]") -> str:
    return env.get("HOME") or env.get("USERPROFILE") or _passwd_home()


def _passwd_home() -> str:
    """The home that the system knows for this user: HOME is not set, or empty."""
    if sys.platform == "win32":
        return os.path.expanduser("~")
    else:
        import pwd

        try:
            return pwd.getpwuid(os.getuid()).pw_dir or "/"
        except KeyError:
            return "/"


def _path(env: "Mapping[str, str]", variable: str) -> str:
    value = env.get(variable, "").strip()
    return absolute(value, env) if value else ""


def absolute(path: str, env: "Mapping[str, str]") -> str:
    """A path as people write it, from the root on."""
    if path == "~" or path.startswith("~/"):
        path = _home(env) + path[1:]
    return os.path.abspath(path)


def _xdg(env: "Mapping[str, str]", variable: str) -> str:
    """An XDG directory; relative ones are to be ignored."""
    value = env.get(variable, "")
    return value if os.path.isabs(value) else ""


def _hash(text: str) -> str:
    """64-bit FNV-1a: the same in every process, and no import."""
    number = 0xCBF29CE484222325
    for byte in os.fsencode(text):
        number = (number ^ byte) * 0x100000001B3 & 0xFFFFFFFFFFFFFFFF
    return f"{number:016x}"
