"""Programs on standard input and output, in small: `replay`, `speak`, `zot`."""

import asyncio
import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from dragoman.engine.faults import BadInput
from dragoman.stdio import replay, speak, zot
from dragoman.stdio.zot_flags import parse
from dragoman.testing.score import load
from dragoman.transports.memory import Client

TALK = """\
# A short one

C> {"id":1,"method":"hello"}
S> {"id":1,"result":"hi"}
! as second
C> {"id":2}
S> {"id":2,"result":"other"}
! closed
"""

# --- replay ---


@pytest.fixture
def talk(tmp_path: Path) -> Path:
    path = tmp_path / "a.talk"
    path.write_text(TALK)
    return path


async def test_replay_plays_its_parts_to_connections_in_turn(
    talk: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    player = replay.Player(load(talk), None, True)
    first, second = Client(player.hearer), Client(player.hearer)
    first.send(b'{"id":7,"method":"hello"}')
    assert json.loads(await first.receive()) == {"id": 7, "result": "hi"}  # the client's own id
    second.send(b'{"id":2}')
    assert json.loads(await second.receive()) == {"id": 2, "result": "other"}
    with pytest.raises(EOFError):
        await second.receive()
    first.drop()
    await player.over.wait()
    await asyncio.sleep(0)
    assert not player.failed and "the client: played to its end" in capsys.readouterr().err


async def test_replay_that_is_strict_hangs_up_at_a_difference(
    talk: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for strict in (False, True):
        player = replay.Player(load(talk), "the client", strict)
        client = Client(player.hearer)
        client.send(b'{"id":1,"method":"hello","more":1}')
        if strict:
            with pytest.raises(EOFError):
                while True:
                    await client.receive()
        client.drop()
        await asyncio.sleep(0)
        assert player.failed is strict
        assert "waited for" in capsys.readouterr().err


async def test_replay_says_who_left_too_early(
    talk: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    player = replay.Player(load(talk), None, False)
    client = Client(player.hearer)
    client.drop()
    await player.over.wait()
    assert player.failed and "the client left before line 3" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("text", "connection", "why"),
    [
        ("# Nothing\n", None, "nothing is said in it"),
        (TALK, "third", "no connection 'third'"),
        (None, None, "cannot be read"),
    ],
)
async def test_replay_refuses_what_cannot_be_played(
    tmp_path: Path, text: str | None, connection: str | None, why: str
) -> None:
    path = tmp_path / "b.talk"
    if text is not None:
        path.write_text(text)
    args = SimpleNamespace(file=str(path), connection=connection, strict=False, socket=None)
    with pytest.raises(BadInput, match=why):
        await replay._serve(args)


# --- speak ---


def test_speak_an_unknown_dialect_is_refused_before_anything_is_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(speak.stdio, "claim_stdout", lambda: 1)
    monkeypatch.setattr(speak, "run", asyncio.run)
    assert speak.main("klingon", config_dir=str(tmp_path), memory=True) == 1
    assert "dragoman speak:" in capsys.readouterr().err


# --- zot ---


def rpc(*words: str) -> Any:
    return zot._Rpc(parse(list(words)), "")


@pytest.mark.parametrize(
    ("words", "found"),
    [
        (["--provider", "openai", "--api-key", "k"], {"providers.openai.api_key": "k"}),
        (["--model", "groq/x", "--api-key", "k"], {"providers.groq.api_key": "k"}),
        (["--api-key", "k"], {"providers.anthropic.api_key": "k"}),
        (["--provider", "openai", "--base-url", "http://b:1/"],
         {"providers.openai.base_url": "http://b:1/v1"}),
        (["--model", "m"], {}),
    ],
)  # fmt: skip
def test_zot_knows_whom_a_key_on_the_command_line_is_for(
    words: list[str], found: dict[str, str]
) -> None:
    assert rpc(*words).provider_flags() == found


@pytest.mark.parametrize(
    ("provider", "url", "rooted"),
    [
        ("openai", "http://b", "http://b/v1"),
        ("openai", "http://b/v2", "http://b/v2"),
        ("anthropic", "http://b/", "http://b"),
    ],
)
def test_zot_roots_addresses(provider: str, url: str, rooted: str) -> None:
    assert zot._rooted(provider, url) == rooted


def test_zot_looks_first_where_something_may_be_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = ("--config-dir", str(tmp_path))
    assert rpc(*own)._must_look() is True  # no key anywhere
    monkeypatch.setenv("ANTHROPIC_API_KEY", "k")
    assert rpc(*own)._must_look() is False
    assert rpc(*own, "--list-models")._must_look() is True
    (tmp_path / "config.toml").write_text("")
    assert rpc(*own)._must_look() is True


def composed(sources: set[tuple[str, ...]], **agent: Any) -> Any:
    profile = SimpleNamespace(**{"runtime_profile": "", "risk_profile": "", **agent})
    return SimpleNamespace(
        config=SimpleNamespace(loaded=SimpleNamespace(sources=dict.fromkeys(sources))),
        settings=SimpleNamespace(agents={"a": profile}),
        door=SimpleNamespace(default_agent=lambda: "a"),
    )


def test_zot_asks_nobody_unless_somebody_wants_it() -> None:
    assert rpc()._mode(composed(set())) == "full"
    assert rpc("--supervised")._mode(composed(set())) == "supervised"
    assert rpc("--mode", "plan")._mode(composed(set())) == "plan"
    assert rpc()._mode(composed({("autonomy", "level")})) == ""
    strict = composed({("risk_profiles", "r", "mode")}, risk_profile="r")
    assert rpc()._mode(strict) == ""


def test_zot_knows_whether_the_configuration_names_a_model() -> None:
    made = rpc()
    assert not made._names_model(composed(set()), "a")
    assert made._names_model(composed({("agents", "a", "model")}), "a")
    through = composed({("runtime_profiles", "p", "provider")}, runtime_profile="p")
    assert made._names_model(through, "a") and not made._names_model(through, "b")


def test_zot_wrong_flags_show_the_way(capsys: pytest.CaptureFixture[str]) -> None:
    assert zot.main(["--max-steps", "many"]) == 1
    said = capsys.readouterr().err
    assert "zot: " in said and "--max-steps" in said
    assert zot.main(["--version"]) == 0
    assert "(dragoman)" in capsys.readouterr().out
