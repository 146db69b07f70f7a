"""Becomes a program inside of the walls: see `program`."""

import json
import os
import sys
from itertools import count
from typing import Any

from dragoman.engine.faults import Fault

from . import brand
from .choose import choose
from .launch import Launch
from .limits import Limits
from .program import WANTED, Fixed

_FAILED = 126


def _wanted() -> dict[str, Any]:
    pieces = []
    for number in count():
        piece = os.environ.pop(f"{WANTED}{number}", None)
        if piece is None:
            break
        pieces.append(piece)
    found: dict[str, Any] = json.loads("".join(pieces))
    return found


def become(wanted: dict[str, Any]) -> None:
    """Put the walls up and run the program in our place. Returns never; raises Fault, OSError."""
    brand.burn(wanted["mark"])()
    walls = Fixed(**wanted["walls"])
    confine = choose(wanted["backend"], network=wanted["network"], unix=wanted["unix"])
    if hasattr(confine, "limits"):  # nobody would be left to remove a control group
        confine.limits = Limits(groups=False)
    # What its own variables say decides nothing about the walls but where its files go.
    env = {**os.environ, "TMPDIR": wanted["env"]["TMPDIR"]}
    launch = Launch(tuple(wanted["argv"]), wanted["cwd"], env)
    launch = confine.confine(launch, None, walls)  # type: ignore[arg-type]
    if launch.argv[0] != wanted["argv"][0]:  # another program reads what was prepared for it
        for fd in launch.keep:
            os.set_inheritable(fd, True)
    if launch.preexec is not None:
        launch.preexec()
    os.execvpe(launch.argv[0], launch.argv, wanted["env"])


def main() -> None:
    wanted = _wanted()
    try:
        become(wanted)
    except Fault as fault:
        print(f"{fault.message} {fault.hint}".strip(), file=sys.stderr)
    except OSError as problem:
        print(f"{wanted['argv'][0]} could not be started: {problem}", file=sys.stderr)
    sys.exit(_FAILED)


if __name__ == "__main__":
    main()
