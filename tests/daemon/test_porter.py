"""The quick answer to `initialize` must be the true one."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from dragoman.providers.presets import PRESETS
from dragoman.settings.places import places
from dragoman.stdio import acp_greeting as porter

COMMAND = str(Path(sys.executable).with_name("dragoman"))


def clean(folder: Path) -> dict[str, str]:
    kept = {"PATH": os.environ["PATH"], "HOME": str(folder)}
    return {**kept, "DRAGOMAN_CONFIG_DIR": str(folder / "config")}


def ask(env: dict[str, str], *words: str) -> dict[str, Any]:
    line = b'{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":1}}\n'
    done = subprocess.run(
        [COMMAND, "acp", *words], input=line, env=env, capture_output=True, timeout=30, check=True
    )
    return json.loads(done.stdout)["result"]


def test_every_key_of_a_provider_makes_it_wait_for_the_host(tmp_path: Path) -> None:
    env = clean(tmp_path)
    where = places(env)
    assert porter.is_plain(env, where) or porter._is_listening()
    for name in {key for preset in PRESETS.values() for key in preset.env} | {"OLLAMA_HOST"}:
        assert not porter.is_plain({**env, name: "x"}, where), name
    assert not porter.is_plain({**env, "DRAGOMAN_acp__max_sessions": "3"}, where)


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
    assert porter.keeps(where) is None
