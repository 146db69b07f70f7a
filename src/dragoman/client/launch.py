"""Starts a daemon that goes on when whoever started it has left."""

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence

from dragoman.settings.places import deciding, places


def log_path(config_dir: str | None) -> str:
    """Where such a daemon writes what it says."""
    return os.path.join(places(os.environ, config_dir).data_dir, "daemon.out")


def said_before(log: str) -> int:
    """How much earlier daemons have written to it; what the next one says comes after it."""
    try:
        return os.path.getsize(log)
    except OSError:
        return 0


def words_since(log: str, begins: int) -> str:
    """What was written to it since."""
    try:
        with open(log, "rb") as file:
            file.seek(begins)
            return file.read(64 * 1024).decode(errors="replace").strip()
    except OSError:
        return ""


def unsaid(start: str, log: str) -> str:
    """Where to read why a daemon ended that wrote nothing: a full disk keeps no words."""
    return f"It wrote nothing to {log}. To read why: {start}"


def launch(
    config_dir: str | None, flags: Sequence[str] = (), env: Mapping[str, str] | None = None
) -> subprocess.Popen[bytes]:
    """Start `dragoman daemon` in a session of its own. Raises OSError."""
    path = log_path(config_dir)
    os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
    how = os.O_WRONLY | os.O_CREAT | os.O_APPEND | getattr(os, "O_NOFOLLOW", 0)
    log = os.open(path, how, 0o600)
    words = [sys.executable, "-P", "-m", "dragoman", "daemon", *flags]
    if config_dir:
        words += ["--config-dir", os.path.abspath(config_dir)]
    home = os.path.abspath(os.path.expanduser("~"))
    whole = dict(os.environ if env is None else env)
    if os.name == "posix":  # it runs in another folder, where a relative path leads elsewhere
        whole |= deciding(whole)
        if whole.get("HOME"):
            whole["HOME"] = os.path.abspath(whole["HOME"])
    try:
        return subprocess.Popen(
            words,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            env=whole,
            start_new_session=True,
            cwd=home if os.access(home, os.X_OK) and os.path.isdir(home) else "/",
        )
    finally:
        os.close(log)
