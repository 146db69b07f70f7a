"""The seam between tools and sandboxes: it may change how a child process is started."""

import os
import shlex
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Protocol

import msgspec

from dragoman import kernel
from dragoman.engine.ports import ToolEnv

if TYPE_CHECKING:
    from .limits import Bounded, Limits
    from .outlet import CommandProxy


# Runs its words without our descriptors, and says in one of those how many others live then. What
# the shell itself says of a command that a signal ended is not its output. A signal to all of them
# ends the command first, which may have something to do before that.
_COUNT = """SHLVL=$((SHLVL - 1))
exec {said}>&2 2>/dev/null
LOCALE
trap : HUP INT TERM
"$@" 2>&$said {said}>&- TALLY>&-
code=$? count=0
for one in /proc/[0-9]*; do
  case $one in /proc/1 | /proc/$$) continue ;; esac
  read -r stat <$one/stat || continue
  case ${stat##*) } in [ZX]*) ;; *) count=$((count + 1)) ;; esac
done
echo $count >&TALLY
exit $code"""


class Sign:
    """Files in which a program that puts walls up says how the command inside of them ended.

    Bubblewrap does so, in `--json-status-fd`, of one that it ran, and of no other. What a command
    left in the background ends with bubblewrap, before anybody outside could look: a shell around
    the command counts it, inside of the walls, while it still lives.
    """

    __slots__ = ("fd", "tally")

    def __init__(self) -> None:
        self.fd = kernel.memory_file("sign")
        self.tally = kernel.memory_file("tally")

    def __del__(self) -> None:
        for name in self.__slots__:
            if hasattr(self, name):  # not when there was no descriptor left for it
                os.close(getattr(self, name))

    def counting(self, launch: "Launch") -> list[str]:
        """Bubblewrap's last words: a shell, and around it the same one, which counts what is left.

        A locale that is not installed is told of by each shell that begins with it, so the outer
        one takes it up where nobody hears that.
        """
        argv, locale = launch.argv, launch.env.get("LC_ALL")
        if os.path.basename(argv[0]) != "bash":
            return ["--", *argv]  # another may drop variables, or not know descriptors beyond 9
        script = _COUNT.replace("TALLY", str(self.tally))
        if locale is None:
            return ["--", *argv[:-1], script.replace("LOCALE", ":"), argv[0], *argv]
        script = script.replace("LOCALE", f"export LC_ALL={shlex.quote(locale)}")
        return ["--unsetenv", "LC_ALL", "--", *argv[:-1], script, argv[0], *argv]

    def left(self) -> int:
        """How many processes the command left in the background; 0 where nobody has counted."""
        said = os.pread(self.tally, 32, 0).strip()
        return int(said) if said.isdigit() else 0

    def ran(self) -> bool:
        """Whether the command has run; asked when the program is over."""
        return b'"exit-code"' in os.pread(self.fd, 4096, 0)


class Launch(msgspec.Struct, frozen=True):
    """How a child process is going to be started.

    A sandbox gives back a copy (`msgspec.structs.replace`): with other `argv` (bubblewrap, say),
    with a `preexec` that runs in the child between fork and exec (Landlock: the rule set is made
    beforehand, its descriptor is in `keep`), or both. `done` runs in the parent once the child has
    started or failed to: the place to close what was opened for it. `counted`: nothing but the
    parent bounds the number of its processes; with more than this it is to be ended.

    Walls are made of names that were listed beforehand, and somebody may remove or exchange what
    they lead to before the walls stand. `again` is the launch with walls of what is there now.
    """

    argv: tuple[str, ...]
    cwd: str
    env: Mapping[str, str]
    preexec: Callable[[], None] | None = None
    keep: tuple[int, ...] = ()  # descriptors that the child inherits
    done: Callable[[], None] | None = None
    counted: int = 0
    locks: bool = False  # what the walls call locked is read-only for it
    exposes: tuple[str, ...] = ()  # what is ours, whose modes are within its reach (`modes`)
    again: "Callable[[], Launch] | None" = None
    sign: Sign | None = None  # where another program puts the walls up
    leaves: bool = False  # a shell's command, which may leave processes in the background
    listed: bool = False  # folders of everybody's were taken apart: names may well be gone


class Walls(Protocol):
    """The paths of one session, as policy has worked them out (`policy.paths.Boundary`)."""

    @property
    def cwd(self) -> str: ...

    @property
    def roots(self) -> Sequence[str]: ...

    @property
    def forbidden(self) -> Sequence[str]: ...

    @property
    def protected(self) -> Sequence[str]: ...

    @property
    def readable(self) -> Sequence[str]: ...

    @property
    def sealed(self) -> Sequence[str]:
        """What is never written."""
        ...

    @property
    def legible(self) -> Sequence[str]:
        """What commands may read and run beside the workspace."""
        ...

    @property
    def writable(self) -> Sequence[str]:
        """What commands may write beside the workspace: caches, temporary folders."""
        ...

    @property
    def reads_outside(self) -> bool:
        """Commands may read everything that is not forbidden."""
        ...

    @property
    def workspace_only(self) -> bool: ...

    @property
    def locked(self) -> Sequence[str]:
        """What of the workspace is read-only where mounts are to be had (`policy.guarded`)."""
        ...


class Confine(Protocol):
    """A sandbox for the commands of one agent."""

    name: str  # as `doctor` shows it

    def confine(self, launch: Launch, env: ToolEnv, walls: Walls) -> Launch:
        """The launch with the walls around it. Raises Refused when they cannot be put up."""
        ...

    def guard(self, walls: Walls, target: str) -> Callable[[], None] | None:
        """What a fresh thread calls to put the same walls around itself before it writes `target`.

        None: there is nothing to call.
        """
        ...


class Unconfined:
    """No sandbox: commands can do what the user can."""

    name = "none"

    def confine(self, launch: Launch, env: ToolEnv, walls: Walls) -> Launch:
        return launch

    def guard(self, walls: Walls, target: str) -> Callable[[], None] | None:
        return None


class Sandbox:
    """What all sandboxes that bound processes and the network have in common."""

    def __init__(
        self,
        *,
        network: bool = True,
        unix: bool = False,
        limits: "Limits | None" = None,
        domains: Sequence[str] = (),
    ) -> None:
        """`unix`: commands may talk to Unix sockets (an SSH agent, Docker, D-Bus, …).

        `domains`: they have no network but what a proxy of ours leads to.
        """
        from .limits import Limits

        self.network = network and not domains
        self.domains = tuple(domains)
        self.unix = unix
        self.limits = limits or Limits()

    def outlet(self) -> "CommandProxy | None":
        """The way out of one command. Raises Refused."""
        from .outlet import outlet_for

        return outlet_for(self.domains) if self.domains else None

    def opened(
        self, launch: Launch, fd: int, bounded: "Bounded", outlet: "CommandProxy | None"
    ) -> Launch:
        """The launch with what was opened for it, which is closed once the child runs."""
        keep, variables = (*launch.keep, fd) if fd >= 0 else launch.keep, dict(launch.env)
        if outlet is not None:
            keep, variables = (*keep, outlet.keep), variables | outlet.env

        def done() -> None:
            if fd >= 0:
                os.close(fd)
            bounded.done()
            if outlet is not None:
                outlet.started()
            if launch.done is not None:
                launch.done()

        return msgspec.structs.replace(
            launch, env=variables, keep=keep, done=done, counted=bounded.counted
        )

    def guard(self, walls: Walls, target: str) -> Callable[[], None] | None:
        return None
