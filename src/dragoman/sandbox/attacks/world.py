"""A small world with something to steal and somebody to hurt, and the attacks run in it."""

import contextlib
import ctypes
import json
import os
import secrets
import select
import shutil
import socket
import stat
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from dragoman.leaving import undisturbed

from .. import brand
from ..launch import Confine, Launch
from ..syscalls import here
from . import driver
from .attack import Attack

PYTHON = os.path.realpath(sys.executable)
_PATIENCE = 5.0  # seconds for the victim to answer
_LOST = 20.0  # seconds after which an attack that does not end is given up
_VICTIM = """
import os, sys
os.dup2(int(sys.argv[1]), 3)
print(1, flush=True)
for line in sys.stdin:  # whoever asks is told that it lives
    print(1, flush=True)
"""
_NUMBERS = {"x86_64": {"sigqueue": 129, "tgkill": 234}, "aarch64": {"sigqueue": 138, "tgkill": 131}}


class Found(NamedTuple):
    """What came of an attack. `got` is empty when it was stopped."""

    attack: Attack
    got: str
    said: str


class World:
    """Folders, a victim, its sockets, memory and terminal. Made by `with World(folder)`."""

    def __init__(self, top: Path) -> None:
        self.top = top
        self.secret = f"s3cr3t-{secrets.token_hex(8)}"
        self.abstract = f"escape-{secrets.token_hex(8)}"
        self.work = top / "work"
        self._kept = contextlib.ExitStack()
        for folder in ("work", "outside/repo/.git/hooks", "home/.ssh", "home/.config",
                       "config/agents/coder", "data/tmp"):  # fmt: skip
            (top / folder).mkdir(parents=True)
        for file in ("outside/secret.txt", "home/.ssh/id_ed25519", "home/.bashrc",
                     "config/config.toml", "data/sessions.db", "config/acp-bridge-token",
                     "data/open.html", "data/daemon.log"):  # fmt: skip
            (top / file).write_text(self.secret)
        (top / "outside/repo/.git/config").write_text(f"[test]\n\tsecret = {self.secret}\n")
        (top / "outside/repo/.git/HEAD").write_text("ref: refs/heads/main\n")
        for folder in ("objects", "refs"):
            (top / "outside/repo/.git" / folder).mkdir()
        (top / "outside/prog").write_text(f"#!/bin/sh\necho {self.secret}\n")
        (top / "outside/prog").chmod(0o755)
        for folder in ("data", "config", "outside", "home/.ssh"):
            (top / folder).chmod(0o700)
        (top / "home/.ssh/id_ed25519").chmod(0o600)

    def __enter__(self) -> "World":
        with contextlib.ExitStack() as stack:
            self._listen(stack)
            self._share(stack)
            self.tty = self._terminal(stack)
            with undisturbed():
                self.victim = self._somebody()
                stack.callback(lambda: self._end(self.victim))
            self._kept = stack.pop_all()
        return self

    def __exit__(self, *about: object) -> None:
        self._kept.close()

    # --- what there is ---

    def _listen(self, stack: contextlib.ExitStack) -> None:
        outside = self.top / "outside"
        for name, kind in (
            (f"\0{self.abstract}", socket.SOCK_STREAM),
            (f"\0{self.abstract}.d", socket.SOCK_DGRAM),
            (str(outside / "program.sock"), socket.SOCK_STREAM),
            (str(outside / "datagram.sock"), socket.SOCK_DGRAM),
        ):
            listener = stack.enter_context(socket.socket(socket.AF_UNIX, kind))
            if not name.startswith("\0"):
                name = _short(name, stack)
            listener.bind(name)
            if kind == socket.SOCK_STREAM:
                listener.listen(16)
                if not name.startswith("\0"):
                    self._answering(listener, stack)

    def _answering(self, listener: socket.socket, stack: contextlib.ExitStack) -> None:
        """Whoever connects is told the secret."""
        import threading

        def serve() -> None:
            while True:
                try:
                    with listener.accept()[0] as client:
                        client.sendall(self.secret.encode())
                except OSError:
                    return  # closed, or the client has gone

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        stack.callback(lambda: listener.shutdown(socket.SHUT_RDWR))

    def _share(self, stack: contextlib.ExitStack) -> None:
        self.shared = f"escape-{secrets.token_hex(6)}"
        path = Path("/dev/shm") / self.shared
        self.segment = -1
        if path.parent.is_dir():
            path.write_text(self.secret)
            path.chmod(0o600)
            stack.callback(lambda: path.unlink(missing_ok=True))
        libc: Any = ctypes.CDLL(None, use_errno=True)
        libc.shmat.restype = ctypes.c_void_p
        segment = libc.shmget(0, 4096, 0o600)
        if segment >= 0:
            self.segment = segment
            at = libc.shmat(segment, None, 0)
            ctypes.memmove(at, self.secret.encode(), len(self.secret))
            libc.shmdt(ctypes.c_void_p(at))
            stack.callback(lambda: libc.shmctl(segment, 0, None))

    def _terminal(self, stack: contextlib.ExitStack) -> str:
        master, slave = os.openpty()
        for fd in (master, slave):
            stack.callback(os.close, fd)
        return os.ttyname(slave)

    def _somebody(self) -> "subprocess.Popen[bytes]":
        """A process with the secret in its environment, its arguments and its descriptors."""
        with open(self.top / "outside/secret.txt", "rb") as file:
            victim = subprocess.Popen(
                [PYTHON, "-c", _VICTIM, str(file.fileno()), self.secret],
                env={"PATH": os.environ.get("PATH", ""), "VICTIM": self.secret},
                cwd=self.top / "outside", pass_fds=[file.fileno()], start_new_session=True,
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0,
                stderr=subprocess.DEVNULL,  # it may be left before it has said that it is there
            )  # fmt: skip
        assert victim.stdout is not None
        victim.stdout.readline()
        return victim

    def _end(self, victim: "subprocess.Popen[bytes]") -> None:
        victim.kill()
        victim.wait()
        assert victim.stdin is not None and victim.stdout is not None
        victim.stdin.close()
        victim.stdout.close()

    # --- looking ---

    def fill(self, text: str) -> str:
        import platform

        values: dict[str, Any] = {name: getattr(self, name) for name in
                                  ("abstract", "shared", "segment", "tty", "work")}  # fmt: skip
        values |= {name: self.top / name for name in ("outside", "home", "config", "data")}
        values |= {"victim": self.victim.pid, "host": os.getpid()}
        values |= _NUMBERS.get(platform.machine(), {"sigqueue": -1, "tgkill": -1})
        for name, value in values.items():
            text = text.replace("{" + name + "}", str(value))
        return text

    def snapshot(self) -> dict[str, Any]:
        """Everything that no attack may change."""
        found: dict[str, Any] = {}
        for folder in ("outside", "home", "config", "data"):
            for path in (self.top / folder, *sorted((self.top / folder).rglob("*"))):
                if "data/tmp" in str(path):
                    continue
                about = path.lstat()
                data = path.read_bytes() if stat.S_ISREG(about.st_mode) else b""
                when = about.st_mtime if about.st_mtime < 1e9 else 0
                found[str(path)] = (stat.S_IFMT(about.st_mode), about.st_mode, when, data)
        return found

    def restore(self, before: Mapping[str, Any]) -> None:
        """Make the world again what it was."""
        gone = self.top / "data.gone"
        if gone.exists():
            gone.rename(self.top / "data")
        for folder in ("outside", "home", "config", "data"):
            (self.top / folder).chmod(0o700)
        for name in set(self.snapshot()) - set(before):
            _remove(Path(name))
        for name, (kind, mode, _, data) in before.items():
            path = Path(name)
            if kind == stat.S_IFDIR:
                path.mkdir(parents=True, exist_ok=True)
            elif kind == stat.S_IFREG:
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_bytes(data)
            os.utime(path) if kind != stat.S_IFSOCK else None
            path.chmod(stat.S_IMODE(mode))
        if self._harmed():
            with undisturbed():
                self._end(self.victim)
                self.victim = self._somebody()

    def _harmed(self) -> str:
        """What has become of the victim."""
        with open(f"/proc/{self.victim.pid}/stat", "rb") as file:
            fields = file.read().rpartition(b")")[2].split()
        if fields[0] in (b"T", b"t"):
            return "the victim was stopped"
        if not self._answers():
            return "the victim is gone"
        if int(fields[16]) != os.getpriority(os.PRIO_PROCESS, 0):
            return "the victim's priority was changed"
        return ""

    def _answers(self) -> bool:
        stdin, stdout = self.victim.stdin, self.victim.stdout
        assert stdin is not None and stdout is not None
        try:
            stdin.write(b"there?\n")
        except BrokenPipeError:
            return False
        ready = select.select([stdout], [], [], _PATIENCE)[0]
        return bool(ready and stdout.readline())

    def got(self, attack: Attack, said: str, before: Mapping[str, Any]) -> str:
        """What an attack got; empty when nothing."""
        if self.secret in said:
            return "it read the secret"
        if "ESCAPED" in said:
            return "it worked"
        if harm := self._harmed():
            return harm
        try:
            return "it changed something outside" if self.snapshot() != before else ""
        except OSError:
            return "it changed something outside"

    # --- running ---

    def environ(self) -> dict[str, str]:
        """Of the process that runs the attacks."""
        path = f"{os.path.dirname(PYTHON)}:{os.environ.get('PATH', '')}"
        return {"HOME": str(self.top / "home"), "PATH": path, "TMPDIR": str(self.top / "data/tmp"),
                "LC_ALL": "C.UTF-8", "PYTHONDONTWRITEBYTECODE": "1"}  # fmt: skip

    def run(self, attacks: Iterable[Attack], confine: Confine, walls: Any) -> Iterator[Found]:
        """Try them one after the other; the world is mended after each that has worked."""
        before = self.snapshot()
        with self._started(confine, walls) as process:
            assert process.stdin is not None and process.stdout is not None
            for attack in attacks:
                given = {"shell": self.fill(attack.shell), "python": self.fill(attack.python)}
                process.stdin.write(json.dumps(given) + "\n")
                process.stdin.flush()
                line = process.stdout.readline()
                said = str(json.loads(line)) if line else "ESCAPED? it ended whoever ran it"
                got = self.got(attack, said, before)
                yield Found(attack, got, said)
                if got:
                    self.restore(before)
                for path in self.work.iterdir():
                    _remove(path)
                if not line:
                    return

    @contextlib.contextmanager
    def _started(self, confine: Confine, walls: Any) -> Iterator["subprocess.Popen[str]"]:
        machine = here()
        numbers = json.dumps(machine.numbers if machine else {})
        source = Path(driver.__file__).read_text(encoding="utf-8")
        argv = (PYTHON, "-I", "-c", source, numbers)
        mark = brand.new()
        burn = brand.burn(mark)
        launch = Launch(argv, str(self.work), self.environ(), preexec=burn)
        launch = confine.confine(launch, None, walls)  # type: ignore[arg-type]
        process = None
        try:
            with undisturbed():
                try:
                    process = subprocess.Popen(
                        launch.argv, cwd=launch.cwd, env=dict(launch.env),
                        preexec_fn=launch.preexec, pass_fds=launch.keep, text=True,
                        stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True,
                    )  # fmt: skip
                finally:
                    if launch.done is not None:
                        launch.done()
                    brand.live.discard(mark)
            yield process
        finally:
            if process is not None:
                _end_driver(process)


def _end_driver(process: "subprocess.Popen[str]") -> None:
    assert process.stdin is not None and process.stdout is not None
    with contextlib.suppress(BrokenPipeError):  # it has ended
        process.stdin.close()
    process.stdout.close()
    try:
        process.wait(_LOST)
    except subprocess.TimeoutExpired:
        process.kill()
        process.wait()


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def _short(path: str, stack: contextlib.ExitStack) -> str:
    """A name for binding: that of a socket may have 107 characters only."""
    folder = os.open(os.path.dirname(path), os.O_RDONLY | os.O_DIRECTORY)
    stack.callback(os.close, folder)
    return f"/proc/self/fd/{folder}/{os.path.basename(path)}"
