"""Commands see a short list of names, and never a secret, whoever asks for it."""

import os

import pytest

from dragoman.tools.environ import environment, secret, staying, with_clients


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


_OURS = {
    "PATH": "/x", "HOME": "/h", "HTTPS_PROXY": "p", "no_proxy": "n", "XDG_RUNTIME_DIR": "/run",
    "ANTHROPIC_API_KEY": "a", "OPENAI_API_KEY": "o", "AWS_REGION": "r",
    "AWS_SECRET_ACCESS_KEY": "s",
    "XDG_TOKEN": "t", "SSH_AUTH_SOCK": "/s", "DBUS_SESSION_BUS_ADDRESS": "/d", "EDITOR": "vi",
    "DRAGOMAN_CONFIG_DIR": "/c", "LD_PRELOAD": "/l", "PYTHONPATH": "/p", "NODE_OPTIONS": "-r x",
}  # fmt: skip
_USUAL = {"PATH", "HOME", "HTTPS_PROXY", "no_proxy", "XDG_RUNTIME_DIR"}


@pytest.mark.parametrize(
    ("names", "more"),
    [
        ((), set()),
        (("ANTHROPIC_API_KEY",), {"ANTHROPIC_API_KEY"}),
        (("anthropic_api_key", "ANTHROPIC_API_KEY "), set()),
        (("AWS_*",), {"AWS_REGION"}),
        (("*_KEY", "*TOKEN*", "[A]NTHROPIC_API_KEY"), set()),
        (("DRAGOMAN_*",), set()),
        (("DRAGOMAN_CONFIG_DIR", "SSH_AUTH_SOCK"), {"DRAGOMAN_CONFIG_DIR", "SSH_AUTH_SOCK"}),
    ],
)
def test_programs_that_stay_get_keys_by_name_alone(names: tuple[str, ...], more: set[str]) -> None:
    assert set(staying(names, source=_OURS)) == _USUAL | more


def test_what_an_entry_gives_itself_comes_as_it_is() -> None:
    assert staying((), {"OPENAI_API_KEY": "own", "PATH": "/y"}, _OURS)["OPENAI_API_KEY"] == "own"
    assert staying((), {"PATH": "/y"}, _OURS)["PATH"] == "/y"


def test_a_clients_environment_is_filtered_like_ours(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LC_TESTED", "ours")
    given = {
        "LC_TESTED": "theirs",
        "PATH": "/evil",
        "HOME": "/evil",
        "FOO_A": "1",
        "FOO_TOKEN": "s",
    }
    seen = environment(("FOO_*",), source=with_clients(given))
    assert (seen["LC_TESTED"], seen["FOO_A"]) == ("theirs", "1")
    assert seen["PATH"] == os.environ["PATH"] and "FOO_TOKEN" not in seen
    assert seen.get("HOME") == os.environ.get("HOME")
    assert "FOO_A" not in environment(source=with_clients(given))
    assert with_clients({}) is None
