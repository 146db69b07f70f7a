"""What a daemon says aloud: `observe.aloud`."""

import io
import sys

import pytest

from dragoman.observe.aloud import aloud


class Full(io.StringIO):
    def flush(self) -> None:
        raise OSError(28, "No space left on device")


def test_a_line_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    aloud("ready")
    assert capsys.readouterr().err == "ready\n"


def test_a_full_disk_or_a_closed_stream_ends_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    full, closed = Full(), io.StringIO()
    closed.close()
    for stream in (full, closed):
        monkeypatch.setattr(sys, "stderr", stream)
        aloud("ready")
    assert full.getvalue() == "ready\n"
