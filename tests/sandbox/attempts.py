"""Ways out by the tools themselves. What a command can try is in `dragoman.sandbox.attacks`.

An attempt has worked when the secret shows up in its output, when anything outside of the working
directory has changed, when the victim process is gone, or when it prints ESCAPED.
`real`: it is harmless to run without a sandbox, and works there, which shows that it is no dud.
"""

from typing import Any, NamedTuple


class Attempt(NamedTuple):
    name: str
    what: str
    command: str = ""
    tool: str = "bash"
    args: dict[str, Any] = {}  # of another tool than bash
    real: bool = True
    before: str = ""  # run without any walls first
    root: bool = False  # only root gets anywhere with it, walls or not


def python(code: str) -> str:
    return "{python} -c '" + code + "'"


_BOMB = """
import os, time
n = 0
try:
    while n < 3000:
        if os.fork() == 0:
            time.sleep(20); os._exit(0)
        n += 1
except OSError as e:
    print("fork:", e.strerror)
print("ESC" + "APED" if n > 200 else "stopped")
"""

ATTEMPTS: tuple[Attempt, ...] = (
    # --- the environment of a command, and outliving it ---
    Attempt("own environment", "print the environment", "env; exit 1"),
    Attempt("background", "leave a process behind",
            "sleep 31 >/dev/null 2>&1 & echo $! > left; exit 1", real=False),
    Attempt("background, setsid", "leave one behind in a session of its own",
            "setsid sh -c 'echo $$ > left; exec sleep 31' >/dev/null 2>&1 & sleep 0.3; exit 1",
            real=False),
    Attempt("background, hidden", "the same with an empty environment, ignoring SIGTERM",
            "env -i setsid sh -c 'trap \"\" TERM; echo $$ > left; exec sleep 31' >/dev/null 2>&1 & "
            "sleep 0.3; exit 1", real=False),
    Attempt("fork bomb", "fill the machine with processes", python(_BOMB), real=False),
    # --- file tools ---
    Attempt("write: absolute", "the tool write with an absolute path", tool="write",
            args={"path": "{outside}/new.txt", "content": "x"}, real=False),
    Attempt("write: link", "the tool write through a link", tool="write",
            before="ln -s {outside} link", args={"path": "link/new.txt", "content": "x"},
            real=False),
    Attempt("write: configuration", "the tool write on our configuration", tool="write",
            args={"path": "{config}/config.toml", "content": "x"}, real=False),
    Attempt("edit: hard link", "the tool edit on a hard link to a key", tool="edit",
            before="ln {home}/.ssh/id_ed25519 k",
            args={"path": "k", "oldText": "s3cr3t", "newText": "x"}, real=False),
    Attempt("read: hard link", "the tool read on a hard link to a key", tool="read",
            before="ln {home}/.ssh/id_ed25519 k", args={"path": "k"}, real=False),
    Attempt("read: /proc", "the tool read on the host's own environment", tool="read",
            args={"path": "/proc/self/environ"}, real=False),
    Attempt("read: dot dot", "the tool read by ..", tool="read",
            args={"path": "../outside/secret.txt"}, real=False),
    Attempt("grep: outside", "the tool grep outside", tool="grep",
            args={"pattern": "s3cr3t", "path": "{outside}"}, real=False),
    Attempt("ls: keys", "the tool ls on the keys", tool="ls", args={"path": "{home}/.ssh"},
            real=False),
)  # fmt: skip
