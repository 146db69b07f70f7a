"""Where our own program lies: no tool writes there, in no mode.

People install us into the environment of the very project that an agent works in. Whoever writes
there writes us: what the daemon loads next, or what runs at its next start, with all its rights.
"""

import os
import shlex
import sys
from functools import cache

import dragoman


@cache
def own_code() -> tuple[str, ...]:
    """Our package, and the environment that it is installed in."""
    package = os.path.dirname(os.path.realpath(dragoman.__file__))
    found = [package]
    around = os.path.dirname(package)
    if os.path.basename(around) in ("site-packages", "dist-packages"):
        found.append(around)  # what we are made of lies beside us
    if sys.prefix != sys.base_prefix:
        found.append(os.path.realpath(sys.prefix))
    return tuple(found)


def inside(folder: str) -> str:
    """The part of our program that lies in a folder where agents work; empty: none does."""
    top = os.path.realpath(folder).rstrip("/") + "/"
    return next((place for place in reversed(own_code()) if place.startswith(top)), "")


def is_apart() -> bool:
    """Whether pipx or `uv tool` made the environment that we run from, for us alone."""
    marks = ("pipx_metadata.json", "uv-receipt.toml")
    return any(os.path.exists(os.path.join(sys.prefix, mark)) for mark in marks)


def source() -> str:
    """What an installer takes for another copy of us: the clone that we run from, if any."""
    clone = os.path.dirname(os.path.dirname(own_code()[0]))
    there = os.path.isfile(os.path.join(clone, "pyproject.toml"))
    return shlex.quote(clone) if there and own_code()[0].endswith("/src/dragoman") else "dragoman"
