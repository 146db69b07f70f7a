"""What a confined command can reach: the workspace, and what is needed to run programs.

A sandbox of this kind only knows what to allow. Where something forbidden lies inside of a folder
that is allowed, the folder is taken apart: everything in it is allowed but the way to the forbidden
thing, and new entries cannot be made in the folders along that way.
"""

import contextlib
import os
import stat
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache, lru_cache
from typing import Literal, NamedTuple

from .launch import Walls
from .room import above

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
# Folders of package managers, and the program that has one (none: everybody may have it).
_CACHES = {
    ".cache": "",
    "dragoman-commands": "",
    ".npm": "npm",
    ".cargo": "cargo",
    "go": "go",
    ".m2": "mvn",
}
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
    whole: bool = False,
) -> list[Rule]:
    """Everything that is reachable, for this session and this environment.

    Without `programs`: only what file tools need. With `veiled` workspaces stay whole: what is
    forbidden inside of them is hidden by other means. With `whole` that is so for all that is read.
    """
    barred = (*walls.forbidden, *walls.protected)
    ours = tuple(walls.protected)
    # What is not there cannot be read.
    needed = _needed()
    kept = tuple(path for path in barred if path not in needed and _is_there(path))
    sealed = tuple(path for path in walls.sealed if _is_there(path))
    found: list[Rule] = []
    ready: tuple[Rule, ...] = ()
    if programs:
        ready = _to_run(() if whole else kept, tuple(walls.legible), env)
        # What is sealed and not there must not be made either: ~/.cargo/config, ~/go/bin.
        closed = (*kept, *walls.sealed)
        for path in walls.writable:
            if not _within(path, closed) and _make(path, walls.writable, env):
                away = () if whole and coverable(path, walls) else _inside(path, closed)
                found += _without(path, "write", away)
    if walls.reads_outside:
        found += _without("/", "run", () if whole else (*barred, "/dev", "/proc"))
    for path in walls.readable:
        away = () if whole else (*ours, *_inside(path, kept))
        found += _without(os.path.realpath(path), "run", away)
    for path in walls.roots:
        # A workspace inside of a forbidden place is allowed; what is forbidden inside of it is not.
        real = os.path.realpath(path)
        closed = _inside(real, sealed)
        found += _without(real, "write", () if veiled else (*_inside(real, barred), *closed))
        for below in () if veiled else closed:
            found += _without(below, "run", _inside(below, barred))
    if not walls.workspace_only and whole:
        closed = _uncoverable((*barred, *walls.sealed), [rule.path for rule in (*ready, *found)])
        found += _without("/", "write", (*closed, *_DEVICES))
        found.append(Rule("/", "run"))
    elif not walls.workspace_only:
        found += _without("/", "write", (*barred, *sealed, *_DEVICES))
        for path in sealed:
            found += _without(path, "run", _inside(path, kept))
    if scratch:
        found.append(Rule(scratch, "write"))
    return [*ready, *(rule for rule in dict.fromkeys(found) if os.path.exists(rule.path))]


def _is_there(path: str) -> bool:
    """As `os.path.lexists`, in a third of the time where it is not: there are many to ask for."""
    return os.access(path, os.F_OK, follow_symlinks=False)


def coverable(path: str, walls: Walls) -> bool:
    """Whether all in a folder that is not to be written can be hidden, or locked: it is there."""
    return all(map(_is_there, _inside(path, (*walls.forbidden, *walls.sealed))))


def _uncoverable(barred: tuple[str, ...], used: Sequence[str]) -> tuple[str, ...]:
    """What nothing can be put over: it is not there, a link, or used itself or in parts.

    Folders may have thousands of entries, so they are taken apart on the way to these alone.
    """
    kept = {path for path in barred
            if not _is_there(path) or os.path.islink(path) or path in _needed()
            or any(one == path or one.startswith(f"{path}/") for one in used)}  # fmt: skip
    over = [path for path in barred if path not in kept]
    return tuple(path for path in dict.fromkeys(barred) if path in kept and not _within(path, over))


def covers(walls: Walls, made: Iterable[Rule]) -> list[str]:
    """What has to be hidden where rules were made with `whole`: all that is forbidden and there."""
    paths = [rule.path for rule in made if rule.kind != "list" and rule.path != "/"]
    needed = _needed()
    barred = [path for path in (*walls.forbidden, *walls.protected)
              if path not in needed and os.path.lexists(path)]  # fmt: skip
    with contextlib.suppress(OSError):  # no such folder here
        barred += (entry.path for entry in os.scandir("/etc") if _private(entry.path))
    return [path for path in dict.fromkeys(barred)
            if not os.path.islink(path)
            and not any(one == path or one.startswith(f"{path}/") for one in paths)]  # fmt: skip


