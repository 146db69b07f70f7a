"""The quick answer to `initialize` must be the true one."""

import json
import os
import random
import subprocess
import sys
from pathlib import Path
from typing import Any

import msgspec
import pytest

from dragoman.dialects.acp import Desk
from dragoman.host.compose import compose
from dragoman.providers.presets import PRESETS
from dragoman.settings.places import places
from dragoman.stdio import acp_greeting as greeting
from dragoman.transports.memory import Client
from dragoman.wire.link import Link

COMMAND = str(Path(sys.executable).with_name("dragoman"))


def clean(folder: Path) -> dict[str, str]:
    kept = {"PATH": os.environ["PATH"], "HOME": str(folder)}
    return {**kept, "DRAGOMAN_CONFIG_DIR": str(folder / "config")}


def ask(env: dict[str, str], *words: str) -> dict[str, Any]:
    line = b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1}}\n'
    done = subprocess.run(
        [COMMAND, "acp", *words], input=line, env=env, capture_output=True, timeout=60, check=True
    )
    return json.loads(done.stdout)["result"]


def test_every_key_of_a_provider_makes_it_wait_for_the_host(tmp_path: Path) -> None:
    env = clean(tmp_path)
    where = places(env)
    assert greeting.is_plain(env, where) or greeting._is_listening()
    for name in {key for preset in PRESETS.values() for key in preset.env} | {"OLLAMA_HOST"}:
        assert not greeting.is_plain({**env, name: "x"}, where), name
    assert not greeting.is_plain({**env, "DRAGOMAN_acp__max_sessions": "3"}, where)


def test_the_quick_answer_is_the_hosts_answer(tmp_path: Path) -> None:
    quick = ask(clean(tmp_path / "a"))
    slow = ask({**clean(tmp_path / "b"), "DRAGOMAN_log__level": "info"})
    assert quick == slow
    flags = ("--max-sessions", "3", "--session-timeout", "9")
    quick = ask(clean(tmp_path / "c"), *flags)
    assert quick["_meta"]["zeroclaw"]["maxSessions"] == 3
    assert quick == ask({**clean(tmp_path / "d"), "DRAGOMAN_log__level": "info"}, *flags)


def test_a_store_that_cannot_be_opened_is_told(tmp_path: Path) -> None:
    env = clean(tmp_path)
    config = tmp_path / "config"
    config.mkdir()
    (config / "data").write_text("a file where the folder should be")
    for more in ({}, {"DRAGOMAN_log__level": "info"}):
        can = ask({**env, **more})["agentCapabilities"]
        assert can["loadSession"] is False
        assert "resume" not in can["sessionCapabilities"]


def test_a_broken_database_is_left_to_the_store(tmp_path: Path) -> None:
    where = places(clean(tmp_path))
    Path(where.data_dir).mkdir(parents=True)
    Path(where.data_dir, "sessions.db").write_text("something else entirely")
    assert greeting.keeps(where) is None


class Wired(Link):
    """A link that keeps what is sent."""

    def __init__(self) -> None:
        self.sent: list[bytes] = []

    def send(self, message: bytes) -> None:
        self.sent.append(message)


def asked(env: dict[str, str], line: bytes, woken: list[bool]) -> list[bytes]:
    """What the greeter answers to a first line, the relay's own note before it."""
    link = Wired()
    made = greeting.Greeter(link, places(env), {}, lambda: woken.append(True), True)
    note = {"jsonrpc": "2.0", "method": "_dragoman/connection", "params": {"name": "x"}}
    made.hear([msgspec.json.encode(note)])
    assert not woken  # the host is put together when the editor speaks, not before
    made.hear([line])
    assert woken
    return link.sent


def test_the_relays_own_note_does_not_keep_the_greeting(tmp_path: Path) -> None:
    line = b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1}}'
    (said,) = asked(clean(tmp_path), line, [])
    assert json.loads(said)["result"]["protocolVersion"] == 1


def test_what_came_first_is_handed_over_first(tmp_path: Path) -> None:
    env = clean(tmp_path)
    made = greeting.Greeter(Wired(), places(env), {}, lambda: None, True)
    note = b'{"jsonrpc":"2.0","method":"_dragoman/connection","params":{}}'
    hello = b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1}}'
    for lines in ([note], [hello, b"second"], [b"third"]):
        made.hear(lines)
    heard: list[Any] = []

    class Real:
        def hear(self, lines: list[bytes]) -> None:
            heard.extend(lines)

        def met(self, params: bytes) -> None:
            heard.append(json.loads(params))

    made.hand_over(Real())
    assert heard == [note, {"protocolVersion": 1}, b"second", b"third"]


