"""The command that adds an extra of ours to the very environment that this process runs in."""

import os
import re
import shlex
import sys

_NAME = re.compile(r"[\w.-]+")
_OF_EXTRA = re.compile(r"""extra\s*==\s*['"]([\w-]+)['"]""")


def adding(extra: str, prefix: str = "") -> str:
    """What to type. What pipx or uv has installed is theirs to change; a `pip` on somebody's PATH
    would install into another environment, or refuse."""
    from importlib.util import find_spec

    prefix = prefix or sys.prefix
    packages = _packages(extra)
    words = " ".join(shlex.quote(one) for one in packages)
    if packages and os.path.exists(os.path.join(prefix, "pipx_metadata.json")):
        return f"pipx inject dragoman {words}"
    if packages and os.path.exists(os.path.join(prefix, "uv-receipt.toml")):
        return "uv tool install dragoman " + " ".join(f"--with {shlex.quote(p)}" for p in packages)
    python = shlex.quote(sys.executable or "python3")
    # A folder that `make run` or uv has made has no pip of its own.
    pip = f"{python} -m pip" if find_spec("pip") else f"python3 -m pip --python {python}"
    return f"{pip} install {words or shlex.quote(f'dragoman[{extra}]')}"


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
