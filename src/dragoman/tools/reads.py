"""What was looked at before it changes: files as a session has read them, and as a human saw them.

Nothing is overwritten that nobody has looked at, or that is another by now.
"""

import os
from collections import OrderedDict

from dragoman.engine.ask import Seen
from dragoman.engine.faults import BadInput, Changed
from dragoman.engine.ports import ToolEnv

from .disk import Stamp, stamp_of

_SESSIONS = 256
_FILES = 4_096


class Reads:
    """Stamps of files by session; the oldest go first."""

    def __init__(self) -> None:
        self._of: OrderedDict[str, OrderedDict[str, Stamp]] = OrderedDict()

    def saw(self, env: ToolEnv, path: str, stamp: Stamp) -> None:
        known = self._of.setdefault(env.session, OrderedDict())
        self._of.move_to_end(env.session)
        known[path] = stamp
        known.move_to_end(path)
        while len(known) > _FILES:
            known.popitem(last=False)
        while len(self._of) > _SESSIONS:
            self._of.popitem(last=False)

    def wrote(self, env: ToolEnv, path: str) -> None:
        """The session knows what it has just written."""
        try:
            self.saw(env, path, stamp_of(os.stat(path, follow_symlinks=False)))
        except OSError:  # gone again: the next look will tell
            self._of.get(env.session, OrderedDict()).pop(path, None)

    def check(self, env: ToolEnv, path: str, now: Stamp, shown: str, *, must: bool = False) -> None:
        """Raise BadInput when the file changed since it was read; with `must`, when it never was.

        What a human agreed to with the file before their eyes needs no reading.
        """
        known = self._of.get(env.session, OrderedDict()).get(path)
        if known is None:
            if must:
                raise BadInput(
                    f"{shown} exists and was not read in this session.",
                    "Read it first, or use edit; nothing was changed.",
                )
            return
        if known != now:
            raise BadInput(
                f"{shown} changed since it was read, by somebody else or by a command.",
                "Read it again; nothing was changed.",
            )


def seen(path: str, data: bytes | None) -> Seen:
    """A file as it is now; None when there is none."""
    from hashlib import sha256  # loads a library, and is needed when something is written

    return Seen(path, "" if data is None else sha256(data).hexdigest())


def expect(env: ToolEnv, path: str, data: bytes | None, shown: str) -> None:
    """Raise Changed unless the file is the one that a human was shown, when one was."""
    if env.seen is not None and seen(path, data) not in env.seen:
        raise Changed(
            f"{shown} is not any more what was shown when this call was allowed.",
            "Nothing was changed. Call it again to ask again.",
        )
