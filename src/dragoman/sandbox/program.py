"""Programs that stay: hosted agents and MCP servers, started inside the walls of commands.

Who starts them may be a library that takes nothing but words and an environment. So the words
are those of a small starter (`enter`), which reads here what is wanted, puts the walls up around
itself and becomes the program.
"""

import errno
import json
import os
import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field

from . import brand
from .launch import Walls

WANTED = "SANDBOX_PROGRAM_"  # variables of the starter, numbered
_PIECE = 96 * 1024  # the kernel takes 128 KiB in one variable
# What the starter itself needs to begin, whatever the program's own environment says.
_OWN = ("PATH", "HOME", "PYTHONPATH", "PYTHONHOME", "LANG", "LC_ALL", "LC_CTYPE")

Words = Sequence[str]
Variables = Mapping[str, str]
Wrap = Callable[[Words, str, Variables], tuple[tuple[str, ...], dict[str, str]]]
"""The words of a program, its folder and environment, and what to start instead of it."""


@dataclass(slots=True, frozen=True)
class Fixed:
    """Walls that can be written down (`launch.Walls`)."""

    cwd: str
    roots: Sequence[str]
    forbidden: Sequence[str]
    protected: Sequence[str]
    readable: Sequence[str]
    sealed: Sequence[str]
    legible: Sequence[str]
    writable: Sequence[str]
    reads_outside: bool
    workspace_only: bool
    locked: Sequence[str] = ()


@dataclass(slots=True, frozen=True)
class Cell:
    """What a program is put into. `scratch` becomes its temporary folder.

    `variables` are for programs that name no others; where caches are, is not theirs to say.
    """

    walls: Walls
    scratch: str
    backend: str = "auto"
    network: bool = True
    unix: bool = False
    variables: Mapping[str, str] = field(default_factory=dict)

    def wrap(self, argv: Words, cwd: str, env: Variables) -> tuple[tuple[str, ...], dict[str, str]]:
        """What to start instead, and its environment. Raises OSError when there is no program."""
        found = shutil.which(argv[0], path=env.get("PATH"))
        if found is None and not os.path.isfile(os.path.join(cwd, argv[0])):
            raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT), argv[0])
        names = Fixed.__slots__
        walls = {name: getattr(self.walls, name) for name in names}
        wanted = {
            "argv": list(argv),
            "cwd": cwd,
            "env": {**self.variables, **env, **self._places()},
            "backend": self.backend,
            "network": self.network,
            "unix": self.unix,
            "mark": brand.new(),  # it stays among the live ones: nobody takes it for a runaway
            "walls": asdict(Fixed(**walls)),
        }
        text = json.dumps(wanted)
        pieces = [text[at : at + _PIECE] for at in range(0, len(text), _PIECE)]
        variables = {name: os.environ[name] for name in _OWN if name in os.environ}
        variables |= {f"{WANTED}{number}": piece for number, piece in enumerate(pieces)}
        return (sys.executable, "-P", "-B", "-m", "dragoman.sandbox.enter"), variables

    def _places(self) -> dict[str, str]:
        cache = self.variables.get("XDG_CACHE_HOME")
        return {"TMPDIR": self.scratch, **({"XDG_CACHE_HOME": cache} if cache else {})}


def unwrapped(argv: Words, cwd: str, env: Variables) -> tuple[tuple[str, ...], dict[str, str]]:
    """Outside of the sandbox."""
    return tuple(argv), dict(env)
