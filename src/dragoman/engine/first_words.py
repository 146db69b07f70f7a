"""The words of a command that an answer may be remembered by: "commands that begin with ...".

Enough words that the rest cannot make something else of it: a program with verbs is named with its
verb, an interpreter with its script. A program whose business is to run others, or to destroy, is
not remembered by its name at all.
"""

from collections.abc import Sequence

_VERBS = frozenset(
    "git npm pnpm yarn bun cargo go docker podman kubectl helm pip pip3 uv poetry pdm hatch conda "
    "apt apt-get dnf brew systemctl journalctl terraform gh glab aws gcloud az make just task tox "
    "nox gradle mvn dotnet rustup nvm pyenv rbenv bundle gem composer mix rails django-admin "
    "flutter dart swift zig bazel ninja meson cmake hg svn".split()
)
_DEEPER = frozenset({"run", "exec", "x", "tool", "script", "run-script", "compose"})
_SCRIPTS = frozenset("python python3 node deno ruby perl php lua Rscript java npx bunx uvx".split())
_NEVER = frozenset(
    "sh bash dash zsh ksh fish busybox env xargs sudo su doas pkexec nohup nice ionice setsid time "
    "timeout watch stdbuf script expect find fd parallel eval exec source . command builtin trap "
    "alias export set ssh scp rsync nc ncat socat telnet curl wget ftp rm rmdir shred dd mkfs "
    "truncate mv chmod chown chgrp ln kill pkill killall mount umount crontab at batch systemd-run "
    "awk gawk mawk sed ed vi vim nvim emacs nano tee install gdb strace ltrace unshare nsenter "
    "chroot flock screen tmux tar zip unzip git-shell psql mysql sqlite3".split()
)


def first_words(commands: Sequence[tuple[str, ...]]) -> tuple[str, ...]:
    """The words by which a whole command can be remembered; empty when there are none."""
    found = {_of(argv) for argv in commands}
    return found.pop() if len(found) == 1 else ()


def _of(argv: tuple[str, ...]) -> tuple[str, ...]:
    if not argv or argv[0] in _NEVER or argv[0].rpartition("/")[2] in _NEVER or "=" in argv[0]:
        return ()
    name, second = argv[0], argv[1] if len(argv) > 1 else ""
    if name in _SCRIPTS:
        if second == "-m" and len(argv) > 2:
            return argv[:3]
        return argv[:2] if second and not second.startswith("-") else ()
    if name not in _VERBS:
        return (name,)
    if not second or second.startswith("-"):
        return argv if len(argv) <= 2 and name == "make" else ()
    if second in _DEEPER:
        return argv[:3] if len(argv) > 2 and not argv[2].startswith("-") else ()
    return argv[:2]
