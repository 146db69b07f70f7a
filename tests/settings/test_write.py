"""Changing single keys: comments, order and everything else stay."""

import errno
import os
import stat
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dragoman.engine.faults import BadInput
from dragoman.settings import write
from dragoman.settings.explain import value_of
from dragoman.settings.lines import line_of, scan
from dragoman.settings.load import load
from dragoman.settings.shape import split

TEXT = """\
# top comment
title = 'kept'   # unknown keys too

[acp]
max_sessions = 3  # as many as I need
# the end of acp

[agents.coder] # mine
model = "demo/demo"
tools = [
  "read", # looking
  "write",
]
system_prompt = \"\"\"
[not.a.table]
x = 1
\"\"\"

[models."openai/gpt-4.1"]
context_window = 5

[gateway]
webhooks = { one = { agent = "coder" } }
"""


def test_a_value_is_replaced_in_place() -> None:
    after = write.put(TEXT, split("acp.max_sessions"), 9)
    assert after == TEXT.replace("max_sessions = 3 ", "max_sessions = 9 ")


def test_a_value_of_many_lines_is_replaced_whole() -> None:
    after = write.put(TEXT, split("agents.coder.tools"), ["ls"])
    assert 'tools = ["ls"]\nsystem_prompt' in after and "looking" not in after


def test_a_new_key_goes_to_the_end_of_its_table() -> None:
    after = write.put(TEXT, split("acp.default_agent"), "coder")
    assert 'as many as I need\ndefault_agent = "coder"\n# the end of acp' in after


def test_a_new_key_after_a_value_of_many_lines() -> None:
    after = write.put(TEXT, split("agents.coder.max_steps"), 4)
    assert 'x = 1\n"""\nmax_steps = 4\n' in after


def test_a_new_table_goes_beside_its_like_or_to_the_end() -> None:
    after = write.put(TEXT, split('models."openai/o9".vision'), True)
    beside = 'context_window = 5\n\n[models."openai/o9"]\nvision = true\n\n[gateway]\n'
    assert after == TEXT.replace("context_window = 5\n\n[gateway]\n", beside)
    assert write.put(TEXT, split("log.level"), "debug") == TEXT + '\n[log]\nlevel = "debug"\n'


def test_what_stands_above_the_next_table_stays_above_it() -> None:
    text = "[acp]\nmax_sessions = 1\n\n# about logs\n[log]\nlevel = 'info'\n"
    after = write.put(text, split("acp.default_agent"), "a")
    assert after == text.replace("= 1\n", '= 1\ndefault_agent = "a"\n')


SCATTERED = "[agents.b]\nmodel = 'x/y'\n\n[log]\nlevel = 'info'\n\n[agents.c]\nmodel = 'p/q'\n"


@pytest.mark.parametrize("key", ["agents.b.max_steps", "agents.c.max_steps", "agents.a.max_steps"])
def test_tables_that_do_not_stand_together(key: str) -> None:
    after = write.put(SCATTERED, split(key), 3)
    assert tomllib.loads(after)["agents"][key.split(".")[1]]["max_steps"] == 3
    assert [line for line in SCATTERED.splitlines() if line not in after.splitlines()] == []
    assert tomllib.loads(write.remove(after, split(key))) == tomllib.loads(SCATTERED)


def test_line_ends_of_another_system_stay() -> None:
    after = write.put("[acp]\r\nmax_sessions = 1\r\n", split("acp.max_sessions"), 2)
    assert after == "[acp]\r\nmax_sessions = 2\r\n"


def test_a_key_inside_an_inline_table() -> None:
    after = write.put(TEXT, split("gateway.webhooks.one.cwd"), "/x")
    assert 'webhooks = { one = { agent = "coder", cwd = "/x"' in after
    assert tomllib.loads(after)["gateway"]["webhooks"]["one"] == {"agent": "coder", "cwd": "/x"}


def test_a_key_beside_dotted_ones() -> None:
    after = write.put("acp.max_sessions = 1\n\n[log]\n", split("acp.default_agent"), "a")
    assert after == 'acp.max_sessions = 1\nacp.default_agent = "a"\n\n[log]\n'


def test_a_file_without_a_last_line_break() -> None:
    assert write.put("[acp]\nmax_sessions = 1", split("acp.default_agent"), "a") == (
        '[acp]\nmax_sessions = 1\ndefault_agent = "a"\n'
    )


def test_an_empty_file() -> None:
    assert write.put("", split("acp.max_sessions"), 1) == "[acp]\nmax_sessions = 1\n"


@pytest.mark.parametrize(
    ("key", "gone"),
    [
        ("acp.max_sessions", "max_sessions"),
        ("agents.coder.tools", "looking"),
        ("agents.coder", "[agents.coder]"),
        ("models", "gpt-4.1"),
        ("gateway.webhooks.one", 'coder" }'),
    ],
)
def test_unset_takes_out_a_key_or_a_table(key: str, gone: str) -> None:
    after = write.remove(TEXT, split(key))
    assert gone in TEXT and gone not in after
    assert after.startswith("# top comment\ntitle = 'kept'   # unknown keys too\n")


