"""Where a command's package managers keep things in a home that has no folder of theirs.

A sandbox opens what is there. A folder that is not there is not made for a program that may never
run: variables lead the program to the folder of our own instead. Only what no variable can lead
elsewhere without losing its configuration is made, inside of a folder that the program has.
"""

import contextlib
import os
import time
from collections.abc import Mapping, Sequence
from functools import lru_cache

OWN = "/.local/state/dragoman-commands"
# What is looked for in the home directory, the variable for it, and where it is in our folder.
_INSTEAD = (
    (".cache", "XDG_CACHE_HOME", ""),
    (".npm", "npm_config_cache", "npm"),
    (".cargo", "CARGO_HOME", "cargo"),
    ("go/pkg", "GOPATH", "go"),
    (".pub-cache", "PUB_CACHE", "pub"),
    (".nuget/packages", "NUGET_PACKAGES", "nuget"),
    (".hex", "HEX_HOME", "hex"),
)
_MAVEN = "-Dmaven.repo.local="
# Folders that are taken apart, so that no names are made in them, and the program they are of.
_APART = {".cargo": "cargo", ".pub-cache": "dart"}


def housed(writable: Sequence[str], env: Mapping[str, str]) -> dict[str, str]:
    """The environment, with the way to our folder for what the home has no folder for."""
    found = dict(env)
    own = next((path for path in writable if path.endswith(OWN)), "")
    if not own:
        return found
    home = own.removesuffix(OWN)
    for name, variable, place in _INSTEAD:
        path = os.path.join(home, name)
        said = found.get(variable)
        if path in writable and not is_there(path) and (said is None or not is_there(said)):
            found[variable] = os.path.join(own, place).rstrip("/")
    said = found.get("MAVEN_OPTS", "")
    # Maven's script parts the words at blanks, whatever is around them.
    if (_MAVEN not in said and not any(map(str.isspace, own))
            and not is_there(os.path.join(home, ".m2/repository"))):  # fmt: skip
        found["MAVEN_OPTS"] = f"{said} {_MAVEN}{own}/maven/repository".strip()
    return found


def ready(path: str, writable: Sequence[str], env: Mapping[str, str]) -> bool:
    """Whether a folder that can be written is there; ours is made, and what must be inside."""
    if is_there(path):
        return True
    above = os.path.dirname(path)
    program = _APART.get(os.path.basename(above), "") if above in writable else ""
    inner = bool(program) and os.path.isdir(above) and _installed(program, env.get("PATH"), _now())
    if inner or path.endswith(OWN):
        with contextlib.suppress(OSError):  # somebody else's folder: the command will say so
            os.makedirs(path, 0o700, exist_ok=True)
    return is_there(path)


def is_there(path: str) -> bool:
    """As `os.path.lexists`, in a third of the time where it is not: there are many to ask for."""
    return os.access(path, os.F_OK, follow_symlinks=False)


def _now() -> int:
    return int(time.monotonic() // 60)


@lru_cache(256)
def _installed(program: str, path: str | None, minute: int) -> bool:
    """Whether a program is there; looked for once a minute, since most are not."""
    import shutil  # takes a while to load, and is not needed before the first command

    return bool(shutil.which(program, path=path))
