"""The service manager is told when it asked to be, and is never waited for."""

import socket
from pathlib import Path

import pytest

from dragoman.daemon.notify import notify


@pytest.mark.parametrize("abstract", [True, False])
def test_it_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, abstract: bool) -> None:
    name = f"@{tmp_path.name}" if abstract else str(tmp_path / "n")
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind("\0" + name[1:] if abstract else name)
        monkeypatch.setenv("NOTIFY_SOCKET", name)
        assert notify("READY=1")
        assert manager.recv(100) == b"READY=1"


@pytest.mark.parametrize("address", ["", "relative", "/does/not/exist", "@nobody-listens-here"])
def test_nobody_wants_to_know(monkeypatch: pytest.MonkeyPatch, address: str) -> None:
    monkeypatch.setenv("NOTIFY_SOCKET", address)
    assert notify("READY=1") is False
