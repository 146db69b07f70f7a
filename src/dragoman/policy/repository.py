"""Whether git only looks here: its configuration can name programs that even `git status` runs.

Only keys that are known to run nothing are trusted, and only those of the repository count: the
owner's own configuration is the owner's choice.
"""

import os
import re
from collections.abc import Iterator

_LARGEST = 65_536
_SECTION = re.compile(r'\[\s*([A-Za-z0-9.-]+)\s*(?:"[^"\\\n]*")?\s*\]')
_KEY = re.compile(r"([A-Za-z][A-Za-z0-9-]*)\s*(?:=\s*([^\"\\#;\n]*|\"[^\"\\\n]*\"))?\s*(?:[#;].*)?")
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
    "extensions": frozenset({"objectformat", "worktreeconfig", "partialclone"}),
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


def _tame_at(inner: str) -> bool:
    if os.path.islink(inner) or not os.path.isdir(inner):
        return False  # its configuration lies elsewhere
    if os.path.lexists(f"{inner}/commondir") or os.path.lexists(f"{inner}/config.worktree"):
        return False
    try:
        with open(f"{inner}/config", encoding="utf-8") as file:
            text = file.read(_LARGEST)
    except FileNotFoundError:
        return True
    except (OSError, UnicodeError):
        return False
    return len(text) < _LARGEST and _harmless(text)


def harmless_change(old: bytes, new: bytes, *, fresh: bool) -> bool:
    """Whether a configuration only got entries that run nothing and lead nowhere else.

    `fresh`: there was none, so that remotes that it names are no others than before.
    """
    try:
        past, text = old.decode(), new.decode()
    except UnicodeError:
        return False
    led = frozenset() if fresh else _LEADING
    return len(text) < _LARGEST and _harmless(text, frozenset(_lines(past)), led)


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
) -> bool:
    """Without `past`, what was there already, nothing may run; `led` may not be new either."""
    known: frozenset[str] = frozenset()
    for where, line in _lines(text):
        if not line or line[0] in "#;":
            continue
        section = _SECTION.fullmatch(line)
        if section:
            known = _TAME.get(section.group(1).lower(), frozenset())
            if section.group(1).lower() not in _TAME and (where, line) not in past:
                return False
            continue
        if (where, line) in past and not line.endswith("\\"):
            continue
        key = _KEY.fullmatch(line)
        if key is None or key.group(1).lower() not in known or key.group(1).lower() in led:
            return False
        if "!" in (key.group(2) or ""):  # submodule.x.update = !program
            return False
    return True
