"""Starts a daemon that goes on when whoever started it has left."""

import os
import subprocess
import sys
from collections.abc import Mapping, Sequence

from dragoman.settings.places import places


def log_path(config_dir: str | None) -> str:
    """Where such a daemon writes what it says."""
    return os.path.join(places(os.environ, config_dir).data_dir, "daemon.out")


def last_words(config_dir: str | None) -> str:
    """The last line of what it wrote, for whoever asks why it ended."""
    try:
        with open(log_path(config_dir), "rb") as file:
            file.seek(-min(file.seek(0, os.SEEK_END), 4096), os.SEEK_END)
            lines = file.read().decode(errors="replace").split("\n")
    except OSError:
        return ""
    said = next((line.strip() for line in reversed(lines) if line.strip()), "")
    return said.removeprefix("dragoman: ")


def launch(
    config_dir: str | None, flags: Sequence[str] = (), env: Mapping[str, str] | None = None
) -> subprocess.Popen[bytes]:
    """Start `dragoman daemon` in a session of its own."""
    path = log_path(config_dir)
    os.makedirs(os.path.dirname(path), mode=0o700, exist_ok=True)
    how = os.O_WRONLY | os.O_CREAT | os.O_APPEND | getattr(os, "O_NOFOLLOW", 0)
    log = os.open(path, how, 0o600)
    words = [sys.executable, "-P", "-m", "dragoman", "daemon", *flags]
    if config_dir:
        words += ["--config-dir", os.path.abspath(config_dir)]
    try:
        return subprocess.Popen(
            words,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            env=env,
            start_new_session=True,
            cwd=os.path.expanduser("~"),
        )
    finally:
        os.close(log)