VALUES: list[Any] = [
    None, True, False, 0, 1, 2, 3, -1, 65_536, 1.0, "1", "2", [], {}, "x",
    {"name": "zed", "version": "1"}, {"name": 5}, {"terminal": True}, {"terminal-auth": True},
    {"fs": {"readTextFile": True, "writeTextFile": True}}, {"_meta": {"terminal-auth": True}},
    {"auth": {"terminal": True}},
]  # fmt: skip
NAMES = ["protocolVersion", "clientCapabilities", "clientInfo", "info", "capabilities", "_meta"]


async def test_both_ways_greet_the_same_on_random_input(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What the greeter answers at all, the host would have answered with the same bytes."""
    env = clean(tmp_path)
    for name in tuple(os.environ):
        if name != "PATH":
            monkeypatch.delenv(name)
    for name, value in env.items():
        monkeypatch.setenv(name, value)
    composed = await compose(config_dir=None, flags={})
    desk = Desk(composed.door, composed.settings.acp)
    chance = random.Random(7)
    greeted = 0
    for _ in range(400):
        version = chance.choice([1, 1, 1, 2, 2, chance.choice(VALUES)])
        params = {"protocolVersion": version} if chance.randrange(12) else {}
        for name in chance.sample(NAMES, chance.randrange(3)):
            params[name] = chance.choice(VALUES)
        message = {"jsonrpc": "2.0", "id": chance.choice([1, "a", 0]), "method": "initialize"}
        if chance.randrange(20):
            message["params"] = params
        line = msgspec.json.encode(message)
        quick = asked(env, line, [])
        if quick:
            greeted += 1
            client = Client(desk.hearer)
            client.send(line)
            assert [json.loads(one) for one in client.received()] == [
                json.loads(one) for one in quick
            ], line
            client.drop()
    assert greeted > 100
    await desk.close()
    await composed.close()


@pytest.mark.parametrize("odd", ["pipe", "folder", "gone", "self"])
def test_a_store_that_is_none_is_not_promised(tmp_path: Path, odd: str) -> None:
    where = places(clean(tmp_path))
    path = Path(where.data_dir) / "sessions.db"
    path.parent.mkdir(parents=True)
    if odd == "pipe":
        os.mkfifo(path)
    elif odd == "folder":
        path.mkdir()
    else:
        path.symlink_to("nowhere" if odd == "gone" else path.name)
    assert greeting.keeps(where) is False


def test_a_store_that_the_settings_put_elsewhere_is_not_judged_by_the_usual_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    env = clean(tmp_path)
    where = places(env)
    assert greeting.keeps(where) is True
    monkeypatch.setenv("DRAGOMAN_store__path", ":memory:")
    assert greeting.keeps(where) is None
    monkeypatch.delenv("DRAGOMAN_store__path")
    config = Path(where.config_file)
    config.parent.mkdir()
    config.symlink_to("nowhere")
    assert not greeting.is_plain(env, where) and greeting.keeps(where) is None


@pytest.mark.parametrize("version", [1, 2])
def test_what_was_configured_since_the_start_is_left_to_the_host(
    tmp_path: Path, version: int
) -> None:
    env = clean(tmp_path)
    params = {"protocolVersion": version, "info": {"name": "ed", "version": "1"}}
    asks = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params}
    line = msgspec.json.encode(asks)
    config = Path(places(env).config_file)
    config.parent.mkdir()
    config.write_text('[store]\npath = ":memory:"\n')
    assert asked(env, line, []) == []


async def test_a_host_that_takes_over_from_the_daemon_looks_at_the_settings_anew(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from dragoman.stdio import acp

    own = acp.OwnHost(str(tmp_path), {})
    (tmp_path / "config.toml").write_text('[store]\npath = ":memory:"\n')
    begun: list[bool] = []
    monkeypatch.setattr(own, "_begin", lambda: begun.append(True))
    await own.connect(lambda link: link, "x")  # type: ignore[arg-type, return-value]
    assert begun == [True]
