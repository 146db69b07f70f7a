"""Becomes a program inside of the walls: see `program`."""

import json
import os
import signal
import sys
from itertools import count
from typing import Any, NoReturn

from dragoman.engine.faults import Fault, in_words

from . import brand
from .choose import choose
from .launch import Launch
from .limits import Limits
from .program import WANTED, Fixed

_FAILED = 126
_LISTINGS = 7  # tries that are watched; the last one is not
_FIRM = (signal.SIGKILL, signal.SIGSTOP)


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
    for _ in range(_LISTINGS if launch.listed else 0):
        status, again = _tried(launch, wanted), launch.again
        if status != 1 or launch.sign is None or launch.sign.ran() or again is None:
            _end_as(status)
        launch = again()
    _exec(launch, wanted)


def _exec(launch: Launch, wanted: dict[str, Any]) -> None:
    if launch.argv[0] != wanted["argv"][0]:  # another program reads what was prepared for it
        for fd in launch.keep:
            os.set_inheritable(fd, True)
    if launch.preexec is not None:
        launch.preexec()
    os.execvpe(launch.argv[0], launch.argv, wanted["env"])


def _tried(launch: Launch, wanted: dict[str, Any]) -> int:
    """Run it in a child, which ends with us: what was listed may be gone before the walls stand."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    pid = os.fork()
    if pid == 0:
        try:
            _exec(launch, wanted)
        except BaseException as problem:
            print(f"{wanted['argv'][0]} could not be started: {in_words(problem)}", file=sys.stderr)
        finally:
            os._exit(_FAILED)
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    if launch.done is not None:
        launch.done()
    return status


def _end_as(status: int) -> NoReturn:
    """End as the child did. Returns never."""
    if status < 0:
        if -status not in _FIRM:
            signal.signal(-status, signal.SIG_DFL)
        os.kill(os.getpid(), -status)
    os._exit(status)


def main() -> None:
    wanted = _wanted()
    try:
        become(wanted)
    except Fault as fault:
        print(f"{fault.message} {fault.hint}".strip(), file=sys.stderr)
    except OSError as problem:
        print(f"{wanted['argv'][0]} could not be started: {in_words(problem)}", file=sys.stderr)
    sys.exit(_FAILED)


if __name__ == "__main__":
    main()
