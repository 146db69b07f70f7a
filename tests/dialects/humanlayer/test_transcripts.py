"""The transcripts leave nothing out: every method, every event, every error code."""

from pathlib import Path

import pytest

from dragoman.dialects.humanlayer import Settings, speak
from dragoman.dialects.humanlayer.verbs import VERBS

FOLDER = Path(__file__).parents[2] / "transcripts/humanlayer"
SAID = "\n".join(path.read_text() for path in sorted(FOLDER.glob("*.talk")))
CLIENT = [line for line in SAID.split("\n") if line.startswith("C>")]
SERVER = [line for line in SAID.split("\n") if line.startswith(("S>", "S="))]
EVENTS = (speak.STATUS, speak.CONVERSATION, speak.NEW_APPROVAL, speak.RESOLVED, speak.SETTINGS)


@pytest.mark.parametrize("method", ["health", "Subscribe", *VERBS])
def test_every_method_is_called(method):
    assert any(f'"method":"{method}"' in line for line in CLIENT)


@pytest.mark.parametrize("kind", [*EVENTS, "heartbeat"])
def test_every_event_is_expected(kind):
    assert any(f'"type":"{kind}"' in line for line in SERVER)


@pytest.mark.parametrize("code", [-32700, -32600, -32601, -32602, -32603])
def test_every_error_code_is_expected(code):
    assert any(f'"code":{code}' in line for line in SERVER)


def test_the_constants_of_the_protocol_are_the_defaults():
    given = Settings()
    assert (given.max_message_bytes, given.heartbeat_secs, given.version) == (
        10_485_760,
        30,
        "0.1.0",
    )
