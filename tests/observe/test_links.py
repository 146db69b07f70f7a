"""The log follows no symbolic link."""

import os
from pathlib import Path

import pytest

from dragoman.observe import log


def test_a_link_in_place_of_the_log_is_refused(tmp_path: Path) -> None:
    other = tmp_path / "precious"
    other.write_text("mine\n")
    path = tmp_path / "daemon.log"
    os.symlink(other, path)
    try:
        with pytest.raises(OSError):
            log.configure("info", str(path))
    finally:
        log.configure()
    assert other.read_text() == "mine\n"
