"""Landlock: the kernel's own sandbox, put up by a process around itself and its children.

Plain system calls through ctypes. The rule set is made in the parent; between fork and exec the
child only has to say "no new privileges" and "restrict me". A thread can do the same for itself.
"""

import ctypes
import os
from collections.abc import Callable
from functools import cache, cached_property

from msgspec.structs import replace

from dragoman.engine.ports import ToolEnv

from . import room, ruleset, seccomp
from .launch import Launch, Sandbox, Walls
from .powers import renounce
from .reach import opened, rules
from .ruleset import call as _call
from .veil import cover, hidden

_CREATE, _RESTRICT = 444, 446  # the same on every architecture
_VERSION_FLAG = 1
_PR_SET_NO_NEW_PRIVS = 38
_CLONE_NEWNET = 0x40000000
_CLONE_NEWUSER = 0x10000000

_NET = 0b11  # bind and connect of TCP
_SCOPED = 0b11  # abstract Unix sockets and signals of processes outside


def abi() -> int:
    """The version that this kernel has; 0: none."""
    if os.name != "posix" or not hasattr(os, "sched_getaffinity"):  # not Linux
        return 0
    found = int(_call().syscall(_CREATE, None, 0, _VERSION_FLAG))
    return max(found, 0)


class Landlock(Sandbox):
    """The sandbox of an agent's commands (`launch.Confine`)."""

    name = "landlock"

    @cached_property
    def version(self) -> int:
        """Of the kernel's Landlock."""
        return abi()

    def describe(self) -> str:
        """What holds on this machine, in one sentence."""
        parts = [f"Landlock ABI {self.version}: files"]
        if self.version >= 6:
            parts.append("signals and abstract sockets")
        if seccomp.build(seccomp.Openings()):
            parts.append("system calls" if self.unix else "system calls and Unix sockets")
        if room.possible(_call()):
            parts.append("terminals and shared memory")
        if self.domains:
            parts.append(f"network to {', '.join(self.domains)}")
        elif not self.network:
            parts.append("no network" if self._silent() else "no TCP (UDP is not covered)")
        return ", ".join(parts)

    def confine(self, launch: Launch, env: ToolEnv, walls: Walls) -> Launch:
        scratch = launch.env.get("TMPDIR", "")
        libc = _call()
        hides, inside, veil = self._hiding(walls), None, None
        if self._has_room(hides):
            made = rules(walls, launch.env, scratch, veiled=True)
            shared = [rule for rule in made if rule.path in room.SHARED]
            made = [rule for rule in made if rule.path not in room.SHARED]
            writable = [rule.path for rule in made if rule.kind == "write"]
            barred = [*walls.protected, *walls.forbidden]  # canonical
            covered = _covered(walls) if hides else ()
            inside = room.enter(libc, writable, barred, launch.cwd, walls.locked, covered)
            veil = cover(libc, covered, scratch) if covered else None
        else:  # terminals of others cannot be told from own ones: there are none
            made, shared = rules(walls, launch.env, scratch), []
            made = [rule for rule in made if rule.path not in ("/dev/pts", "/dev/ptmx")]
        own_network = not self.network and networks()
        outlet = self.outlet()
        openings = seccomp.Openings(self.unix, self.network or own_network, inside is not None)
        filtered = seccomp.install(seccomp.build(openings))
        renounced = renounce(libc)
        handled = self._handled()
        fd = ruleset.ready(made, handled)
        bounded = self.limits.prepare(own_users=inside is not None)
        before = launch.preexec

        def preexec() -> None:
            if before is not None:
                before()
            bounded.join()
            if inside is not None:
                own = inside()
                bounded.bound()
                if veil is not None:
                    veil()
                for rule in shared:
                    # What could not be had as one's own: only terminals are worse than none.
                    if rule.path in own or rule.path in ("/dev/shm", "/proc"):
                        ruleset.add(fd, rule, handled.files)
            if own_network and libc.unshare(_net_flags(inside is not None)) != 0:
                os._exit(126)
            if outlet is not None:
                outlet.enter()
            self._restrict(fd)
            os.close(fd)  # what it could add would be allowed to the next command
            renounced()
            filtered()

        return replace(
            self.opened(launch, fd, bounded, outlet), preexec=preexec, locks=inside is not None,
            exposes=() if inside is not None else tuple(walls.protected),
            again=lambda: self.confine(launch, env, walls),
        )  # fmt: skip

    def _hiding(self, walls: Walls) -> bool:
        """Whether something forbidden lies inside of the workspace."""
        barred = (*walls.forbidden, *walls.protected)
        tops = [os.path.realpath(root).rstrip("/") + "/" for root in walls.roots]
        return any(path.startswith(top) for path in barred for top in tops)

    def _has_room(self, hides: bool) -> bool:
        """Whether the command gets mounts of its own.

        In a user namespace the files of others seem to belong to nobody, which `ssh` minds; who
        may use an SSH agent gets one only when there is something to hide.
        """
        if not room.possible(_call()):
            return False
        return os.geteuid() == 0 or hides or not self.unix or not self.network

    def guard(self, walls: Walls, target: str) -> Callable[[], None]:
        """Put the walls around the calling thread, for good: call it in a thread of its own."""
        made = opened(rules(walls, os.environ, programs=False), target)

        def enter() -> None:
            fd = ruleset.make(made, self._handled())
            try:
                self._restrict(fd)
            finally:
                os.close(fd)

        return enter

    def _handled(self) -> ruleset.Handled:
        # With domains the network is its own, and empty: servers in there are nobody's business.
        silent = not self.network and not self.domains
        return ruleset.Handled(
            ruleset.ALL[min(self.version, 5)],
            _NET if self.version >= 4 and silent else 0,
            _SCOPED if self.version >= 6 else 0,
            8 if self.version < 4 else 16 if self.version < 6 else 24,
        )

    def _restrict(self, fd: int) -> None:
        libc = _call()
        if libc.prctl(_PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0:
            raise OSError(ctypes.get_errno(), "no_new_privs")
        if libc.syscall(_RESTRICT, fd, 0) != 0:
            raise OSError(ctypes.get_errno(), "landlock_restrict_self")

    def _silent(self) -> bool:
        return networks() or bool(seccomp.build(seccomp.Openings()))


def _covered(walls: Walls) -> tuple[str, ...]:
    """What is forbidden inside of the workspace, to be hidden."""
    ours = [os.path.realpath(path) for path in walls.protected]
    barred = [*(os.path.realpath(path) for path in walls.forbidden), *ours]
    return hidden(walls.roots, barred, ours)


def _net_flags(inside: bool) -> int:
    """Who is in a room has the right to make a network already."""
    return _CLONE_NEWNET | (0 if inside or os.geteuid() == 0 else _CLONE_NEWUSER)


@cache
def networks() -> bool:
    """Whether a command can be given an empty network of its own."""
    libc, flags = _call(), _net_flags(False)

    def leave() -> None:
        if libc.unshare(flags) != 0:
            raise OSError(ctypes.get_errno(), "unshare")

    return room.in_child(leave)