@cache
def _needed() -> frozenset[str]:
    """Where programs lie: they run whatever is forbidden, though nobody may look around there."""
    return frozenset(os.path.realpath(path) for path in (*_RUN, *_READ))


_known: dict[tuple[object, ...], tuple[tuple[tuple[str, int], ...], tuple[Rule, ...]]] = {}
_KNOWN = 16
SETTLED = 1_000_000_000  # nanoseconds


def _to_run(
    kept: tuple[str, ...], legible: tuple[str, ...], env: Mapping[str, str]
) -> tuple[Rule, ...]:
    """What is needed to run programs; made anew when a folder that was taken apart has changed."""
    home = env.get("HOME") or os.path.expanduser("~")
    key = (kept, legible, env.get("PATH"), home)
    known = _known.get(key)
    if known is not None and all(_stamp(path) == stamp for path, stamp in known[0]):
        return known[1]
    began = time.time_ns()
    found: list[Rule] = []
    bases: tuple[tuple[Kind, tuple[str, ...]], ...] = (
        ("run", _RUN), ("read", _READ), ("write", _WRITE),
        ("run", tuple(_programs(env))), ("run", legible),
        ("read", tuple(os.path.join(home, name) for name in _OWN)),
    )  # fmt: skip
    for kind, places in bases:
        for path in filter(os.path.exists, places):
            found += _without(path, kind, _inside(path, kept))
    made = tuple(rule for rule in dict.fromkeys(found) if os.path.exists(rule.path))
    # Below what is allowed as a whole nothing needs a rule of its own.
    whole = {rule.path for rule in made if rule.kind == "run"}
    made = tuple(
        rule for rule in made
        if rule.kind == "write"
        or not (_covered(rule.path, whole) or (rule.kind == "read" and rule.path in whole))
    )  # fmt: skip
    stamps = tuple((rule.path, _stamp(rule.path)) for rule in made if rule.kind == "list")
    # A change as fresh as this may have come after the listing, or be followed by one unseen.
    if all(stamp < began - SETTLED for _, stamp in stamps):
        if len(_known) >= _KNOWN:
            _known.pop(next(iter(_known)))
        _known[key] = (stamps, made)
    return made


def _covered(path: str, whole: set[str]) -> bool:
    return any(folder in whole for folder in above(path) if folder != "/")


def _stamp(path: str) -> int:
    try:
        return os.stat(path).st_mtime_ns
    except OSError:
        return 0


def _make(path: str, writable: Iterable[str], env: Mapping[str, str]) -> bool:
    """Make the folder of a package manager that is installed, which it could not make by itself.

    Says whether the path is there now.
    """
    if _is_there(path):
        return True
    above, name = os.path.split(path)
    wanted = _CACHES.get(name)
    if not os.path.isdir(above) and name != "dragoman-commands":
        return False
    nested = above in writable  # ~/.cargo/registry in a ~/.cargo that is taken apart
    if nested or wanted == "" or (wanted and _installed(wanted, env.get("PATH"), _minute())):
        with contextlib.suppress(OSError):  # somebody else's folder: the command will say so
            os.makedirs(path, 0o700, exist_ok=True)
    return _is_there(path)


def _minute() -> int:
    return int(time.monotonic() // 60)


@lru_cache(256)
def _installed(program: str, path: str | None, minute: int) -> bool:
    """Whether a program is there; looked for once a minute, since most are not."""
    import shutil  # takes a while to load, and is not needed before the first command

    return bool(shutil.which(program, path=path))


def opened(made: list[Rule], target: str) -> list[Rule]:
    """The rules for writing one file that policy has judged.

    A folder that was taken apart lets nothing new be made in it; this one file may be.
    """
    folder = os.path.dirname(target)
    while not os.path.isdir(folder) and folder != "/":
        folder = os.path.dirname(folder)
    return [*made, Rule(folder, "write")] if Rule(folder, "list") in made else made


def _within(path: str, barred: Iterable[str]) -> bool:
    return any(path == one or path.startswith(f"{one}/") for one in barred)


def _inside(path: str, barred: Iterable[str]) -> tuple[str, ...]:
    prefix = path.rstrip("/") + "/"
    return tuple([one for one in barred if one.startswith(prefix)])


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
        if not os.path.islink(below) and not (path == "/etc" and _private(below)):
            yield from _without(below, kind, within)


def _private(path: str) -> bool:
    """Whether the system keeps something from ordinary users: so do we from commands of root."""
    try:
        return not os.lstat(path).st_mode & stat.S_IROTH
    except OSError:
        return True


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
        yield os.path.join(prefix, "pyvenv.cfg")  # without it, a virtual environment does not start
        personal = prefix == os.path.join(home, ".local")  # its `share` holds people's data
        for library in _LIBRARIES:
            if not (personal and library in ("share", "versions")):
                yield os.path.join(prefix, library)
