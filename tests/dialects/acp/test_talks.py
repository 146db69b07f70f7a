"""Plays the talks of this dialect over every transport that carries it."""

from pathlib import Path

import pytest
from tests.transcripts.acp.starter import start

from dragoman.testing.play import TRANSPORTS, play
from dragoman.testing.talk import collect, read

TALKS = collect(Path(__file__).parents[2] / "transcripts" / "acp")


@pytest.mark.parametrize("transport", TRANSPORTS)
@pytest.mark.parametrize("path", TALKS, ids=lambda path: path.stem)
async def test_talk(
    path: Path, transport: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    await play(read(path), start, transport, tmp_path)
