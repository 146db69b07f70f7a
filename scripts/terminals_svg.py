"""Two terminals in one session, side by side, as a picture.

    python scripts/terminals_svg.py --output docs/pictures/terminals.svg

Starts a daemon in a home of its own, opens `dragoman` twice in tmux, types into the left one, and
draws both screens as they are while the question waits.
"""

import argparse
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from terminal_svg import Run, draw, lines_of  # noqa: E402

_WIDTH, _HEIGHT = 62, 24
_WITHIN = 30.0


class Pane:
    """One terminal of a tmux server of ours."""

    def __init__(self, home: Path, number: int) -> None:
        self._name = f"picture-{os.getpid()}-{number}"
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("DRAGOMAN", "XDG", "NO_"))}
        path = f"{Path(sys.executable).parent}{os.pathsep}{kept['PATH']}"
        self._env = {**kept, "HOME": str(home), "PATH": path}
        self._work = home / "project"

    def _tmux(self, *words: str) -> str:
        command = ["tmux", "-L", self._name, "-f", os.devnull, *words]
        done = subprocess.run(command, env=self._env, capture_output=True, text=True, check=True)
        return done.stdout

    def open(self, command: str) -> None:
        size = ("-x", str(_WIDTH), "-y", str(_HEIGHT))
        self._tmux("new-session", "-d", "-s", "t", *size, "-c", str(self._work), command)

    def type(self, text: str, *keys: str) -> None:
        self._tmux("send-keys", "-t", "t", "-l", text)
        for key in keys:
            self._tmux("send-keys", "-t", "t", key)

    def wait(self, text: str) -> None:
        limit = time.monotonic() + _WITHIN
        while text not in self._tmux("capture-pane", "-p", "-t", "t"):
            if time.monotonic() > limit:
                raise SystemExit(f"never seen: {text}")
            time.sleep(0.05)

    def lines(self) -> list[list[Run]]:
        found = lines_of(self._tmux("capture-pane", "-p", "-e", "-t", "t"), _WIDTH)
        return (found + [[] for _ in range(_HEIGHT)])[:_HEIGHT]

    def close(self) -> None:
        self._tmux("kill-server")


def _beside(left: list[list[Run]], right: list[list[Run]]) -> list[list[Run]]:
    found = []
    for one, other in zip(left, right, strict=True):
        gap = _WIDTH - sum(len(text) for text, _, _, _ in one)
        found.append([*one, (" " * gap + "  ┊  ", "#484f58", False, False), *other])
    return found


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", required=True)
    args = parser.parse_args()
    home = Path(tempfile.mkdtemp(prefix="dp-"))
    (home / "project").mkdir()
    (home / "project" / "colours.txt").write_text("red\nblue\n")
    left, right = Pane(home, 1), Pane(home, 2)
    try:
        left.open("dragoman")
        left.wait("● ready")
        left.type("list the files then edit colours.txt replace blue with green", "Enter")
        left.wait("waits for your answer")
        right.open("dragoman -c")
        right.wait("waits for your answer")
        right.wait("yes")
        shown = _beside(left.lines(), right.lines())
        title = "Two terminals in one session: both show the same question, the first answer wins"
        Path(args.output).write_text(draw(shown, 2 * _WIDTH + 5, title), encoding="utf-8")
    finally:
        for pane in (left, right):
            pane.close()
        _stop(home)
        shutil.rmtree(home, ignore_errors=True)
    return 0


def _stop(home: Path) -> None:
    """End the daemon that the terminal started."""
    from dragoman.client.plain import Plain

    with Plain(str(home / ".local/share/dragoman/daemon.sock"), "picture") as host:
        os.kill(host.call("dragoman/status")["pid"], signal.SIGTERM)


if __name__ == "__main__":
    sys.exit(main())
