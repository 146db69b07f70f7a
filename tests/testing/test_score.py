"""Every talk of ours can be played as a server, and a client of the talk finds what it expects."""

import json
from pathlib import Path
from typing import Any

import pytest

from dragoman.testing.sample import sample
from dragoman.testing.score import FIRST, Move, PlayedConnection, load
from dragoman.testing.talk import AnyOrder, Direct, Expect, Say, TalkError, read

TALKS = sorted((Path(__file__).parent.parent / "transcripts").rglob("*.talk"))


@pytest.mark.parametrize("path", TALKS, ids=lambda path: f"{path.parent.name}/{path.stem}")
def test_every_talk_can_be_played_to_its_own_client(path: Path) -> None:
    score = load(path)
    shared: dict[str, Any] = {}
    parts = {name: PlayedConnection(moves, shared) for name, moves in score.parts.items()}
    part = parts[FIRST]
    names: dict[str, Any] = {}
    for step in read(path).steps:
        match step:
            case Direct(word="as"):
                part = parts[step.rest]
            case Direct(word="raw" | "eof" | "closed"):
                part.done()
            case Say():
                move = part.next
                assert move is not None and move.kind == "hear"
                try:
                    said = step.filled(names)
                except TalkError:
                    said = step.text  # known to the starter only
                fits, _ = part.compare(move, said.encode())
                assert fits or json.loads(said) is None
                part.done()
            case Expect(kind=">" | "="):
                check(part, step, names)
            case AnyOrder():
                for one in step.parts:
                    check(part, one, names)
    assert all(part.next is None for part in parts.values())


def check(part: PlayedConnection, step: Expect, names: dict[str, Any]) -> None:
    move = part.next
    assert move is not None and move.kind == "tell"
    line = part.spoken(move)
    part.done()
    if step.kind == ">":
        assert not step.difference(line, names)


def moves(*pairs: tuple[str, Any]) -> PlayedConnection:
    return PlayedConnection([Move(n, k, json.dumps(v), v) for n, (k, v) in enumerate(pairs, 1)])  # type: ignore[arg-type]


def test_ids_of_the_client_come_back_to_it() -> None:
    part = moves(
        ("hear", {"jsonrpc": "2.0", "id": 1, "method": "session/new", "params": {"count": 1}}),
        ("tell", {"jsonrpc": "2.0", "id": 1, "result": {"sessionId": "<id:S>", "count": 1}}),
        ("hear", {"jsonrpc": "2.0", "id": 2, "method": "x", "params": {"sessionId": "<id:S>"}}),
    )
    said = {"jsonrpc": "2.0", "id": "abc", "method": "session/new", "params": {"count": 1}}
    assert part.compare(part.next, json.dumps(said).encode()) == (True, "")  # type: ignore[arg-type]
    part.done()
    told = json.loads(part.spoken(part.next))  # type: ignore[arg-type]
    assert told["id"] == "abc" and told["result"]["count"] == 1
    part.done()
    wrong = {"jsonrpc": "2.0", "id": 9, "method": "x", "params": {"sessionId": "other"}}
    fits, difference = part.compare(part.next, json.dumps(wrong).encode())  # type: ignore[arg-type]
    assert fits and "sessionId" in difference


def test_another_message_is_not_taken_for_the_expected_one() -> None:
    part = moves(("hear", {"id": "1", "type": "prompt", "message": "hi"}))
    fits, difference = part.compare(part.next, b'{"id":"1","type":"ping"}')  # type: ignore[arg-type]
    assert not fits and difference == "expected prompt, got ping"


def test_a_recording_is_read(tmp_path: Path) -> None:
    rows = [
        {"connection": "zot-1", "direction": "in", "line": '{"type":"ping"}'},
        {"connection": "acp-2", "direction": "in", "line": "{}"},
        {"connection": "zot-1", "direction": "out", "line": '{"type":"pong"}'},
    ]
    file = tmp_path / "tap.ndjson"
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    score = load(file)
    assert [move.kind for move in score.parts["zot-1"]] == ["hear", "tell"]
    assert list(score.parts) == ["zot-1", "acp-2"]


@pytest.mark.parametrize("text", ["", "[]\n", '{"line": 1}\n'])
def test_what_is_no_recording_is_refused(tmp_path: Path, text: str) -> None:
    file = tmp_path / "tap.ndjson"
    file.write_text(text)
    with pytest.raises(TalkError):
        load(file)


@pytest.mark.parametrize(
    ("pattern", "made"),
    [
        ("a|b", "a"),
        (".*busy.*", "busy"),
        ("tui_[0-9a-f]{8}", "tui_00000000"),
        (r"\d+(?:\.\d+)?s", "0s"),
        ("malformed json: .+", "malformed json: x"),
    ],
)
def test_samples(pattern: str, made: str) -> None:
    assert sample(pattern) == made


def test_a_pattern_that_is_too_clever() -> None:
    with pytest.raises(TalkError):
        sample("(?=a)b")
