"""How far an editor has come: counted from the lines that it was sent."""

import json
from typing import Any

from dragoman.stdio import places
from dragoman.stdio.places import Places


def line(method: str, **params: Any) -> bytes:
    message = {"jsonrpc": "2.0", "method": method, "params": params}
    return json.dumps(message, separators=(",", ":")).encode()


def chunk(session: str, text: Any, kind: str = "agent_message_chunk") -> bytes:
    update = {"sessionUpdate": kind, "content": {"type": "text", "text": text}}
    return line("session/update", sessionId=session, update=update)


def place(session: str, seq: int, texts: int = 0, thoughts: int = 0) -> bytes:
    return line("_dragoman/place", sessionId=session, seq=seq, texts=texts, thoughts=thoughts)


def had(since: int, texts: int = 0, thoughts: int = 0) -> dict[str, int]:
    return {"since": since, "texts": texts, "thoughts": thoughts}


def test_words_count_from_the_last_place_on() -> None:
    seen = Places()
    assert not seen.note(chunk("a", "before anything was told"))
    assert seen.note(place("a", 3)) and seen.of("a") == had(3)
    for text in ("Hé", "llo", "\U0001f600"):
        assert not seen.note(chunk("a", text))
    assert not seen.note(chunk("a", "hm", "agent_thought_chunk"))
    assert seen.of("a") == had(3, 6, 2) == seen.of("a")
    assert seen.note(place("a", 4, 1, 0)) and seen.of("a") == had(4, 1)


def test_a_place_of_one_session_leaves_the_words_of_others() -> None:
    seen = Places()
    seen.note(place("a", 1))
    seen.note(chunk("a", "ab"))
    seen.note(place("b", 1))
    seen.note(chunk("a", "c"))
    seen.note(chunk("b", "four"))
    seen.note(place("b", 2))
    assert (seen.of("a"), seen.of("b")) == (had(1, 3), had(2))
    seen.note(chunk("a", "two"))
    seen.forget("b")
    assert (seen.of("a"), seen.of("b")) == (had(1, 6), {})


def test_other_lines_and_long_streams(monkeypatch: Any) -> None:
    monkeypatch.setattr(places, "_MOST", 3)
    seen = Places()
    seen.note(place("a", 1))
    picture = {"sessionUpdate": "agent_message_chunk", "content": {"type": "image", "data": "x"}}
    tool = {"sessionUpdate": "tool_call_update", "content": [{"text": "agent_message_chunk"}]}
    for update in (picture, tool, {"sessionUpdate": "agent_message_chunk", "content": 5}):
        assert not seen.note(line("session/update", sessionId="a", update=update))
    for _ in range(10):
        assert not seen.note(chunk("a", "word"))
    assert not seen.note(chunk("another", "word")) and not seen.note(b"no JSON")
    assert seen.of("a") == had(1, 40)
