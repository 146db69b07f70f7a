"""Bubblewrap: a file system of its own for each command, made of what it may reach."""

import os
from collections.abc import Sequence
from functools import cached_property

from msgspec.structs import replace

from dragoman.engine.faults import Refused
from dragoman.engine.ports import ToolEnv
from dragoman.observe.programs import find

from . import room, seccomp
from .launch import Launch, Sandbox, Sign, Walls
from .reach import Rule, covers, rules
from .veil import hidden

File = tuple[int, int]  # device and inode


class Bubblewrap(Sandbox):
    """Runs commands under `bwrap` (`launch.Confine`). In-process tools have only policy."""

    name = "bubblewrap"

    @cached_property
    def program(self) -> str:
        return find("bwrap")

    def describe(self) -> str:
        parts = ["bubblewrap: files, processes, terminals and shared memory"]
        if seccomp.build(seccomp.Openings()):
            parts.append("system calls" if self.unix else "system calls and Unix sockets")
        if self.domains:
            parts.append(f"network to {', '.join(self.domains)}")
        elif not self.network:
            parts.append("no network")
        return ", ".join(parts)

    def confine(self, launch: Launch, env: ToolEnv, walls: Walls) -> Launch:
        return self._put_up(launch, walls, None)

    def _put_up(self, launch: Launch, walls: Walls, steady: dict[str, File] | None) -> Launch:
        """The launch; `steady` is what an earlier try found, empty for the second one."""
        if not self.program:
            raise Refused("bwrap is not installed.", "Install bubblewrap, or choose landlock.")
        argv = [self.program, "--die-with-parent", "--unshare-pid", "--unshare-ipc"]
        argv += ["--unshare-uts", "--unshare-cgroup-try", "--new-session"]
        argv += ["--cap-drop", "ALL"]
        outlet = self.outlet()
        if not self.network and outlet is None:
            argv.append("--unshare-net")
        scratch = launch.env.get("TMPDIR", "")
        made = rules(walls, launch.env, veiled=True, whole=True)
        if steady is not None:  # names were removed before bubblewrap came to them
            now = _listed(made)
            made = [rule for rule in made if not steady
                    or now.get(rule.path) == steady.get(rule.path)]  # fmt: skip
            steady = steady or now
        # The whole first, then what is below it; what can be written over what can be read.
        whole = any(rule.path == "/" and rule.kind != "list" for rule in made)
        written = {rule.path for rule in made if rule.kind == "write" and rule.path != "/"}
        for rule in sorted(made, key=lambda rule: (rule.path != "/", rule.kind == "write")):
            if rule.path.startswith(("/dev", "/proc")) or rule.kind == "list":
                continue
            if whole and os.path.islink(rule.path):
                continue  # there already, and nothing can be put over a link
            if rule.kind == "write" and any(rule.path.startswith(f"{one}/") for one in written):
                continue  # a mount of its own could not be replaced by another file
            way = "--bind-try" if rule.kind == "write" else "--ro-bind-try"
            argv += [way, rule.path, rule.path]
        tops = (*walls.roots, *(path for path in walls.writable if Rule(path, "write") in made))
        # What is forbidden inside of what can be written, and inside of what can be read.
        covered = tuple(dict.fromkeys((*_covered(walls, tops), *covers(walls, made))))
        places = tops if walls.workspace_only else (*tops, *written)
        sealed = [
            path for path in walls.sealed if any(path.startswith(f"{top}/") for top in places)
        ]
        bind = ["--bind", scratch, scratch] if scratch and os.path.isdir(scratch) else []
        inside = any(os.path.realpath(scratch).startswith(f"{path}/") for path in covered)
        argv += [] if inside else bind  # one around the workspace must not uncover anything
        pinned = {*room.ways(walls.locked, tops), *room.ways((*covered, *sealed), places)}
        for path in sorted(pinned, key=len):
            argv += ["--bind-try", path, path]
        for path in walls.locked:  # a repository stays where it is, its configuration as it is
            way = "--bind-try" if room.pins(path) else "--ro-bind-try"
            argv += [way, path, path]
        for path in sealed:
            argv += ["--ro-bind-try", path, path]
        for path in covered:
            argv += ["--tmpfs", path] if os.path.isdir(path) else ["--ro-bind", "/dev/null", path]
        argv += bind if inside else []
        for path in covered:  # nothing can be put there that looks as if it had been there
            argv += ["--remount-ro", path] if os.path.isdir(path) else []
        # Read-only: who is root needs no power to write what the kernel does with /proc/sys.
        argv += ["--dev", "/dev", "--proc", "/proc", "--remount-ro", "/proc"]
        argv += ["--chdir", launch.cwd]
        program = seccomp.build(seccomp.Openings(self.unix, own_ipc=True))
        bounded = self.limits.prepare()
        fd = seccomp.as_file(program) if program else -1
        if program:
            argv += ["--seccomp", str(fd)]
        sign = Sign()
        argv += ["--json-status-fd", str(sign.fd)]
        argv += sign.counting(launch) if launch.leaves else ["--", *launch.argv]
        before = launch.preexec

        def preexec() -> None:
            if before is not None:
                before()
            bounded.join()
            if outlet is not None:  # in a network of its own, which bubblewrap takes over
                room.own_network()
                outlet.enter()

        confined = self.opened(launch, fd, bounded, outlet)
        return replace(
            confined, argv=tuple(argv), preexec=preexec, locks=True,
            keep=(*confined.keep, sign.fd, *([sign.tally] if launch.leaves else [])),
            again=lambda: self._put_up(launch, walls, steady or {}), sign=sign,
            listed=any(rule.kind == "list" for rule in made),
        )  # fmt: skip


def _listed(made: Sequence[Rule]) -> dict[str, File]:
    """Which files the names are that were found in folders that are taken apart."""
    apart = {rule.path for rule in made if rule.kind == "list"}
    found: dict[str, File] = {}
    for path in {rule.path for rule in made if os.path.dirname(rule.path) in apart}:
        try:
            it = os.lstat(path)
            found[path] = (it.st_dev, it.st_ino)
        except OSError:
            found[path] = (0, 0)  # gone already
    return found


def _covered(walls: Walls, tops: Sequence[str]) -> tuple[str, ...]:
    """What is to be hidden: in a workspace also what is not there, so that it is not made."""
    ours = [os.path.realpath(path) for path in walls.protected]
    roots = tuple(os.path.realpath(root).rstrip("/") + "/" for root in walls.roots)
    barred = [os.path.realpath(path) for path in walls.forbidden]
    barred = [path for path in barred if path.startswith(roots) or os.path.lexists(path)]
    return hidden(tops, [*barred, *ours], ours)