def test_unset_of_what_is_not_there_changes_nothing() -> None:
    assert write.remove(TEXT, split("acp.default_agent")) == TEXT
    assert write.remove(TEXT, split("no.such.thing")) == TEXT


def test_an_array_of_tables_is_not_mangled() -> None:
    with pytest.raises(BadInput):
        write.put("[[acp]]\nmax_sessions = 1\n", split("acp.max_sessions"), 2)


def test_lines_are_found() -> None:
    assert line_of(TEXT, ("acp", "max_sessions")) == 5
    assert line_of(TEXT, ("agents", "coder", "system_prompt")) == 14
    assert line_of(TEXT, ("models", "openai/gpt-4.1", "context_window")) == 20
    assert line_of(TEXT, ("gateway", "webhooks", "one", "agent")) == 23
    assert line_of(TEXT, ("acp", "nothing")) == 4
    assert line_of(TEXT, ("nowhere",)) == 0


keys = st.text(min_size=1, max_size=8)
plain = st.one_of(st.booleans(), st.integers(-(2**63), 2**63 - 1), st.text(max_size=20))
values = st.one_of(
    plain, st.floats(allow_nan=False), st.lists(plain, max_size=3), st.dictionaries(keys, plain)
)


@given(st.lists(st.tuples(keys, keys, values), min_size=1, max_size=5), st.data())
def test_whatever_is_set_reads_back_and_the_rest_stays(
    steps: list[tuple[str, str, Any]], data: st.DataObject
) -> None:
    text = TEXT
    wanted = tomllib.loads(TEXT)
    for table, key, value in steps:
        path = ("agents", table, key)
        text = write.put(text, path, value)
        wanted["agents"].setdefault(table, {})[key] = value
        assert tomllib.loads(text) == wanted
        assert {place.path for place in scan(text)} >= {path}
    table, key, _ = data.draw(st.sampled_from(steps))
    gone = write.remove(text, ("agents", table, key))
    assert key not in tomllib.loads(gone)["agents"].get(table, {})
    assert "# as many as I need" in gone


def test_set_key_makes_a_private_file(tmp_path: Path) -> None:
    file = tmp_path / "conf" / "config.toml"
    assert write.set_key(str(file), "acp.max_sessions", "7") == 7
    assert file.read_text() == "[acp]\nmax_sessions = 7\n"
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700
    assert [one.name for one in file.parent.iterdir()] == ["config.toml"]


@pytest.mark.parametrize(
    ("key", "text", "value"),
    [
        ("channels.irc.server", "irc.local", "irc.local"),
        ("channels.irc.port", "6697", 6697),
        ("channels.irc.tls", "true", True),
        ("channels.irc.rooms", '["#a", "#b"]', ["#a", "#b"]),
        ("channels.irc.password", "12345", "12345"),  # a secret is a text
        ("channels.irc.nested.deep", "a\nb = 1", "a\nb = 1"),
        ("channels.irc.nothing", "null", "null"),
        ('apps."@x/app".name', '"7"', "7"),
        ("openclawos.apps.mine.config.colour", "blue", "blue"),
    ],
)
def test_free_tables_are_changed_like_any_other(
    tmp_path: Path, key: str, text: str, value: object
) -> None:
    file = tmp_path / "config.toml"
    assert write.set_key(str(file), key, text) == value
    here = tomllib.loads(file.read_text())
    for part in split(key):
        here = here[part]
    assert here == value  # type: ignore[comparison-overlap]
    assert write.unset_key(str(file), key)


def test_set_key_follows_a_link(tmp_path: Path) -> None:
    real = tmp_path / "real.toml"
    real.write_text("# mine\n")
    link = tmp_path / "config.toml"
    link.symlink_to(real)
    write.set_key(str(link), "log.level", "debug")
    assert link.is_symlink() and 'level = "debug"' in real.read_text()


@pytest.mark.parametrize(
    ("key", "value", "said"),
    [
        ("acp.max_sesions", "1", "did you mean acp.max_sessions"),
        ("acp.max_sessions", "0", "must be a whole number, 1 or more"),
        ("acp", "1", "acp is a table, not a value"),
        ("acp..x", "1", "is not a key"),
    ],
)
def test_what_does_not_fit_is_not_written(tmp_path: Path, key: str, value: str, said: str) -> None:
    file = tmp_path / "config.toml"
    with pytest.raises(BadInput, match=said):
        write.set_key(str(file), key, value)
    assert not file.exists()


