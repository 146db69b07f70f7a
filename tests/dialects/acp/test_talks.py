"""Plays the talks of this dialect over every transport that carries it."""

from pathlib import Path

import pytest
from tests.transcripts.acp.starter import start

from dragoman.dialects.acp.verbs import VERBS
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


def said(mark: str) -> str:
    rows = [row for path in TALKS for row in path.read_text().splitlines()]
    return "\n".join(row for row in rows if row.startswith(mark))


@pytest.mark.parametrize("method", sorted(VERBS))
def test_every_method_is_in_a_talk(method: str) -> None:
    assert f'"method":"{method}"' in said("C>")


@pytest.mark.parametrize(
    "code", [-32700, -32600, -32601, -32602, -32603, -32000, -32001, -32002, -32800]
)
def test_every_error_is_in_a_talk(code: int) -> None:
    assert f'"code":{code}' in said("S>")


@pytest.mark.parametrize(
    "kind",
    [
        "user_message_chunk", "agent_message_chunk", "agent_thought_chunk", "tool_call",
        "tool_call_update", "plan", "available_commands_update", "current_mode_update",
        "config_option_update", "session_info_update", "usage_update", "notice",
        "compaction_update",
    ],
)  # fmt: skip
def test_every_update_is_in_a_talk(kind: str) -> None:
    assert f'"sessionUpdate":"{kind}"' in said("S>")
