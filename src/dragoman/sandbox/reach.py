"""What a confined command can reach: the workspace, and what is needed to run programs.

A sandbox of this kind only knows what to allow. Where something forbidden lies inside of a folder
that is allowed, the folder is taken apart: everything in it is allowed but the way to the forbidden
thing, and new entries cannot be made in the folders along that way.
"""

import os
from collections.abc import Iterable, Iterator, Mapping
from typing import Literal, NamedTuple

from .launch import Walls

Kind = Literal["list", "read", "run", "write"]

_RUN = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/opt", "/nix/store", "/snap")
_READ = (
    "/etc/alternatives", "/etc/ca-certificates", "/etc/ca-certificates.conf", "/etc/debian_version",
    "/etc/environment", "/etc/fonts", "/etc/gai.conf", "/etc/gitconfig", "/etc/group",
    "/etc/host.conf",
    "/etc/hostname", "/etc/hosts", "/etc/inputrc", "/etc/java-17-openjdk", "/etc/ld.so.cache",
    "/etc/ld.so.conf", "/etc/ld.so.conf.d", "/etc/locale.alias", "/etc/locale.conf",
    "/etc/localtime", "/etc/login.defs", "/etc/machine-id", "/etc/magic", "/etc/mime.types",
    "/etc/nsswitch.conf", "/etc/os-release", "/etc/passwd", "/etc/perl", "/etc/pki",
    "/etc/profile", "/etc/profile.d", "/etc/protocols", "/etc/resolv.conf", "/etc/services",
    "/etc/shells", "/etc/ssl", "/etc/terminfo", "/etc/timezone", "/etc/vim", "/proc",
    "/run/systemd/resolve", "/sys/devices/system/cpu", "/sys/fs/cgroup", "/var/lib/dpkg",
    "/usr/share/zoneinfo",
)  # fmt: skip
_WRITE = (
    "/dev/full", "/dev/null", "/dev/ptmx", "/dev/pts", "/dev/random", "/dev/shm", "/dev/tty",
    "/dev/urandom", "/dev/zero",
)  # fmt: skip
_DEVICES = ("/dev", "/proc", "/sys")  # never as a whole: other terminals, other processes, disks
_LIBRARIES = ("bin", "lib", "lib64", "libexec", "include", "share", "shims", "version", "versions")
_OWN = (".gitconfig", ".config/git")  # in the home directory; programs complain without them


class Rule(NamedTuple):
    """One path and what may be done below it."""

    path: str
    kind: Kind


def rules(
    walls: Walls,
    env: Mapping[str, str],
    scratch: str = "",
    *,
    programs: bool = True,
    veiled: bool = False,
) -> list[Rule]:
    """Everything that is reachable, for this session and this environment.

    Without `programs`: only what file tools need. With `veiled` workspaces stay whole: what is
    forbidden inside of them is hidden by other means.
    """
    barred = tuple({os.path.realpath(path) for path in (*walls.forbidden, *walls.protected)})
    ours = tuple(os.path.realpath(path) for path in walls.protected)
    found: list[Rule] = []
    if programs:
        found += (Rule(path, "run") for path in _RUN)
        found += (Rule(path, "read") for path in _READ)
        found += (Rule(path, "write") for path in _WRITE)
        for path in _programs(env):
            found += _without(path, "run", ours)
        home = env.get("HOME") or os.path.expanduser("~")
        found += (Rule(os.path.join(home, name), "read") for name in _OWN)
    for path in walls.readable:
        found += _without(os.path.realpath(path), "run", ours)
    for path in walls.roots:
        # A workspace inside of a forbidden place is allowed; what is forbidden inside of it is not.
        real = os.path.realpath(path)
        found += _without(real, "write", () if veiled else _inside(real, barred))
    if not walls.workspace_only:
        found += _without("/", "write", (*barred, *_DEVICES))
    if scratch:
        found.append(Rule(scratch, "write"))
    return [rule for rule in dict.fromkeys(found) if os.path.exists(rule.path)]


def opened(made: list[Rule], target: str) -> list[Rule]:
    """The rules for writing one file that policy has judged.

    A folder that was taken apart lets nothing new be made in it; this one file may be.
    """
    folder = os.path.dirname(target)
    while not os.path.isdir(folder) and folder != "/":
        folder = os.path.dirname(folder)
    return [*made, Rule(folder, "write")] if Rule(folder, "list") in made else made


def _inside(path: str, barred: Iterable[str]) -> tuple[str, ...]:
    prefix = path.rstrip("/") + "/"
    return tuple(one for one in barred if one.startswith(prefix))


def _without(path: str, kind: Kind, barred: tuple[str, ...]) -> Iterator[Rule]:
    """Rules for everything below a path but what is barred."""
    if path in barred:
        return
    within = _inside(path, barred)
    if not within:
        yield Rule(path, kind)
        return
    yield Rule(path, "list")
    try:
        names = sorted(os.listdir(path))
    except OSError:
        return  # not readable for us either
    for name in names:
        below = os.path.join(path, name)
        if not os.path.islink(below):
            yield from _without(below, kind, within)


def _programs(env: Mapping[str, str]) -> Iterator[str]:
    """The folders of PATH and the libraries beside them."""
    home = os.path.realpath(env.get("HOME") or os.path.expanduser("~"))
    for folder in env.get("PATH", "").split(os.pathsep):
        if not os.path.isabs(folder):
            continue
        real = os.path.realpath(folder)
        if real in ("/", home):
            continue
        yield real
        prefix, name = os.path.split(real)
        if name not in ("bin", "sbin", "shims") or prefix in ("/", home):
            continue
        personal = prefix == os.path.join(home, ".local")  # its `share` holds people's data
        for library in _LIBRARIES:
            if not (personal and library in ("share", "versions")):
                yield os.path.join(prefix, library)
