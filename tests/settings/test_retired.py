"""Keys of earlier versions warn with a date, and are read until it."""

from datetime import date, timedelta
from pathlib import Path
from typing import Any

import pytest

from dragoman.settings import retired, shape
from dragoman.settings.load import load
from dragoman.settings.retired import RETIRED, Retired, take_over

SOON = date.today() + timedelta(days=100)
GONE = date.today() - timedelta(days=1)
LEVEL = Retired(("log", "threshold"), SOON, ("log", "level"))
STEPS = Retired(("agents", "*", "rounds"), SOON, ("agents", "*", "max_steps"))


@pytest.fixture
def table(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(retired, "RETIRED", (LEVEL, STEPS))


def read(tmp_path: Path, text: str, env: dict[str, str] | None = None) -> Any:
    file = tmp_path / "config.toml"
    file.write_text(text)
    return load(str(file), env or {})


@pytest.mark.usefixtures("table")
def test_the_value_reaches_the_key_that_replaced_it(tmp_path: Path) -> None:
    loaded = read(tmp_path, '[log]\nthreshold = "error"\n[agents.a.b]\n[agents.one]\nrounds = 7\n')
    assert loaded.settings.log.level == "error"
    assert loaded.settings.agents["one"].max_steps == 7
    told = [row for row in loaded.warnings if str(SOON) in row]
    assert len(told) == 2 and "config.toml:2: log.threshold is log.level now." in told[0]
    assert "agents.one.rounds is agents.one.max_steps now." in told[1]


@pytest.mark.usefixtures("table")
def test_the_newer_name_counts(tmp_path: Path) -> None:
    loaded = read(tmp_path, '[log]\nthreshold = "error"\nlevel = "debug"\n')
    assert loaded.settings.log.level == "debug" and str(SOON) in loaded.warnings[0]


@pytest.mark.usefixtures("table")
def test_a_variable_of_the_older_name_is_read(tmp_path: Path) -> None:
    loaded = read(tmp_path, "", {"DRAGOMAN_log__threshold": "error"})
    assert loaded.settings.log.level == "error"
    assert "DRAGOMAN_log__threshold" in loaded.warnings[0] and str(SOON) in loaded.warnings[0]


def test_after_the_date_it_is_told_and_not_read() -> None:
    raw: dict[str, Any] = {"log": {"threshold": "error"}}
    ((path, told),) = take_over(raw, table=[LEVEL._replace(until=GONE)])
    assert path == ("log", "threshold") and raw == {"log": {}}
    assert str(GONE) in told and "ignored" in told


def test_a_wrong_value_above_it_is_left_to_be_told(tmp_path: Path) -> None:
    for raw in ({"log": 3}, {"log": {"threshold": 1, "level": 2}}, {"agents": [1]}, {"agents": {}}):
        list(take_over(raw, table=[LEVEL, STEPS]))


def test_a_key_that_nothing_replaced_is_told_with_the_reason(tmp_path: Path) -> None:
    loaded = read(tmp_path, '[mcp.x]\nurl = "http://localhost:1"\noauth_scope = "a"\n')
    assert loaded.settings.mcp["x"].url == "http://localhost:1"
    assert any("2027-06-01" in row and "scopes" in row for row in loaded.warnings)
    assert read(tmp_path, "", {"DRAGOMAN_mcp__x__oauth_scope": "a"}).warnings


@pytest.mark.parametrize("one", RETIRED, ids=lambda one: shape.join(one.path))
def test_every_row_leads_somewhere(one: Retired) -> None:
    """A retired key is none of ours any more; what replaced it is one, or a reason is given."""
    named = tuple("x" if part == "*" else part for part in one.path)
    with pytest.raises(shape.UnknownKey):
        shape.key(named)
    assert bool(one.instead) is not bool(one.because)
    if one.instead:
        shape.key(one.heir(named))
