"""Instructions deeper than the working folder: told when a session first reads or writes there."""

import os
from collections import OrderedDict

from dragoman.engine.content import Text
from dragoman.engine.faults import Fault
from dragoman.engine.ports import ToolEnv
from dragoman.engine.ports.agents import CONTEXT_NAMES
from dragoman.policy.paths import Boundary

from .disk import load
from .work import Halt, in_thread

_SESSIONS = 256
_LARGEST = 32 * 1024
_DEEPEST = 32
# What others wrote and only lies here: it instructs nobody.
_FOREIGN = frozenset(
    "node_modules .venv venv site-packages vendor third_party .git target dist build .tox".split()
)


class Nested:
    """Which folders a session was told about; the oldest sessions go first."""

    def __init__(self) -> None:
        self._told: OrderedDict[str, set[str]] = OrderedDict()

    def entered(self, env: ToolEnv, bounds: Boundary, path: str, halt: Halt) -> tuple[Text, ...]:
        """What the folders of a file say that were not entered before, the outermost first."""
        root = os.path.realpath(env.cwd)
        below = os.path.relpath(os.path.dirname(path), root)
        parts = below.split(os.sep)
        if below == "." or parts[0] == ".." or len(parts) > _DEEPEST or _FOREIGN & {*parts}:
            return ()
        told = self._told.setdefault(env.session, set())
        self._told.move_to_end(env.session)
        while len(self._told) > _SESSIONS:
            self._told.popitem(last=False)
        found = []
        for depth in range(1, len(parts) + 1):
            folder = os.path.join(root, *parts[:depth])
            if folder not in told:
                told.add(folder)
                said = _said(bounds, folder, path, halt)
                found += [said] if said else []
        return tuple(found)


async def told_of(
    nested: Nested | None, env: ToolEnv, bounds: Boundary, path: str
) -> tuple[Text, ...]:
    """The same, for a tool that works at a path; nothing where instructions are not wanted."""
    if nested is None:
        return ()
    return await in_thread(lambda halt: nested.entered(env, bounds, path, halt))


def _said(bounds: Boundary, folder: str, reading: str, halt: Halt) -> Text | None:
    for name in CONTEXT_NAMES:
        file = os.path.join(folder, name)
        if file == reading or not os.path.isfile(file):
            continue
        try:
            data = load(bounds, bounds.resolve(file), file, _LARGEST, halt).data
        except Fault:
            continue  # out of reach, too large or no text file: nothing that instructs
        text = data.decode("utf-8", "replace").strip()
        if text:
            return Text(f"[{file} says about everything in {folder}:]\n{text}")
    return None
