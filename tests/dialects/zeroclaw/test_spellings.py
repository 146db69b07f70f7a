"""Every talk that is written in camelCase, played in snake_case."""

import json
import re
from pathlib import Path

import pytest
from tests.transcripts import starters

from dragoman.dialects.zeroclaw.spelling import camel, heard, snake, spoken, spoken_text
from dragoman.testing.play import play
from dragoman.testing.talk import AnyOrder, Direct, Expect, Say, Talk, collect, read

FOLDER = Path(__file__).parents[2] / "transcripts" / "zeroclaw"
OWN = ("-camel", "-snake")  # talks about one spelling
_KEY = re.compile(r'"([a-z]+(?:[A-Z][a-z0-9]*)+)":')
_KEEP = {"requestedSchema", "activeForm"}


def respelled(text: str) -> str:
    return _KEY.sub(lambda key: f'"{key[1] if key[1] in _KEEP else snake(key[1])}":', text)


def names(text: str) -> str:
    """Patterns about messages, which name params."""
    return re.sub(r"chatMode|agentAlias|protocolVersion", lambda word: snake(word[0]), text)


USAGE = json.dumps(
    {
        "jsonrpc": "2.0",
        "method": "session/update",
        "params": {"type": "context_usage", "...": "<more>"},
    }
)
COMPLETE = {
    "jsonrpc": "2.0",
    "method": "session/update",
    "params": {"type": "turn_complete", "...": "<more>"},
}


def expect(step: Expect) -> Expect:
    text = names(respelled(step.text))
    return Expect(step.line, text, step.kind, json.loads(text) if step.kind != "=" else None)


def maybe(line: int, pattern: str, kind: str) -> Expect:
    return Expect(line, pattern, kind, json.loads(pattern))


def turned(talk: Talk) -> Talk:
    """The same talk as a snake_case client would have it, with the updates only it gets."""
    steps = []
    for step in talk.steps:
        match step:
            case Say():
                steps.append(Say(step.line, respelled(step.text)))
            case Direct(word="raw"):
                steps.append(Direct(step.line, "raw", respelled(step.rest)))
            case Expect():
                turn = '"stopReason"' in step.text or "Agent turn failed" in step.text
                steps.append(maybe(step.line, USAGE, "*"))
                if turn:
                    steps.append(Expect(step.line, json.dumps(COMPLETE), ">", COMPLETE))
                steps.append(expect(step))
            case AnyOrder():
                ended = [p for p in step.parts if '"stopReason"' in p.text]
                more = [Expect(step.line, json.dumps(COMPLETE), ">", COMPLETE) for _ in ended]
                steps.append(maybe(step.line, USAGE, "*"))
                parts = (*(expect(part) for part in step.parts), *more)
                steps.append(AnyOrder(step.line, parts))
            case _:
                steps.append(step)
    return Talk(talk.path, talk.title, steps)


def cases():
    for path in collect(FOLDER):
        if not path.stem.endswith(OWN):
            yield pytest.param(path, id=path.stem)


@pytest.mark.parametrize("path", list(cases()))
async def test_the_talk_in_snake_case(path, tmp_path):
    start, _ = starters.of("zeroclaw")
    await play(turned(read(path)), start, "memory", tmp_path)


def test_names():
    assert snake("sessionId") == "session_id" and camel("session_id") == "sessionId"
    assert snake("dataB64") == "data_b64" and camel("data_b64") == "dataB64"
    assert snake("status") == camel("status") == "status"
    assert snake("@timestamp") == "@timestamp"


def test_both_spellings_at_once():
    assert heard({"sessionId": 1, "session_id": 2}) == {"session_id": 2}
    assert heard({"overrides": {"modelProvider": "x"}}, ("overrides",)) == {
        "overrides": {"model_provider": "x"}
    }
    assert heard({"files": [{"mimeType": "a"}, 5]}, ("files",)) == {
        "files": [{"mime_type": "a"}, 5]
    }
    assert heard({"env": {"someName": 1}}) == {"env": {"someName": 1}}


def test_answers_and_messages():
    assert spoken({"a_b": [{"c_d": 1}]}) == {"aB": [{"cD": 1}]}
    assert spoken_text("missing field `agent_alias`") == "missing field `agentAlias`"
    assert spoken_text("at `$.session_id`") == "at `$.sessionId`"
