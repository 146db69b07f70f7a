"""The command that adds an extra of ours to the very environment that this process runs in."""

import os
import re
import shlex
import sys

_NAME = re.compile(r"[\w.-]+")
_OF_EXTRA = re.compile(r"""extra\s*==\s*['"]([\w-]+)['"]""")


def adding(extra: str, prefix: str = "") -> str:
    """What to type. The `pip` on somebody's PATH may be of another environment, or refuse."""
    from importlib.util import find_spec

    prefix = prefix or sys.prefix
    packages = _packages(extra)
    words = " ".join(shlex.quote(one) for one in packages) or shlex.quote(f"dragoman[{extra}]")
    python = shlex.quote(sys.executable or "python3")
    if packages and os.path.exists(os.path.join(prefix, "pipx_metadata.json")):
        return f"pipx inject {shlex.quote(os.path.basename(prefix))} {words}"
    if _is_of_uv(prefix):  # `uv tool install --with` would take out what was added before
        return f"uv pip install --python {python} {words}"
    pip = f"{python} -m pip install"
    if _is_of_the_system():
        home = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
        right = "" if os.access(home, os.W_OK) else "sudo "
        return f"{right}{pip} --target {shlex.quote(home)} {words}"
    if not find_spec("pip"):  # as in a folder that `make run` has made
        pip = f"{python} -m ensurepip && {pip}"
    return f"{pip} {words}"


def _is_of_uv(prefix: str) -> bool:
    if os.path.exists(os.path.join(prefix, "uv-receipt.toml")):
        return True
    try:
        with open(os.path.join(prefix, "pyvenv.cfg"), encoding="utf-8") as file:
            return any(line.startswith("uv =") for line in file)
    except (OSError, UnicodeDecodeError):
        return False


def _is_of_the_system() -> bool:
    """Whether pip would refuse to install beside the packages of the system."""
    from sysconfig import get_path

    mark = os.path.join(get_path("stdlib", "posix_prefix"), "EXTERNALLY-MANAGED")
    return sys.prefix == sys.base_prefix and os.path.exists(mark)


def _packages(extra: str) -> list[str]:
    """What the extra consists of, by the word of our own package; nothing where nobody knows."""
    from importlib import metadata  # takes a while to load

    try:
        rows = metadata.requires("dragoman") or []
    except metadata.PackageNotFoundError:
        return []
    found = []
    for row in rows:
        wanted, _, marker = row.partition(";")
        if (of := _OF_EXTRA.search(marker)) and of[1] == extra and _NAME.match(wanted):
            found.append(wanted.strip().replace(" ", ""))
    return found
