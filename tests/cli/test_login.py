"""`dragoman login` and `logout`: a key typed in a terminal, kept well, used and forgotten."""

import os
import pty
import select
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from dragoman.cli.run.turns import There, Wish, seat
from dragoman.host.account import Account
from dragoman.providers.registry import ModelRegistry
from dragoman.settings import login
from dragoman.settings.places import places

from .living import Living

KEY = "sk-test-0123456789"


def dragoman(folder: Path, *words: str, said: str = "") -> subprocess.CompletedProcess[str]:
    env = {k: v for k, v in os.environ.items() if k != "DBUS_SESSION_BUS_ADDRESS"}
    return subprocess.run(
        [sys.executable, "-m", "dragoman", *words, "--config-dir", str(folder)],
        input=said, capture_output=True, text=True, timeout=60, env=env,
    )  # fmt: skip


def typed(folder: Path, *words: str, lines: list[tuple[str, str]]) -> tuple[int, str]:
    """Run it in a real terminal; `lines` are what is waited for, and what is typed then."""
    pid, terminal = pty.fork()
    if pid == 0:
        os.environ.pop("DBUS_SESSION_BUS_ADDRESS", None)
        words = ("dragoman", *words, "--config-dir", str(folder))
        os.execv(sys.executable, [sys.executable, "-m", *words])
    shown = ""
    try:
        while True:
            ready, _, _ = select.select([terminal], [], [], 20)
            assert ready, shown
            try:
                more = os.read(terminal, 4096)
            except OSError:
                break
            if not more:
                break
            shown += more.decode()
            if lines and lines[0][0] in shown:
                os.write(terminal, lines.pop(0)[1].encode() + b"\n")
    finally:
        os.close(terminal)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]), shown


@pytest.mark.parametrize("words", [["login"], ["acp", "login"]])
def test_a_key_is_typed_in_the_terminal_and_never_shown(tmp_path: Path, words: list[str]) -> None:
    lines = [("Number or name", "anthropic"), ("Key for anthropic", KEY)]
    code, shown = typed(tmp_path, *words, lines=lines)
    assert code == 0 and "Logged in with anthropic" in shown and KEY not in shown
    kept = tmp_path / "data" / "login.json"
    assert kept.stat().st_mode & 0o777 == 0o600 and KEY in kept.read_text()


def test_from_standard_input_and_out_again(tmp_path: Path) -> None:
    done = dragoman(tmp_path, "login", "claude", said=f"{KEY}\n")
    assert done.returncode == 0 and KEY not in done.stdout + done.stderr
    assert login.read(places({}, str(tmp_path))) == login.Login("anthropic", KEY)
    assert "anthropic" in dragoman(tmp_path, "logout").stdout
    assert not (tmp_path / "data" / "login.json").exists()
    assert "Nobody" in dragoman(tmp_path, "logout").stdout


@pytest.mark.parametrize(
    ("words", "said", "code"),
    [
        (["login"], "", 2),
        (["login", "nobody"], KEY, 2),
        (["login", "openai"], "\n", 1),
        (["login", "openai"], "two words\n", 1),
        (["login", "openai"], "x" * 5000, 1),
        (["acp", "logon"], "", 2),
    ],
)
def test_what_is_no_key_is_not_kept(tmp_path: Path, words: list[str], said: str, code: int) -> None:
    done = dragoman(tmp_path, *words, said=said)
    assert done.returncode == code and done.stderr.strip()
    assert not (tmp_path / "data" / "login.json").exists()


def test_a_keyring_is_used_where_there_is_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """By the program that Linux desktops come with; here it is a small one that keeps a file."""
    tool = tmp_path / "secret-tool"
    tool.write_text(
        '#!/bin/sh\ncase "$1" in\n'
        f'store) cat > "{tmp_path}/ring";;\nlookup) cat "{tmp_path}/ring";;\n'
        f'clear) rm "{tmp_path}/ring";;\nesac\n'
    )
    tool.chmod(0o755)
    monkeypatch.setattr(login, "find", lambda name: str(tmp_path / name))
    monkeypatch.setenv("DBUS_SESSION_BUS_ADDRESS", "unix:path=/nowhere")
    monkeypatch.setattr(sys, "platform", "linux")
    where = places({}, str(tmp_path / "config"))
    assert login.keep(where, "openai", KEY).keyring
    assert KEY not in Path(login.path_of(where)).read_text()
    found = login.read(where)
    assert found is not None and found.key == KEY
    assert login.forget(where) == "openai" and not (tmp_path / "ring").exists()
    tool.write_text("#!/bin/sh\nexit 1\n")  # one that is locked: the file keeps it
    assert login.keep(where, "openai", KEY).key == KEY


async def test_a_running_host_sees_who_logs_in_and_out(tmp_path: Path) -> None:
    where = places({}, str(tmp_path))
    account = Account(where)
    models = ModelRegistry(account.over({}), env={})
    account.changed.append(lambda: models.configure_all(account.over({})))
    assert account.look() == [] and not models.has_credential("anthropic")
    login.keep(where, "anthropic", KEY)
    assert account.look() == ["anthropic"] and models.has_credential("anthropic")
    assert models.default_ref({}).startswith("anthropic/")
    await account.forget()
    assert account.look() == [] and not models.has_credential("anthropic")
    assert "anthropic" not in models.names()


@pytest.fixture
def living(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Living]:
    """A daemon as a newcomer has it: no config.toml, no key, the platform's folders."""
    made = Living(tmp_path)
    for name in ("DRAGOMAN_agents__default__model", "DRAGOMAN_CONFIG_DIR"):
        made.env.pop(name)
    made.env.pop("DBUS_SESSION_BUS_ADDRESS", None)
    made.env |= {
        "XDG_CONFIG_HOME": str(tmp_path / "etc"), "XDG_DATA_HOME": str(tmp_path / "var"),
        "OLLAMA_HOST": "127.0.0.1:9",
    }  # fmt: skip
    for name in set(os.environ) - set(made.env):
        monkeypatch.delenv(name)
    for name, value in made.env.items():
        monkeypatch.setenv(name, value)
    made.start()
    yield made
    made.stop()


async def test_the_running_daemon_has_the_key_when_the_command_returns(living: Living) -> None:
    def seen() -> tuple[bool, bool, bool, bool]:
        """Whether models, their list, the agent and the doctor go by anthropic's key."""
        models = living.json("models")
        agents = living.says("agents"), living.says("doctor")
        return (
            "anthropic" not in models["without_key"],
            any(row["ref"].startswith("anthropic/") for row in models["models"]),
            "anthropic/" in agents[0],
            "uses anthropic/" in agents[1],
        )

    async def joins() -> bool:
        """Whether `run` has its turn there, since both choose the same model."""
        session = await seat(Wish(()))
        await session.close()
        return isinstance(session, There)

    assert seen() == (False,) * 4 and await joins()
    assert "dragoman login" in living.says("doctor")
    command = living.spawn("login", "anthropic")
    assert command.communicate(f"{KEY}\n", timeout=60)[1] == ""
    assert seen() == (True,) * 4 and await joins()
    living.says("config", "set", "providers.anthropic.retries", "2")
    assert seen() == (True,) * 4 and await joins(), "another setting does not lose the key"
    living.says("config", "unset", "providers.anthropic.retries")
    refused = living.run("logout", "openai")
    assert refused.returncode == 1 and "anthropic" in refused.stderr
    assert "Logged out of anthropic" in living.says("logout", "claude")
    assert seen() == (False,) * 4 and await joins()
