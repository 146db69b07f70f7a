"""A PostgreSQL of its own in a temporary folder, for tests and demonstrations.

It listens at a Unix socket that only its user and root can reach, so it needs no password. As root
it runs as an ordinary user, since PostgreSQL refuses root.
"""

import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Sequence
from pathlib import Path
from time import monotonic, sleep
from typing import BinaryIO

from dragoman.engine.faults import StoreFailed

USERS = ("postgres", "nobody")
FAST = ("fsync=off", "synchronous_commit=off", "full_page_writes=off")
START_SECONDS = 60.0
# Reads until whoever began it is gone, however that was; then ends the server and removes it.
_WATCH = """
cat >/dev/null
pid=$(head -n 1 "$1/data/postmaster.pid" 2>/dev/null)
if [ -n "$pid" ] && ps -p "$pid" -o args= | grep -qF "$1"; then
  kill -QUIT "$pid"
  while kill -0 "$pid" 2>/dev/null; do sleep 0.1; done
fi
rm -rf "$1"
"""


class Server:
    """One cluster. `url(name)` is the address of a database of it; `stop` ends and removes it."""

    def __init__(self, *, durable: bool = False, more: Sequence[str] = ()) -> None:
        self._settings = [*(() if durable else FAST), *more]
        self._uid = _user()
        self.folder = Path(tempfile.mkdtemp(prefix="dragoman-pg-"))
        if self._uid:
            os.chown(self.folder, self._uid, -1)
        self._data = self.folder / "data"
        self._process: subprocess.Popen[bytes] | None = None
        self._leash, self._gone = _watch(self.folder)
        try:
            self._run(
                _program("initdb"), "-D", str(self._data), "-U", "dragoman", "--auth=trust",
                "--encoding=UTF8", "--no-locale", "--no-sync", "--no-instructions",
            )  # fmt: skip
            self.start()
        except BaseException:
            self.stop()
            raise

    @property
    def pid(self) -> int:
        assert self._process is not None
        return self._process.pid

    @property
    def socket(self) -> str:
        return str(self.folder / ".s.PGSQL.5432")

    def url(self, name: str = "postgres") -> str:
        return f"postgresql://dragoman@/{name}?host={self.folder}"

    def start(self) -> None:
        """Start it, and return when it answers."""
        given = ["listen_addresses=", f"unix_socket_directories={self.folder}"]
        given += ["max_connections=200", "shared_buffers=32MB", *self._settings]
        options = [word for one in given for word in ("-c", one)]
        with open(self.folder / "log", "ab") as log:
            self._process = subprocess.Popen(
                [_program("postgres"), "-D", str(self._data), *options],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=self.folder,
                user=self._uid or None,
                group=None,
                start_new_session=True,
            )
        until = monotonic() + START_SECONDS
        while not self._answers():
            if self._process.poll() is not None or monotonic() > until:
                text = (self.folder / "log").read_text(errors="replace")[-2000:]
                raise StoreFailed(f"PostgreSQL did not start: {text}")
            sleep(0.02)

    def halt(self, *, crash: bool = False) -> None:
        """End its process and keep its data; `crash`: without a word to anybody."""
        process, self._process = self._process, None
        if process is not None:
            process.send_signal(signal.SIGQUIT if crash else signal.SIGINT)
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()

    def restart(self, *more: str) -> None:
        """Go on with further settings."""
        self.halt()
        self._settings += more
        self.start()

    def stop(self, *, wait: bool = True) -> None:
        """End it and take its folder away; without `wait` that goes on when we are gone."""
        self.halt(crash=True)
        self._leash.close()
        if wait:
            self._gone.read()
        self._gone.close()

    def _answers(self) -> bool:
        status = self._data / "postmaster.pid"
        try:
            return status.read_text().split("\n")[7].strip() == "ready"
        except (OSError, IndexError):
            return False

    def _run(self, *command: str) -> None:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            cwd=self.folder,
            user=self._uid or None,
            env={**os.environ, "LC_ALL": "C"},
        )
        if done.returncode:
            raise StoreFailed(f"{command[0]} failed: {done.stderr.decode(errors='replace')}")


def _watch(folder: Path) -> tuple[BinaryIO, BinaryIO]:
    """What a watching shell reads until we close it, and what ends when all is away."""
    here, leash = os.pipe()
    gone, there = os.pipe()
    words = ["/bin/sh", "-c", f"exec 3<&0; ({_WATCH}) <&3 &", "sh", str(folder)]
    try:
        subprocess.run(
            words, stdin=here, stdout=there, stderr=subprocess.DEVNULL, start_new_session=True
        )
    finally:
        os.close(here)
        os.close(there)
    return os.fdopen(leash, "wb"), os.fdopen(gone, "rb")


def _user() -> int:
    """The user to run as; 0: as we are."""
    if os.geteuid() != 0:
        return 0
    import pwd

    for name in USERS:
        try:
            return pwd.getpwnam(name).pw_uid
        except KeyError:
            continue
    raise StoreFailed("There is no ordinary user to run PostgreSQL as.")


def find_program(name: str) -> str | None:
    """Where a program of PostgreSQL is; packages put it outside of PATH."""
    if found := shutil.which(name):
        return found
    places = sorted(Path("/usr/lib/postgresql").glob(f"*/bin/{name}"), reverse=True)
    return str(places[0]) if places else None


def _program(name: str) -> str:
    found = find_program(name)
    if found is None:
        raise StoreFailed(f"PostgreSQL's {name} is not installed.", "Run: make setup-tools")
    return found


def main() -> None:
    """Serve until stopped: `python -m dragoman.testing.postgres` prints the address."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    server = Server()
    try:
        print(server.url(), flush=True)
        signal.pause()
    except KeyboardInterrupt:
        return
    finally:
        server.stop()


if __name__ == "__main__":
    main()
