"""Whether git only looks here: its configuration can name programs that even `git status` runs.

Only keys that are known to run nothing are trusted, and only those of the repository count: the
owner's own configuration is the owner's choice.
"""

import os
import re
from collections.abc import Iterator

from .gitlinks import linked

_LARGEST = 65_536
_SECTION = r'\[\s*([A-Za-z0-9.-]+)\s*(?:"[^"\\\n]*")?\s*\]'
_KEY = r"([A-Za-z][A-Za-z0-9-]*)\s*(?:=\s*([^\"\\#;\n]*|\"[^\"\\\n]*\"))?\s*(?:[#;].*)?"
_TAME = {
    "core": frozenset(
        "repositoryformatversion filemode bare logallrefupdates ignorecase precomposeunicode "
        "symlinks autocrlf eol safecrlf quotepath abbrev".split()
    ),
    "remote": frozenset("url fetch pushurl push tagopt prune mirror".split()),
    "branch": frozenset("remote merge rebase description pushremote".split()),
    "user": frozenset("name email signingkey".split()),
    "submodule": frozenset("url active update".split()),
    "pull": frozenset("rebase ff".split()),
    "push": frozenset("default autosetupremote".split()),
    "init": frozenset({"defaultbranch"}),
    "commit": frozenset({"gpgsign"}),
    "color": frozenset("ui status diff branch".split()),
    "gc": frozenset({"auto"}),
    "extensions": frozenset({"worktreeconfig"}),
    "advice": frozenset({"detachedhead"}),
}


def tame(cwd: str) -> bool:
    """Whether git, called in this directory, runs nothing but itself when it looks."""
    found = os.path.realpath(cwd)
    while True:
        inner = os.path.join(found, ".git")
        if os.path.lexists(inner):
            return _tame_at(inner)
        if os.path.lexists(f"{found}/HEAD") and os.path.lexists(f"{found}/objects"):
            return False  # a bare repository that anybody may have put there
        above = os.path.dirname(found)
        if above == found:
            return True  # no repository: git says so
        found = above


def history(root: str, home: str) -> tuple[str, ...]:
    """What of a repository git must read to work in a workspace, where it lies outside of that.

    Nothing where what leads there may have been put there. A repository that holds the home
    directory is no project's: whoever works in a folder of it did not mean that.
    """
    top = root
    while not os.path.lexists(inner := f"{top}/.git"):
        above = os.path.dirname(top)
        if above == top:
            return ()
        top = above
    if os.path.islink(inner):
        return ()
    if os.path.isdir(inner):
        return () if top == root or f"{home}/".startswith(f"{top}/") else (inner,)
    try:
        entry = os.path.realpath(os.path.join(top, _first_line(inner).removeprefix("gitdir: ")))
        back = _first_line(f"{entry}/gitdir")
    except (OSError, UnicodeError, ValueError):
        return ()
    # A repository says itself which worktrees it has: a file in a workspace alone leads nowhere.
    worktrees = os.path.dirname(entry)
    common = os.path.dirname(worktrees)
    known = os.path.basename(worktrees) == "worktrees" and _taken(common)
    own = os.path.realpath(os.path.join(entry, back)) == inner
    return (common, inner) if known and own else ()


def is_top(cwd: str) -> bool:
    """Whether git takes a folder's own `.git`, so that nothing else in there can be a repository.

    Elsewhere a few files with the right names make a bare one, whose configuration counts.
    """
    return os.path.isdir(os.path.join(cwd, ".git"))


def _tame_at(inner: str, deep: int = 0, known: frozenset[str] = frozenset()) -> bool:
    if os.path.islink(inner) or not os.path.isdir(inner):
        return False  # its configuration lies elsewhere
    if not _taken(inner):
        return False  # git goes on further up, to another one
    if os.path.lexists(f"{inner}/commondir") or os.path.lexists(f"{inner}/config.worktree"):
        return False
    if os.path.lexists(f"{inner}/hooks/post-index-change"):
        return False  # looking brings the index up to date, and that has a hook
    try:
        with open(f"{inner}/config", encoding="utf-8") as file:
            text = file.read(_LARGEST)
    except FileNotFoundError:
        text = ""
    except (OSError, UnicodeError):
        return False
    if len(text) >= _LARGEST or not _harmless(text, allowed=known):
        return False
    # The submodules, in which git looks too, run nothing either. Where its folder is not beside it,
    # nobody knows where they lie.
    return _links_tame(inner, os.path.dirname(inner), deep, os.path.basename(inner) == ".git")


