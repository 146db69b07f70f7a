"""Virtual environments and the interpreters that they stand for.

Running a program is not reaching outside: what an environment's interpreter needs may be read by
commands. `pyvenv.cfg` could name any folder, so only one that is a Python installation counts.
"""

import os
import re

_HOME = r"(?m)^home\s*=\s*(.+?)\s*$"
_NAMES = (".venv", "venv", "env", ".env")
_PYTHON = r"python(3(\.\d+)?t?)?"


def environment(program: str) -> str:
    """The virtual environment that a program's path lies in; empty when there is none."""
    prefix = os.path.dirname(os.path.dirname(os.path.normpath(program)))
    return prefix if os.path.isfile(os.path.join(prefix, "pyvenv.cfg")) else ""


def installation(environment: str) -> str:
    """The prefix of the Python installation behind a virtual environment; empty: not known."""
    try:
        with open(os.path.join(environment, "pyvenv.cfg"), encoding="utf-8") as file:
            found = re.search(_HOME, file.read(4096))
    except (OSError, UnicodeError):
        return ""
    if not found or not os.path.isabs(found.group(1)):
        return ""
    home = os.path.realpath(found.group(1))
    prefix = os.path.dirname(home)
    if os.path.basename(home) != "bin" or prefix == "/" or not _is_python(prefix):
        return ""
    return prefix


def _is_python(prefix: str) -> bool:
    try:
        names = os.listdir(os.path.join(prefix, "bin"))
        versions = [n for n in os.listdir(os.path.join(prefix, "lib")) if n.startswith("python3")]
    except OSError:
        return False
    runs = any(re.fullmatch(_PYTHON, name) for name in names)
    return runs and any(os.path.isfile(f"{prefix}/lib/{name}/os.py") for name in versions)


def installations(roots: tuple[str, ...]) -> tuple[str, ...]:
    """The installations behind the virtual environments that lie right in some folders."""
    places = [os.path.join(root, name) for root in roots for name in ("", *_NAMES)]
    found = (installation(place) for place in places)
    return tuple(dict.fromkeys(prefix for prefix in found if prefix))
