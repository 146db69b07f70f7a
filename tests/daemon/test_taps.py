"""What a tap shows of the lines: everything but secrets."""

import json
from typing import Any

import pytest

from dragoman.daemon import taps
from dragoman.daemon.taps import hidden
from dragoman.observe import redact

SECRET = "hush-hush"


def shown(message: Any) -> str:
    return hidden(json.dumps(message).encode())


@pytest.mark.parametrize(
    "message",
    [
        # an app watches, and asks for, what is its own
        {"chunk": {"path": "channels.irc.password", "oldValue": SECRET, "newValue": SECRET}},
        {"requestId": "1", "result": {"value": SECRET}},
        {
            "requestId": "1",
            "result": {"value": {"password": SECRET, "deep": [{"botToken": SECRET}]}},
        },
        # somebody changes the configuration
        {"method": "config/set", "params": {"prop": "agents.a.api_key", "value": SECRET}},
        {"method": "dragoman/config", "params": {"path": "apps.x.apiKey", "value": SECRET}},
        [{"params": {"prop": "providers.p.api_key", "value": SECRET}}],
        {"params": {"env": {"ANY": SECRET}, "api_key": SECRET}},
    ],
)
def test_secrets_are_hidden_also_where_only_a_path_names_them(message: Any) -> None:
    assert SECRET not in shown(message)


@pytest.mark.parametrize(
    "message",
    [
        {"chunk": {"path": "channels.irc.server", "oldValue": "a", "newValue": "b"}},
        {"params": {"prop": "log.level", "value": "debug"}},
        {"result": {"value": 5}},
        {"result": {"value": "x", "path": "log.level"}},
        {"params": {"path": "/home/me/token", "content": "text"}},
    ],
)
def test_the_rest_is_shown_as_it_is(message: Any) -> None:
    assert json.loads(shown(message)) == message


def test_what_is_too_long_to_be_shown_is_not_looked_through(monkeypatch: Any) -> None:
    """Looking for secrets is slow, and all other clients wait for it."""
    looked: list[int] = []

    def scrub(text: str) -> str:
        looked.append(len(text))
        return real(text)

    real = redact.scrub
    monkeypatch.setattr(taps, "scrub", scrub)
    monkeypatch.setattr(redact, "scrub", scrub)
    for message in (
        {"params": {"text": "word " * 200_000}},
        {"params": {"image": "x" * 1_000_000}},
        {"params": [{"text": f"number {n}"} for n in range(50_000)]},
        {f"name {n}": n for n in range(50_000)},
    ):
        said = shown(message)
        assert said.startswith(json.dumps(message, separators=(",", ":"))[:16_000])
        assert len(said) == 16_385, "cut, and shown as cut"
        assert sum(looked) < 60_000
        looked.clear()
    assert len(hidden(b"no JSON " * 100_000)) == 16_384
    assert sum(looked) < 30_000


@pytest.mark.parametrize(
    "message",
    [
        {"text": "word " * 4_000 + f"password={SECRET * 100} " + "word " * 4_000},
        {"text": "word " * 10_000, "password": SECRET},
        {"value": f"{SECRET} {'word ' * 10_000}", "path": "agents.a.api_key"},
        {"oldValue": f"{SECRET} {'x' * 50_000}", "text": "word " * 10_000, "prop": "a.api_key"},
        [{"text": "word " * 10_000}, {"env": {"ANY": SECRET}}],
    ],
)
def test_secrets_are_hidden_also_in_what_is_cut(message: Any) -> None:
    assert SECRET not in shown(message)


@pytest.mark.parametrize("depth", [100, 600, 900, 5_000])
@pytest.mark.parametrize(("begin", "end"), [("[", "]"), ('{"a":', "}")])
def test_a_line_is_shown_however_deep_it_is_nested(depth: int, begin: str, end: str) -> None:
    line = begin * depth + "1" + end * depth
    assert hidden(line.encode())[:16_384] == line[:16_384]
