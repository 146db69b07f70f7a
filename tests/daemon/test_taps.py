"""What a tap shows of the lines: everything but secrets."""

import json
from typing import Any

import pytest

from dragoman.daemon.taps import hidden

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
