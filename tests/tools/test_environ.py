"""Commands see a short list of names, and never a secret, whoever asks for it."""

import os

import pytest

from dragoman.tools.environ import environment, secret


@pytest.mark.parametrize(
    "name",
    [
        "OPENAI_API_KEY",
        "openai_api_key",
        "GITHUB_TOKEN",
        "MY_SECRET_THING",
        "DB_PASSWORD",
        "X_PASSWD",
        "DRAGOMAN_TOKEN",
        "ZOTCORE_RPC_TOKEN",
        "AWS_ACCESS_KEY_ID",
        "SENTRY_DSN",
        "TLS_PRIVATE_KEY_PATH",
        "APIKEY",
        "HUMANLAYER_DAEMON_SOCKET",
    ],
)
def test_secrets_stay_whatever_is_allowed(name: str) -> None:
    assert secret(name)
    source = {name: "s", "PATH": "/bin"}
    assert name not in environment(("*",), source=source)
    assert name not in environment((), {name: "s"}, source=source)


@pytest.mark.parametrize("name", ["PATH", "HOME", "EDITOR", "KEYBOARD", "TOKENIZERS", "DSN"])
def test_ordinary_names_are_no_secrets(name: str) -> None:
    assert secret(name) is (name == "TOKENIZERS")  # rather too careful than not


def test_only_what_is_listed_comes_through() -> None:
    source = {"PATH": "/x", "LC_ALL": "C", "EDITOR": "vi", "FOO_A": "1", "FOO_B": "2"}
    seen = environment(("FOO_*",), {"BAR": "3"}, source)
    assert seen == {
        "PATH": "/x",
        "LC_ALL": "C",
        "FOO_A": "1",
        "FOO_B": "2",
        "BAR": "3",
        "TERM": "dumb",
        "PAGER": "cat",
        "GIT_PAGER": "cat",
        "GIT_TERMINAL_PROMPT": "0",
    }


def test_there_is_always_a_path_and_the_own_environment_is_the_usual_source(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    assert environment(source={})["PATH"] == os.defpath
    monkeypatch.setenv("LC_TESTED", "here")
    assert environment()["LC_TESTED"] == "here"