def _taken(inner: str) -> bool:
    """Whether git takes this for a repository."""
    try:
        with open(f"{inner}/HEAD", "rb") as file:
            head = file.read(4096)
    except OSError:
        return False
    known = head.startswith(b"ref: refs/") or re.fullmatch(
        rb"[0-9a-f]{40}(?:[0-9a-f]{24})?\s*", head
    )
    return bool(known) and all(os.path.isdir(f"{inner}/{name}") for name in ("objects", "refs"))


_NESTED = 3  # submodules of submodules that are followed


def worktree_tame(inner: str, top: str) -> bool:
    """Whether a worktree says nothing of its own to git; `inner` lies in its repository."""
    if os.path.lexists(f"{inner}/config.worktree"):
        return False
    try:
        common, files = (_first_line(f"{inner}/{name}") for name in ("commondir", "gitdir"))
    except (OSError, UnicodeError):
        return False
    own = os.path.realpath(os.path.join(inner, files)) == f"{top}/.git"
    return own and common == "../.." and _links_tame(inner, top, 0, True)


def _first_line(path: str) -> str:
    with open(path, encoding="utf-8") as file:
        return file.read(4096).rstrip("\n")


def _links_tame(inner: str, top: str, deep: int, beside: bool) -> bool:
    try:
        links = linked(inner)
    except ValueError:
        return False
    if not links:
        return True
    if deep >= _NESTED or not beside:
        return False
    return all(_linked_tame(top, inner, path, deep) for path in links)


def _linked_tame(top: str, inner: str, path: str, deep: int) -> bool:
    place = os.path.join(top, path, ".git")
    if not os.path.lexists(place):
        return True  # not checked out
    if os.path.isdir(place) and not os.path.islink(place):
        return _tame_at(place, deep + 1)
    try:
        with open(place, encoding="utf-8") as file:
            said = file.read(4096).removeprefix("gitdir:").strip()
    except (OSError, UnicodeError):
        return False
    real = os.path.realpath(os.path.join(top, path, said))
    modules = os.path.realpath(f"{inner}/modules")
    return real.startswith(f"{modules}/") and _tame_at(real, deep + 1, frozenset({"worktree"}))


def harmless_change(old: bytes, new: bytes, *, fresh: bool, submodule: bool = False) -> bool:
    """Whether a configuration only got entries that run nothing and lead nowhere else.

    `fresh`: there was none, so that remotes that it names are no others than before.
    """
    try:
        past, text = old.decode(), new.decode()
    except UnicodeError:
        return False
    led = frozenset() if fresh else _LEADING
    allowed = frozenset({"worktree"} if submodule else ())
    return len(text) < _LARGEST and _harmless(text, frozenset(_lines(past)), led, allowed)


_LEADING = frozenset({"url", "pushurl", "pushremote", "push", "worktree"})  # where things go


def _lines(text: str) -> Iterator[tuple[str, str]]:
    """Each line of a configuration with the section that it stands in."""
    section = ""
    for line in text.splitlines():
        line = line.strip()
        if line.startswith("["):
            section = line
        yield section, line


def _harmless(
    text: str,
    past: frozenset[tuple[str, str]] = frozenset(),
    led: frozenset[str] = frozenset(),
    allowed: frozenset[str] = frozenset(),
) -> bool:
    """Without `past`, what was there already, nothing may run; `led` may not be new either.

    `allowed` are further keys of `core`.
    """
    known: frozenset[str] = frozenset()
    for where, line in _lines(text):
        if not line or line[0] in "#;":
            continue
        section = re.fullmatch(_SECTION, line)
        if section:
            name = section.group(1).lower()
            known = _TAME.get(name, frozenset()) | (allowed if name == "core" else frozenset())
            if name not in _TAME and (where, line) not in past:
                return False
            continue
        if (where, line) in past and not line.endswith("\\"):
            continue
        key = re.fullmatch(_KEY, line)
        if key is None or key.group(1).lower() not in known or key.group(1).lower() in led:
            return False
        if "!" in (key.group(2) or ""):  # submodule.x.update = !program
            return False
    return True
