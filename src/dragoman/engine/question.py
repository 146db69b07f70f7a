"""Makes the question about a tool call: what would run, what it would change, what can be kept.

A question is whole or it is not asked: what is too large to be shown is refused. Its digest stands
for the arguments as they will run, the folder they run in and the content of every file that the
difference was made against; `digest_of` is computed again just before the call runs.
"""

import os
from collections.abc import Sequence
from typing import Protocol

import msgspec

from .ask import Access, Ask, Scope, Seen
from .asks import Asks
from .content import ToolCall
from .events import Asked, encode_body
from .faults import Refused
from .gear import Gear
from .ids import token
from .ledger import Ledger
from .ports import AgentProfile, Judgement, Preview, Reach, ToolEnv
from .rules import SHELLS, access_of, digest_of
from .shown import COMMANDS
from .visible import many, on_a_line
from .work import Underway


class CallSite(Protocol):
    """The turn that a call belongs to, as far as permission goes (`engine/calls.py`)."""

    ledger: Ledger
    asks: Asks
    gear: Gear
    turn: Underway
    profile: AgentProfile

    def env(
        self, call_id: str, reach: Sequence[Reach] = (), seen: Sequence[Seen] | None = None
    ) -> ToolEnv: ...


MOST = 12 * 1024 * 1024  # bytes of a question on the wire
ROUNDS = 3  # how often a call is asked about when its files change meanwhile
_WIDE = frozenset({"", "/", os.path.expanduser("~")})  # too wide to be offered as a folder
_VERB: dict[Access, str] = {"read": "reading", "write": "writing"}
_WORDS = 200  # characters of a command that a scope repeats
# The words of a command that an answer may be remembered by: enough of them that the rest cannot
# make something else of it. A program with verbs is named with its verb, an interpreter with its
# script. A program whose business is to run others, or to destroy, is not remembered by its name.
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


def question(
    calls: CallSite,
    call: ToolCall,
    judgement: Judgement,
    looked: Preview,
    summary: str,
    again: str = "",
) -> Ask:
    """The question about a call. Raises Refused when nobody could be shown all of it."""
    state = calls.ledger.state
    reason = f"{again} {judgement.reason}".strip()
    seconds = calls.profile.approval_timeout
    now = calls.ledger.home.clock.now_ms()
    ask = Ask(
        id=f"ask_{token()}",
        session=state.id,
        kind="tool",
        title=f"Approve {call.name}?",
        at=now,
        turn=calls.turn.id,
        call_id=call.id,
        tool=call.name,
        args=call.args or {},
        summary=summary,
        risk=judgement.risk,
        reason=reason,
        expires_at=now + int(seconds * 1000) if seconds > 0 else None,
        cwd=state.cwd,
        changes=looked.changes,
        digest=digest_of(call, state.cwd, looked.seen, judgement.reach),
        scopes=() if judgement.firm else scopes_of(call, judgement),
        firm=judgement.firm,
    )
    try:
        size = len(msgspec.json.encode(ask))
    except UnicodeEncodeError:  # lone surrogates, which are mended when it is stored
        size = len(encode_body(Asked(ask)))
    if size > MOST:
        raise Refused(
            f"This call of {call.name} is too large to be shown to a human: {size} bytes; the "
            f"limit is {MOST}.",
            "Do it in smaller steps.",
        )
    return ask


def scopes_of(call: ToolCall, judgement: Judgement) -> tuple[Scope, ...]:
    """What can be remembered about a call; the words are the call's own.

    The first is what an answer for always means that names none: this exact command, this file;
    of a tool that neither runs commands nor touches files, the tool.
    """
    outside = {(one.path, one.folder, one.write) for one in judgement.reach}
    if call.name in SHELLS or not (judgement.files or outside):
        exact = _exact(call, judgement.reach)
        if outside:
            return (exact,)
        what = "every command, whatever it does" if call.name in SHELLS else call.name
        tool = Scope("tool", "tool", f"this tool: {on_a_line(what)}")
        if call.name == "web_fetch" and judgement.commands:
            (host,) = judgement.commands[0]
            pages = Scope("host", "prefix", f"all pages of {on_a_line(host)}", argv=(host,))
            return (pages, exact, tool)
        if call.name in SHELLS or COMMANDS & (call.args or {}).keys():
            return (exact, *_first_words(judgement), tool)
        return (tool, exact)
    if not outside:
        access: Access = judgement.access
        found = _files(judgement.files, _folder(judgement.files), access)
        found.append(Scope("tool", "tool", f"this tool: {on_a_line(call.name)}"))
        return tuple(found)
    writes = any(write for _, _, write in outside)
    paths = tuple(path for path, _, _ in sorted(outside))
    folders = {folder for _, folder, _ in outside}
    folder = folders.pop() if len(folders) == 1 else ""
    return tuple(_files(paths, folder or _folder(paths), "write" if writes else "read"))


def _exact(call: ToolCall, reach: Sequence[Reach]) -> Scope:
    command = (call.args or {}).get("command")
    if not isinstance(command, str) or not command.strip():
        words = f"{on_a_line(call.name)} with exactly these arguments"
    else:
        more = len(command) - _WORDS
        rest = f"… ({many(more, 'more character')})" if more > 0 else ""
        words = f"this exact command: {on_a_line(command[:_WORDS])}{rest}"
    needs = sorted({(one.path, access_of(one)) for one in reach})
    words += "".join(f", {_VERB[access]} {on_a_line(path)}" for path, access in needs)
    return Scope("exact", "exact", words, reach=tuple(needs))


def _first_words(judgement: Judgement) -> list[Scope]:
    argv = first_words(judgement.commands)
    if not argv:
        return []
    from shlex import join

    return [
        Scope("prefix", "prefix", f"commands that begin with: {on_a_line(join(argv))}", argv=argv)
    ]


def _folder(paths: Sequence[str]) -> str:
    folders = [path if os.path.isdir(path) else os.path.dirname(path) for path in paths]
    return os.path.commonpath(folders)


def _files(paths: Sequence[str], folder: str, access: Access) -> list[Scope]:
    verb = _VERB[access]
    found: list[Scope] = []
    if len(set(paths)) == 1 and not os.path.isdir(paths[0]):
        words = f"{verb} this file: {on_a_line(paths[0])}"
        found.append(Scope("file", "file", words, path=paths[0], access=access))
    if folder not in _WIDE:
        words = f"{verb} files below {on_a_line(folder)}"
        found.append(Scope("folder", "folder", words, path=folder, access=access))
    return found


def first_words(commands: Sequence[tuple[str, ...]]) -> tuple[str, ...]:
    """The words by which a whole command can be remembered; empty when there are none."""
    found = {_named_by(argv) for argv in commands}
    return found.pop() if len(found) == 1 else ()


def _named_by(argv: tuple[str, ...]) -> tuple[str, ...]:
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
