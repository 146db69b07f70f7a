"""`dragoman service install|uninstall|status`: the daemon as a service of the logged-in user."""

import os
import sys

from dragoman.engine.faults import BadInput
from dragoman.settings.places import deciding

from .. import say, units
from ..parse import Args
from ..places import find, next_line, write_whole

_SECONDS = 30


def run(args: Args) -> int:
    """Run one sub-command for this platform."""
    if sys.platform == "win32":
        raise BadInput(
            "There is no service for Windows yet.", "Start it by hand: dragoman daemon --background"
        )
    mac = sys.platform == "darwin"
    path = units.plist_path(os.environ) if mac else units.unit_path(os.environ)
    return int(
        {"install": _install, "uninstall": _uninstall, "status": _status}[args.sub](args, path, mac)
    )


def command(config_dir: str | None) -> list[str]:
    """The command line that starts this daemon from anywhere."""
    program = os.path.abspath(sys.argv[0])
    found = [program] if os.access(program, os.X_OK) and not program.endswith(".py") else []
    words = [*(found or [sys.executable, "-P", "-m", "dragoman"]), "daemon"]
    return [*words, "--config-dir", os.path.abspath(config_dir)] if config_dir else words


def _install(args: Args, path: str, mac: bool) -> int:
    where = find(args.config_dir)
    words = command(where.config_dir if where.given else None)
    env = deciding(os.environ)
    if mac:
        text = units.plist(words, os.path.join(where.data_dir, "service.log"), env)
        os.makedirs(where.data_dir, mode=0o700, exist_ok=True)
    else:
        text = units.unit(words, where.config_dir, env).encode()
    os.makedirs(os.path.dirname(path), exist_ok=True)
    write_whole(path, text)
    if mac:
        steps = [["launchctl", "unload", path], ["launchctl", "load", "-w", path]]
    else:
        steps = [
            ["systemctl", "--user", "daemon-reload"],
            ["systemctl", "--user", "enable", units.UNIT],
            ["systemctl", "--user", "restart", units.UNIT],
        ]
    problem = _all(steps, ignore_first=mac)
    if args.json:
        say.plain_json({"file": path, "command": words, "started": not problem, "problem": problem})
        return 1 if problem else 0
    say.out(f"written: {path}")
    if not problem:
        say.out("started; it starts again whenever you log in")
        return 0
    say.err(f"not started: {problem}")
    say.err(_instead(args, mac, steps))
    return 1


def _instead(args: Args, mac: bool, steps: list[list[str]]) -> str:
    """What to do where the service could not be started; advice that cannot work is none."""
    later = " && ".join(" ".join(step) for step in steps[-2:])
    if mac or os.path.isdir(os.path.join(os.environ.get("XDG_RUNTIME_DIR", ""), "systemd")):
        return f"Do it yourself: {later}"
    return (
        "No systemd of yours runs here (it does after a login, or by: loginctl enable-linger). "
        f"Then: {later}\nUntil then: {next_line(args, 'daemon --background')}"
    )


def _uninstall(args: Args, path: str, mac: bool) -> int:
    if mac:
        steps = [["launchctl", "unload", "-w", path]]
    else:
        steps = [["systemctl", "--user", "disable", "--now", units.UNIT]]
    there = os.path.exists(path)
    problem = _all(steps) if there else ""
    if there:
        os.unlink(path)
        if not mac:
            problem = problem or _all([["systemctl", "--user", "daemon-reload"]])
    if args.json:
        say.plain_json({"file": path, "removed": there, "problem": problem})
    else:
        say.out(f"removed: {path}" if there else f"there was none: {path}")
        if problem:
            say.err(f"not stopped: {problem}")
    return 0


def _status(args: Args, path: str, mac: bool) -> int:
    there = os.path.exists(path)
    if mac:
        runs = there and not _do(["launchctl", "list", units.LABEL])
    else:
        runs = there and not _do(["systemctl", "--user", "is-active", "--quiet", units.UNIT])
    if args.json:
        say.plain_json({"file": path, "installed": there, "running": runs})
    elif not there:
        say.out("not installed: dragoman service install")
    else:
        say.out(f"{'runs' if runs else 'does not run'}  {path}")
    return 0 if runs else 1


def _all(steps: list[list[str]], *, ignore_first: bool = False) -> str:
    """Take every step; returns the first problem."""
    for number, step in enumerate(steps):
        problem = _do(step)
        if problem and not (ignore_first and number == 0):
            return problem
    return ""


def _do(step: list[str]) -> str:
    """Run one command; returns what went wrong."""
    import shutil
    import subprocess

    if shutil.which(step[0]) is None:
        return f"{step[0]} is not on this system"
    try:
        done = subprocess.run(
            step, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=_SECONDS
        )
    except subprocess.TimeoutExpired:
        return f"{' '.join(step)} took more than {_SECONDS} seconds"
    said = (done.stderr or done.stdout).strip()
    return "" if done.returncode == 0 else said or f"{' '.join(step)}: exit code {done.returncode}"
