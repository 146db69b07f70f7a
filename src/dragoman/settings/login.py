"""The key that `dragoman login` keeps: in the platform's keyring, else in a file of its owner.

The file says who was chosen, and holds the key only where there is no keyring. It lies among our
data, which no tool and no command may read.
"""

import errno
import os
import subprocess
import sys

import msgspec

from dragoman.engine.faults import BadInput
from dragoman.observe.programs import find

from .places import Places

_WITHIN = 10.0
_SERVICE = "dragoman"
_FULL = (errno.ENOSPC, errno.EDQUOT)


class Login(msgspec.Struct, frozen=True, omit_defaults=True):
    """Who was chosen. Ollama needs no key."""

    provider: str
    key: str = ""
    keyring: bool = False


def path_of(where: Places) -> str:
    return os.path.join(where.data_dir, "login.json")


def chosen(where: Places) -> str:
    """Who was chosen, without asking the keyring; empty: nobody."""
    login = _file(where)
    return login.provider if login is not None else ""


def _file(where: Places) -> Login | None:
    try:
        with open(path_of(where), "rb") as file:
            return msgspec.json.decode(file.read(), type=Login)
    except (OSError, msgspec.DecodeError):
        return None


def read(where: Places) -> Login | None:
    """What was kept; None when nobody logged in, or what is there cannot be read."""
    login = _file(where)
    if login is not None and login.keyring:
        return Login(login.provider, _looked_up(login.provider), True)
    return login


def keep(where: Places, provider: str, key: str) -> Login:
    """Keep a choice and its key; returns it as it was kept. Raises BadInput."""
    keyring = bool(key) and _stored(provider, key)
    login = Login(provider, "" if keyring else key, keyring)
    path = path_of(where)
    fresh = f"{path}.new"
    try:
        os.makedirs(where.data_dir, mode=0o700, exist_ok=True)
        if os.path.lexists(fresh):
            os.unlink(fresh)
        handle = os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o600)
        with os.fdopen(handle, "wb") as file:
            file.write(msgspec.json.encode(login))
        os.replace(fresh, path)
    except OSError as problem:
        raise BadInput(
            f"The key could not be kept in {path}: {problem.strerror}.",
            "Make room there." if problem.errno in _FULL else "Is the folder yours to write?",
        ) from None
    return login


def forget(where: Places) -> str:
    """Forget the key; returns whose it was, empty when there was none."""
    login = read(where)
    if login is None:
        return ""
    if login.keyring:
        _cleared(login.provider)
    os.unlink(path_of(where))
    return login.provider


# --- the platform's keyring, by the program that comes with it ---


def _tool() -> str:
    own = {"darwin": "security"}.get(sys.platform, "")
    if own:
        return find(own)
    if os.environ.get("DBUS_SESSION_BUS_ADDRESS"):
        return find("secret-tool")
    return ""


def _ask(words: list[str], said: str = "") -> str | None:
    """What the keyring's program answers; None: it could not do it."""
    try:
        done = subprocess.run(
            words, input=said.encode(), capture_output=True, timeout=_WITHIN, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.decode("utf-8", "replace") if done.returncode == 0 else None


def _stored(provider: str, key: str) -> bool:
    """Store a key without showing it to others in a list of processes; look whether it is there."""
    tool = _tool()
    if not tool:
        return False
    if sys.platform == "darwin":
        if any(char in key for char in '"\\\n'):
            return False
        order = f'add-generic-password -U -s {_SERVICE} -a {provider} -w "{key}"\n'
        _ask([tool, "-i"], order)
    else:
        label = f"--label=Dragoman: {provider}"
        _ask([tool, "store", label, "service", _SERVICE, "account", provider], key)
    return _looked_up(provider) == key


def _looked_up(provider: str) -> str:
    tool = _tool()
    if not tool:
        return ""
    words = [tool, "lookup", "service", _SERVICE, "account", provider]
    if sys.platform == "darwin":
        words = [tool, "find-generic-password", "-s", _SERVICE, "-a", provider, "-w"]
    return (_ask(words) or "").strip()


def _cleared(provider: str) -> None:
    tool = _tool()
    if tool and sys.platform == "darwin":
        _ask([tool, "delete-generic-password", "-s", _SERVICE, "-a", provider])
    elif tool:
        _ask([tool, "clear", "service", _SERVICE, "account", provider])
