"""The reference is made from the code: everything that is there is in it."""

import os
import re
import sys
import tomllib
from pathlib import Path

import pytest

from dragoman.cli.main import main

ROOT = Path(__file__).parent.parent.parent


@pytest.fixture(scope="module")
def pages(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    folder = tmp_path_factory.mktemp("reference")
    sys.path.insert(0, str(ROOT / "scripts"))
    try:
        import make_reference
    finally:
        sys.path.pop(0)
    make_reference.main(folder)
    return {page.stem: page.read_text() for page in folder.glob("*.md")}


def test_every_command_is_in_it(pages: dict[str, str]) -> None:
    from dragoman.cli import table

    for command in table.commands():
        assert f"## dragoman {command.name}\n" in pages["commands"]


def test_every_key_is_in_it(pages: dict[str, str]) -> None:
    from dragoman.settings.model import Settings

    for name in Settings.__struct_fields__:
        assert f"`{name}." in pages["configuration"] or f"`{name}`" in pages["configuration"], name


@pytest.mark.parametrize("dialect", ["acp", "humanlayer", "openclawos", "zeroclaw", "zot"])
def test_every_method_is_in_it_and_most_with_an_example(
    pages: dict[str, str], dialect: str
) -> None:
    from importlib import import_module

    where = "verbs" if dialect == "zot" else "hear"
    verbs = import_module(f"dragoman.dialects.{dialect}.{where}").TABLE.verbs
    text = pages[dialect]
    described = tomllib.loads((ROOT / "docs" / "protocols" / "methods.toml").read_text())[dialect]
    assert set(described) <= set(verbs)
    text = text.partition("\n## Version 2\n")[0]
    parts = {part.split("`")[1]: part for part in re.split(r"(?m)^## (?=`)", text)[1:]}
    assert set(parts) == set(verbs)
    for method, part in parts.items():  # a sentence stands before its params and its example
        assert re.match(r"`[^`]+`\n\n[A-Z`][^|]+\.\n", part), method
    assert text.count("C> ") >= 5
    talks = len(list((ROOT / "tests" / "transcripts" / dialect).rglob("*.talk")))
    assert pages[f"{dialect}-transcripts"].count("\n## ") == talks


def test_every_route_is_in_it(pages: dict[str, str]) -> None:
    from dragoman.gateway.routes import all_routes

    for route in all_routes():
        assert route.hidden or f"`{route.method} {route.path}`" in pages["rest"]


def test_every_event_is_in_it(pages: dict[str, str]) -> None:
    from typing import get_args

    from dragoman.dialects.humanlayer import speak as humanlayer
    from dragoman.dialects.zot.speak import EVENTS
    from dragoman.engine import events
    from dragoman.engine.points import OBSERVABLE

    shown = {name: set(re.findall(r"(?m)^### `([^`]+)`", text)) for name, text in pages.items()}
    assert set(EVENTS) == shown["zot"]
    assert {f"hook:{name}" for name in OBSERVABLE} | {"capability:invoke"} <= shown["openclawos"]
    assert {humanlayer.STATUS, humanlayer.DROPPED, "heartbeat"} <= shown["humanlayer"]
    assert "token_update" not in shown["humanlayer"]
    assert {"session/update agent_message_chunk", "session/request_permission"} <= shown["acp"]
    assert {"session/update lagged", "dragoman/event", "logs/event"} <= shown["zeroclaw"]
    bodies = get_args(events.Kept) + get_args(events.Passing)
    assert {body.__struct_config__.tag for body in bodies} == shown["events"]


@pytest.mark.parametrize(
    "words",
    [
        ["status"],
        ["sessions", "show", "nobody"],
        ["sessions", "list", "--cursor", "x"],
        ["sessions", "list", "--limit", "-1"],
        ["config", "set", "no.such.key", "1"],
        ["config", "get", "no.such.key"],
        ["cron", "add", "never", "hello"],
        ["run", "hello", "--agent", "nobody"],
        ["run", "hello", "--model", "nobody/none"],
        ["run", ""],
        ["rnu"],
        ["run", "--frobnicate"],
        ["replay", "/no/such/file"],
        ["approve", "ask_nobody"],
        ["apps", "add", "/no/such/folder"],
    ],
    ids=" ".join,
)
def test_what_the_program_says_is_found_among_the_messages(
    pages: dict[str, str],
    words: list[str],
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("DRAGOMAN_CONFIG_DIR", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    with open(os.devnull) as nothing:
        monkeypatch.setattr("sys.stdin", nothing)
        assert main(words) in (1, 2)
    said = [row.removeprefix("dragoman: ") for row in capsys.readouterr().err.splitlines()]
    rows = re.findall(r"(?m)^- \*\*(.+?)\*\*", pages["messages"])
    texts = [re.sub(r"\\(?=\W)", "", row) for row in rows]
    telling = [text for text in texts if len(text.replace("…", "").strip()) > 8]
    known = [".*".join(re.escape(part) for part in text.split("…")) for text in telling]
    assert any(re.search(pattern, row) for pattern in known for row in said), said


def test_what_is_said_of_wrong_settings_is_in_it(pages: dict[str, str], tmp_path: Path) -> None:
    from dragoman.settings.load import BadSettings, load

    said = pages["messages"].replace("\\", "")
    file = tmp_path / "config.toml"
    file.write_text('[gateway]\nport = "x"\nenabled = 7\n[agents.a]\nmode = "wild"\n')
    with pytest.raises(BadSettings) as caught:
        load(str(file), env={})
    assert len(caught.value.problems) == 3
    for problem in caught.value.problems:
        key, text = re.findall(r"\d: (\S+) (must be .*) \(got", problem)[0]
        key = key.replace("agents.a.", "agents.<name>.")
        assert any(f"**… {text}**" in part and f"`{key}`" in part for part in said.split("\n- ")), (
            problem
        )
    for text in ("there is no […", "needs a command or a url", "is ZeroClaw's"):
        assert text in said.partition("that lead nowhere")[2], text


def tables() -> dict[str, dict[str, dict[str, object]]]:
    """Every table of methods in the code of the dialects, by dialect and name."""
    from importlib import import_module

    from dragoman.wire.verbs import Table

    found: dict[str, dict[str, dict[str, object]]] = {}
    top = ROOT / "src" / "dragoman" / "dialects"
    for file in sorted(top.rglob("*.py")):
        if re.search(r"(?m)^[A-Z]\w* = (_table|Table)\(", text := file.read_text()):
            where = file.relative_to(top).with_suffix("").as_posix().replace("/", ".")
            module = import_module(f"dragoman.dialects.{where}")
            for name in re.findall(r"(?m)^([A-Z]\w*) = (?:_table|Table)\(", text):
                table = getattr(module, name)
                assert isinstance(table, Table)
                found.setdefault(where.partition(".")[0], {})[name] = dict(table.verbs)
    return found


def test_every_method_of_every_version_is_in_it(pages: dict[str, str]) -> None:
    found = tables()
    assert set(found) >= {"acp", "humanlayer", "openclawos", "zeroclaw", "zot"}
    assert {"TABLE", "TABLE2"} <= set(found["acp"])
    for dialect, one in found.items():
        for name, verbs in one.items():
            heads = set(re.findall(r"(?m)^###? `([^`]+)`$", pages[dialect]))
            assert set(verbs) <= heads, (dialect, name, set(verbs) - heads)


def test_the_second_version_is_told_apart(pages: dict[str, str]) -> None:
    first, second = pages["acp"].split("\n## Version 2\n")
    second = second.partition("\n## What the server")[0]
    said = tomllib.loads((ROOT / "docs" / "protocols" / "methods.toml").read_text())["acp-2"]
    assert re.findall(r"(?m)^### `([^`]+)`$", second) == list(said)
    assert all(text in second for text in said.values())
    assert "`tool_call/cancel`" not in first and "Not there: `authenticate`" in second
