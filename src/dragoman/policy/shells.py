"""Which shell runs commands, and what it must not find in its environment.

`bash` where there is one, else `sh`. What the judge reads is the part of the language that `bash`
and the POSIX shells read alike, so its word holds for either; nothing here changes that reading:
no start-up files, no functions, options or aliases from the environment, no relative PATH.
"""

import os
from collections.abc import Mapping
from functools import cache

_BASH = ("/bin/bash", "/usr/bin/bash", "/usr/local/bin/bash", "/opt/homebrew/bin/bash",
         "/run/current-system/sw/bin/bash")  # fmt: skip
# Variables that make a shell run or read something else than its command says.
_CHANGING = frozenset(
    """
    BASH_ENV ENV SHELLOPTS BASHOPTS POSIXLY_CORRECT PS4 IFS CDPATH GLOBIGNORE BASH_XTRACEFD
    PROMPT_COMMAND EXECIGNORE FIGNORE BASH_LOADABLES_PATH BASH_COMPAT FUNCNEST GLOBSORT
    """.split()
)


@cache
def shell() -> tuple[str, ...]:
    """The program that runs a command, with its options; the command comes last."""
    for path in _BASH:
        if os.access(path, os.X_OK):
            return (path, "--norc", "--noprofile", "-c")
    return ("/bin/sh", "-c")


def plain(env: Mapping[str, str]) -> dict[str, str]:
    """An environment without what changes how a shell reads its command."""
    kept = {
        key: value
        for key, value in env.items()
        if key not in _CHANGING and not key.startswith("BASH_FUNC_") and "()" not in key
        and not value.startswith("() {")
    }  # fmt: skip
    folders = kept.get("PATH", os.defpath).split(os.pathsep)
    kept["PATH"] = os.pathsep.join(one for one in folders if os.path.isabs(one)) or os.defpath
    return kept
