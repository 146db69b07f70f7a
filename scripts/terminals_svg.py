"""Two terminals in one session, side by side, and the browser beside them, as a picture.

    python scripts/terminals_svg.py --output docs/pictures/terminals.svg
        --with-browser docs/pictures/one-session.png

Starts a daemon in a home of its own, opens `dragoman` twice in tmux, types into the left one, and
draws both screens as they are while the question waits. With a browser the dashboard's page of the
same session is put below them.
"""

import argparse
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent))
from terminal_svg import Run, draw, lines_of  # noqa: E402

ROOT = Path(__file__).parent.parent
_WIDTH, _HEIGHT = 62, 24
_WITHIN = 30.0


class Pane:
    """One terminal of a tmux server of ours."""

    def __init__(self, home: Path, number: int) -> None:
        self._name = f"picture-{os.getpid()}-{number}"
        kept = {k: v for k, v in os.environ.items() if not k.startswith(("DRAGOMAN", "XDG", "NO_"))}
        path = f"{Path(sys.executable).parent}{os.pathsep}{kept['PATH']}"
        self._env = {**kept, "HOME": str(home), "PATH": path, "DRAGOMAN_gateway__port": "0"}
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
    parser.add_argument("--with-browser", default="")
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
        if args.with_browser:
            _with_browser(home, args.output, args.with_browser)
    finally:
        for pane in (left, right):
            pane.close()
        _stop(home)
        shutil.rmtree(home, ignore_errors=True)
    return 0


def _with_browser(home: Path, terminals: str, output: str) -> None:
    """The same session in a browser that is let in by a link, below the terminals."""
    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    node = ROOT / "tests" / "interop" / "node" / "node_modules" / ".bin" / "node"
    if chromium is None or not node.exists():
        raise SystemExit("needs Chromium and Node: make setup-browser")
    with _host(home) as host:
        session = host.call("dragoman/sessions")["sessions"][0]["id"]
    env = {**os.environ, "HOME": str(home)}
    dragoman = [str(Path(sys.executable).parent / "dragoman"), "open", "--print", "--json"]
    said = subprocess.run(dragoman, env=env, capture_output=True, text=True, check=True).stdout
    script = str(ROOT / "scripts" / "one_session.mjs")
    words = [json.loads(said)["link"], session, chromium, terminals, output]
    subprocess.run([str(node), script, *words], check=True, timeout=120, stdin=subprocess.DEVNULL)


def _host(home: Path) -> Any:
    from dragoman.client.plain import Plain

    return Plain(str(home / ".local/share/dragoman/daemon.sock"), "picture")


def _stop(home: Path) -> None:
    """End the daemon that the terminal started."""
    with _host(home) as host:
        os.kill(host.call("dragoman/status")["pid"], signal.SIGTERM)


if __name__ == "__main__":
    sys.exit(main())
