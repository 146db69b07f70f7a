"""A real terminal for tests: tmux with a server of its own, typed into and read from."""

import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from dragoman.client.plain import Plain
from dragoman.client.problems import NotRunning
from dragoman.engine.faults import Fault

WITHIN = 90.0  # on a machine with ten times more to do than it can
_PAUSE = 0.05  # between two looks at the screen
_RAN_BY = ("API_KEY", "XDG_", "DRAGOMAN_", "ZEROCLAW_", "COLORFGBG", "NO_COLOR", "TMUX", "EDITOR")


class Home:
    """A user with nothing: an empty home, an empty folder to work in, no daemon."""

    def __init__(self) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="dt-"))
        self.work = self.folder / "w"
        self.work.mkdir()
        self.panes: list[Pane] = []
        self.socket = str(self.folder / ".local/share/dragoman/daemon.sock")

    def env(self) -> dict[str, str]:
        found = {k: v for k, v in os.environ.items() if not any(word in k for word in _RAN_BY)}
        path = f"{Path(sys.executable).parent}{os.pathsep}{found.get('PATH', '')}"
        return {**found, "HOME": str(self.folder), "PATH": path, "SHELL": "/bin/sh"}

    def open(self, command: str = "dragoman", width: int = 100, height: int = 30) -> "Pane":
        """A terminal that runs a command."""
        made = Pane(self, f"dt-{os.getpid()}-{self.folder.name}-{len(self.panes)}")
        self.panes.append(made)
        made.start(command, width, height)
        return made

    def host(self) -> Plain:
        return Plain(self.socket, "a test")

    def pid(self) -> int:
        with self.host() as host:
            return int(host.call("dragoman/status")["pid"])

    def close(self) -> None:
        for pane in self.panes:
            pane.close()
        try:
            os.kill(self.pid(), signal.SIGTERM)
        except (NotRunning, Fault, ProcessLookupError):
            pass  # no daemon was started, or it is gone already
        shutil.rmtree(self.folder, ignore_errors=True)


class Pane:
    """One terminal. `wait` polls the screen until it holds something."""

    def __init__(self, home: Home, name: str) -> None:
        self.home = home
        self.name = name

    def _tmux(self, *words: str) -> str:
        command = ["tmux", "-L", self.name, "-f", os.devnull, *words]
        done = subprocess.run(
            command, env=self.home.env(), capture_output=True, text=True, timeout=WITHIN
        )
        assert done.returncode == 0, f"tmux {words[0]}: {done.stderr}"
        return done.stdout

    def start(self, command: str, width: int, height: int) -> None:
        # The shell stays when the program ends, so that what it leaves on the screen can be seen.
        line = f"trap : INT; {command}; echo left with $?; exec sleep 1000"
        size = ("-x", str(width), "-y", str(height))
        self._tmux("new-session", "-d", "-s", "t", *size, "-c", str(self.home.work), line)

    def close(self) -> None:
        subprocess.run(
            ["tmux", "-L", self.name, "kill-server"], capture_output=True, timeout=WITHIN
        )

    def press(self, *keys: str) -> None:
        """Keys by tmux's names: Enter, C-c, Escape, Up."""
        self._tmux("send-keys", "-t", "t", *keys)

    def type(self, text: str) -> None:
        self._tmux("send-keys", "-t", "t", "-l", "--", text)

    def say(self, text: str) -> None:
        """Type a line and send it once it stands in the editor."""
        self.type(text)
        self.wait(f"› {text[:40]}")
        self.press("Enter")

    def paste(self, text: str) -> None:
        """As a terminal pastes: in brackets."""
        self._tmux("set-buffer", "--", text)
        self._tmux("paste-buffer", "-p", "-t", "t")

    def resize(self, width: int, height: int) -> None:
        self._tmux("resize-window", "-t", "t", "-x", str(width), "-y", str(height))

    def screen(self, *, colours: bool = False, past: bool = False) -> str:
        more = (("-e",) if colours else ()) + (("-S", "-") if past else ())
        return self._tmux("capture-pane", "-p", "-t", "t", *more)

    def wait(self, *texts: str, gone: str = "", within: float = WITHIN) -> str:
        """The screen, once it holds all of these and not `gone`."""
        limit = time.monotonic() + within
        while True:
            shown = self.screen()
            if all(text in shown for text in texts) and not (gone and gone in shown):
                return shown
            assert time.monotonic() < limit, f"not seen: {texts} (gone: {gone!r}) in\n{shown}"
            time.sleep(_PAUSE)

    def match(self, pattern: str, within: float = WITHIN) -> re.Match[str]:
        """The first place on the screen that fits, once there is one."""
        limit = time.monotonic() + within
        while True:
            shown = self.screen()
            found = re.search(pattern, shown)
            if found is not None:
                return found
            assert time.monotonic() < limit, f"nothing fits {pattern} in\n{shown}"
            time.sleep(_PAUSE)
