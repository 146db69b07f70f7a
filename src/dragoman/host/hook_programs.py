"""The program that a hook's command runs first, as far as that can be told without a shell."""

import os
import re
import shlex

_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*=")
# What comes before a program, and says nothing of it.
_BEFORE = frozenset("cd set export exec then do { ( ! time if while".split())
# Words of the shell itself: what runs after them depends on what they find.
_OWN = frozenset(
    ". : [ [[ alias case command echo eval exit false for function hash let printf pushd read "
    "return source test trap true type ulimit umask unset until wait".split()
)
_BETWEEN = frozenset(("&&", "||", ";", "|", "&"))


def program_of(run: str) -> str:
    """The program; empty: it lies in the session's folder, or only a shell could tell."""
    lexer = shlex.shlex(run, posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    try:
        words = list(lexer)
    except ValueError:
        return ""  # a quote that does not end: the shell says so
    skipping = False  # the rest of a command such as `cd`
    for word in words:
        if word in _BETWEEN:
            skipping = False
        elif skipping or _ASSIGNMENT.match(word):
            continue
        elif word in _BEFORE:
            skipping = word in ("cd", "set", "export")
        elif word in _OWN or not re.fullmatch(r"[\w./~+@-]+", word):
            return ""
        else:
            path = os.path.expanduser(word)
            return "" if "/" in path and not os.path.isabs(path) else path
    return ""
