"""The running configuration: read by path, changed, watched."""

import asyncio
from pathlib import Path

import pytest

from dragoman.engine.faults import BadInput
from dragoman.host.config import LiveConfig
from dragoman.settings import write
from dragoman.settings.load import load
from dragoman.settings.places import Places


@pytest.fixture
def config(tmp_path):
    (tmp_path / "config.toml").write_text(
        "# mine\n[acp]\nmax_sessions = 5\n\n"
        '[agents.main]\napi_key = "sk-secret"\ntools = ["read", "ls"]\n'
    )
    (tmp_path / "config.toml").chmod(0o600)
    where = Places(str(tmp_path), str(tmp_path / "data"), True)
    return LiveConfig(load(where.config_file, env={}), where)


@pytest.mark.parametrize(
    "path, value",
    [
        ("acp.max_sessions", 5),
        ("$.acp.max_sessions", 5),
        ("agents.main.tools.1", "ls"),
        ("agents.main.tools[0]", "read"),
        ("acp.session_timeout_secs", 3600),
        ("no.such.thing", None),
        ("agents.main.tools.9", None),
    ],
)
def test_values_by_path(config, path, value):
    assert config.get(path) == value


def test_secrets_do_not_leave(config):
    assert "sk-secret" not in repr(config.get())
    assert config.settings.agents["main"].api_key == "sk-secret"


async def test_a_change_is_written_applied_and_told(config):
    told, applied = [], []
    stop = config.watch(lambda *change: told.append(change))
    config.applied.append(lambda old, new: applied.append(new.acp.max_sessions))
    await config.set("acp.max_sessions", 7)
    assert told == [("acp.max_sessions", 5, 7)]
    assert applied == [7]
    assert "# mine" in Path(config.places.config_file).read_text()
    stop()
    await config.set("acp.max_sessions", None)
    assert config.get("acp.max_sessions") == 10
    assert len(told) == 1


async def test_a_bad_value_changes_nothing(config):
    with pytest.raises(BadInput, match="max_sessions"):
        await config.set("acp.max_sessions", "many")
    assert config.get("acp.max_sessions") == 5
    with open(config.places.config_file, "a") as file:
        file.write("\n[broken\n")
    with pytest.raises(BadInput):
        config.reload()
    assert config.get("acp.max_sessions") == 5


def test_a_file_that_cannot_be_read_has_a_stamp_of_its_own(tmp_path: Path) -> None:
    from dragoman.daemon.main import _stamp

    place = tmp_path / "config.toml"
    stamps = [_stamp(str(place))]
    for number, leads_to in enumerate(("nowhere", "elsewhere", "config.toml")):
        made = tmp_path / f"{number}"
        made.symlink_to(leads_to)
        made.replace(place)
        stamps.append(_stamp(str(place)))
    place.unlink()
    place.write_text("")
    stamps.append(_stamp(str(place)))
    place.chmod(0o200)
    stamps.append(_stamp(str(place)))
    assert len(set(stamps)) == len(stamps)
    assert _stamp(str(place)) == stamps[-1]


async def test_who_serves_others_waits_for_another_process_without_keeping_them(config):
    file = config.places.config_file
    with write.changing(file):
        setting = asyncio.ensure_future(config.set("acp.max_sessions", 7))
        adding = asyncio.ensure_future(config.add_entry("agents", "second"))
        for _ in range(20):
            await asyncio.sleep(0)  # others go on meanwhile
        assert config.get("acp.max_sessions") == 5 and not setting.done()
        Path(file).write_text(Path(file).read_text() + "\n[log]\nlevel = 'debug'\n")
    await asyncio.wait_for(asyncio.gather(setting, adding), 60)
    assert (config.get("acp.max_sessions"), config.get("log.level")) == (7, "debug")
    assert [*config.get("agents")] == ["main", "second"]


async def test_a_process_that_never_ends_its_change_is_told_to_clients(config, monkeypatch):
    monkeypatch.setattr(write, "_PATIENCE", 0.05)
    with write.changing(config.places.config_file):
        with pytest.raises(BadInput, match="Another process has been changing"):
            await config.set("acp.max_sessions", 7)
    await config.set("acp.max_sessions", 7)


async def test_a_change_that_is_refused_leaves_the_file_as_it_was(config):
    file = Path(config.places.config_file)
    before = file.read_text() + "\n[limits]\nmax_clients = 'many'\n"
    file.write_text(before)
    for change in (config.set("log.level", "debug"), config.add_entry("agents", "second")):
        with pytest.raises(BadInput, match="max_clients"):
            await change
        assert file.read_text() == before