def test_a_broken_file_is_left_alone(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    file.write_text("[acp\n")
    with pytest.raises(BadInput, match="is not valid TOML and is left as it is"):
        write.set_key(str(file), "acp.max_sessions", "1")
    assert file.read_text() == "[acp\n"


def test_a_directory_that_cannot_be_made_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(BadInput, match="file is no directory but a file"):
        write.set_key(str(tmp_path / "file" / "config.toml"), "acp.max_sessions", "1")


@pytest.mark.parametrize(
    ("text", "key", "after"),
    [
        ("[acp]\nmax_sessions = 1\n", "acp.max_sessions", ""),
        ("[log]\nlevel = 'info'\n\n[acp]\nmax_sessions = 1\n", "acp.max_sessions",
         "[log]\nlevel = 'info'\n"),
        ("[acp]\nmax_sessions = 1\n\n# about logs\n[log]\nlevel = 'info'\n", "acp.max_sessions",
         "[acp]\n\n# about logs\n[log]\nlevel = 'info'\n"),
        ("[acp]\n# mine\nmax_sessions = 1\n", "acp.max_sessions", "[acp]\n# mine\n"),
        ("[agents.a]\nmodel = 'x/y'\n[agents.a.mcp]\nz = 1\n", "agents.a.model",
         "[agents.a]\n[agents.a.mcp]\nz = 1\n"),
        ("acp = { max_sessions = 1 }\nx = 1\n", "acp.max_sessions", "x = 1\n"),
        ("acp.max_sessions = 1\nx = 1\n", "acp.max_sessions", "x = 1\n"),
        ("[agents]\n[agents.a]\nmodel = 'x/y'\n", "agents.a.model", ""),
    ],
)  # fmt: skip
def test_a_table_that_became_empty_goes(text: str, key: str, after: str) -> None:
    assert write.remove(text, split(key)) == after


@pytest.mark.parametrize("key", ["log.levels.gateway.push", 'log.levels."gateway.push"'])
def test_a_name_with_dots_needs_no_quotes_in_a_table_of_values(tmp_path: Path, key: str) -> None:
    file = str(tmp_path / "config.toml")
    assert write.set_key(file, key, "debug") == "debug"
    loaded = load(file, {})
    assert loaded.settings.log.levels == {"gateway.push": "debug"} and not loaded.warnings
    assert value_of(loaded, key) == "debug"
    assert write.unset_key(file, key) and not write.unset_key(file, key)


def test_a_full_disk_asks_for_room_not_for_rights(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(_: int) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    file = tmp_path / "config.toml"
    file.write_text("before")
    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(BadInput) as told:
        write.save(str(file), "after")
    assert told.value.hint.startswith("Make room there, ")
    assert file.read_text() == "before" and os.listdir(tmp_path) == ["config.toml"]


def test_a_value_of_json_is_written_as_what_it_is(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    for value in ({"a": 1}, [1], []):
        with pytest.raises(BadInput, match=r"agents\.main\.model must be a text"):
            write.with_value(str(file), "agents.main.model", value)
    given: dict[str, Any] = {
        "agents.main.model": "demo/demo",
        "acp.max_sessions": 7,
        "agents.main.allow_env": ["A"],
    }
    for key, one in given.items():
        file.write_text(write.with_value(str(file), key, one))
    kept = tomllib.loads(file.read_text())
    assert kept["agents"]["main"] == {"model": "demo/demo", "allow_env": ["A"]}
    assert kept["acp"] == {"max_sessions": 7}
    without = write.with_value(str(file), "agents.main.model", None)  # it was the word "null"
    assert "model" not in tomllib.loads(without)["agents"]["main"]


def test_what_several_processes_set_at_once_is_all_there(tmp_path: Path) -> None:
    file = tmp_path / "config" / "config.toml"
    values = {
        "limits.max_clients": "100",
        "limits.max_sessions": "200",
        "memory.max_entries": "500",
        "log.level": "debug",
    }
    program = (
        "import sys; from dragoman.settings import write; write._PATIENCE = 60.0;"
        " sys.stdin.readline(); write.set_key(*sys.argv[1:])"
    )
    setting = [
        subprocess.Popen(
            [sys.executable, "-c", program, str(file), key, value], stdin=subprocess.PIPE
        )
        for key, value in values.items()
    ]
    for one in setting:  # all have started by now, or soon
        assert one.stdin is not None
        one.stdin.write(b"\n")
        one.stdin.close()
    assert [one.wait(60) for one in setting] == [0, 0, 0, 0]
    found = tomllib.loads(file.read_text())
    assert {f"{table}.{key}": str(v) for table, of in found.items() for key, v in of.items()} == (
        values
    )


def test_a_process_that_never_ends_its_change_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = str(tmp_path / "config.toml")
    monkeypatch.setattr(write, "_PATIENCE", 0.05)
    with write.changing(file):
        for change in (
            lambda: write.set_key(file, "log.level", "debug"),
            lambda: write.unset_key(file, "log.level"),
            lambda: write.put_table(file, ("log",), {"level": "debug"}),
        ):
            with pytest.raises(BadInput, match="Another process has been changing"):
                change()
    write.set_key(file, "log.level", "debug")


def test_where_nothing_can_be_locked_it_is_written_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(fd: int, how: int) -> None:
        raise OSError(errno.EBADF, "Bad file descriptor")  # as some network file systems do

    monkeypatch.setattr("fcntl.flock", refused)
    file = tmp_path / "config.toml"
    write.set_key(str(file), "log.level", "debug")
    assert "debug" in file.read_text()
