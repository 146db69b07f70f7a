"""`dragoman config`, run as people run it."""

import json
from pathlib import Path

import pytest

from dragoman.cli import reach
from dragoman.cli.main import main


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("DRAGOMAN_CONFIG_DIR", str(tmp_path))
    return tmp_path


def run(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    code = main(["config", *words])
    captured = capsys.readouterr()
    return code, captured.out, captured.err


def test_set_get_explain_unset(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(capsys, "get", "acp.max_sessions") == (0, "10\n", "")
    code, out, _ = run(capsys, "set", "acp.max_sessions", "5")
    assert code == 0 and out.startswith("acp.max_sessions = 5")
    assert run(capsys, "get", "acp.max_sessions")[1] == "5\n"
    code, out, _ = run(capsys, "explain", "acp.max_sessions")
    assert "a whole number, 1 or more" in out and f"file {folder}/config.toml:2" in out
    assert run(capsys, "unset", "acp.max_sessions")[0] == 0
    assert run(capsys, "get", "acp.max_sessions")[1] == "10\n"
    code, _, err = run(capsys, "unset", "acp.max_sessions")
    assert code == 1 and "is not set in" in err


@pytest.mark.parametrize("runs", [True, False])
@pytest.mark.parametrize(
    ("key", "value", "waits"),
    [
        ("gateway.port", "4711", True),
        ("gateway.allowed_origins", "https://a.example", False),
        ("listen.native", "true", True),
        ("store.synchronous", "full", True),
        ("agents.default.mode", "full", False),
    ],
)
def test_what_waits_for_the_next_start_is_told_where_a_daemon_runs(
    key: str, value: str, waits: bool, runs: bool, folder: Path,
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    monkeypatch.setattr(reach, "reload", lambda args: runs)
    for words in (("set", key, value), ("unset", key)):
        said = run(capsys, *words)[2]
        assert ("at its next start: dragoman stop; dragoman daemon" in said) is (waits and runs)


def test_config_dir_flag_wins(
    folder: Path, tmp_path_factory: pytest.TempPathFactory, capsys: pytest.CaptureFixture[str]
) -> None:
    other = tmp_path_factory.mktemp("other")
    assert run(capsys, "set", "log.level", "debug", "--config-dir", str(other))[0] == 0
    assert (other / "config.toml").exists() and not (folder / "config.toml").exists()
    assert run(capsys, "path", f"--config-dir={other}")[1] == f"{other}/config.toml\n"


def test_json(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run(capsys, "set", "agents.a.tools", "read,write")
    assert json.loads(run(capsys, "get", "agents.a.tools", "--json")[1]) == ["read", "write"]
    assert json.loads(run(capsys, "path", "--json")[1]) == {
        "config": f"{folder}/config.toml",
        "exists": True,
        "data": f"{folder}/data",
    }
    rows = json.loads(run(capsys, "explain", "acp", "--json")[1])
    assert {row["key"] for row in rows} >= {"acp.max_sessions"}
    assert json.loads(run(capsys, "schema")[1])["title"] == "Dragoman configuration"


def test_secrets_are_shown_only_when_asked(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for words in (
        ("set", "agents.a.api_key", "hush-hush"),
        ("get",),
        ("get", "agents.a.api_key"),
        ("get", "agents"),
        ("explain", "agents.a"),
    ):
        code, out, err = run(capsys, *words)
        assert code == 0 and "hush-hush" not in out + err, words
    assert run(capsys, "get", "agents.a.api_key", "--secrets")[1] == "hush-hush\n"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("set", "acp.max_sesions", "5"), "did you mean acp.max_sessions?"),
        (("set", "acp.max_sessions", "many"), "must be a whole number, 1 or more (got 'many')"),
        (("get", "nothing.here"), "unknown key nothing"),
        (("explain", "a..b"), "is not a key"),
    ],
)
def test_mistakes_say_the_way_out(
    folder: Path, capsys: pytest.CaptureFixture[str], words: tuple[str, ...], said: str
) -> None:
    code, out, err = run(capsys, *words)
    assert (code, out) == (1, "") and said in err and err.startswith("dragoman: ")
    assert len(err.splitlines()) == 1


def test_a_bad_file_names_its_line(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "config.toml").write_text("[acp]\nmax_sessions = 0\n")
    code, _, err = run(capsys, "get")
    assert code == 1
    assert f"{folder}/config.toml:2: acp.max_sessions must be a whole number, 1 or more" in err


def test_an_unknown_key_warns_on_stderr(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (folder / "config.toml").write_text("[acp]\nmax_sesions = 5\n")
    code, out, err = run(capsys, "get", "--json")
    assert code == 0 and json.loads(out) == {}
    assert err.startswith("warning: ") and "did you mean acp.max_sessions?" in err


def test_a_good_value_is_set_while_others_are_bad(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (folder / "config.toml").write_text('[acp]\nmax_sessions = "many"\n')
    code, out, err = run(capsys, "set", "log.level", "debug")
    assert code == 0 and out.startswith('log.level = "debug"')
    assert err.startswith("warning: ") and "acp.max_sessions must be" in err
    code, out, err = run(capsys, "unset", "acp.max_sessions")
    assert code == 0 and err == ""
    assert (folder / "config.toml").read_text() == '[log]\nlevel = "debug"\n'


@pytest.mark.parametrize("given", ["postgresql://u:secret@h/n", " SQLITE:///x", "file://x"])
def test_an_address_is_no_store_s_file(
    folder: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, given: str
) -> None:
    code, _, err = run(capsys, "set", "store.path", given)
    assert code == 1 and "store.database" in err and "secret" not in err
    assert not (folder / "config.toml").exists()
    (folder / "config.toml").write_text(f'[store]\npath = "{given}"\n')
    code, _, err = run(capsys, "get")
    assert code == 1 and f"{folder}/config.toml:2" in err
    assert "store.database" in err and "secret" not in err
    (folder / "config.toml").unlink()
    monkeypatch.setenv("DRAGOMAN_store__path", given)
    code, _, err = run(capsys, "get")
    assert code == 1 and "store.database" in err and "secret" not in err


@pytest.mark.parametrize("given", ["my.db", ":memory:", "/srv/odd://name", "a:b", "~/x.db", ""])
def test_a_file_is_taken_for_the_store(
    folder: Path, capsys: pytest.CaptureFixture[str], given: str
) -> None:
    assert run(capsys, "set", "store.path", given)[0] == 0


def test_an_unknown_key_ends_its_sentence(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for verb in ("get", "explain"):
        assert "unknown key foo. See: dragoman config explain" in run(capsys, verb, "foo")[2]
    assert "unknown key foo. See:" in run(capsys, "set", "foo", "1")[2]


@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
@pytest.mark.parametrize("end", [b"\n", b"\r\n"])
def test_a_file_keeps_its_line_ends_and_its_mark(
    folder: Path, capsys: pytest.CaptureFixture[str], mark: bytes, end: bytes
) -> None:
    file = folder / "config.toml"
    lines = [
        b"# mine",
        b"[log]",
        b'level = "debug" # loud',
        b"",
        b"[acp]",
        b"max_sessions = 3",
        b"",
    ]
    file.write_bytes(mark + end.join(lines))
    assert run(capsys, "set", "acp.max_sessions", "5")[0] == 0
    lines[5] = b"max_sessions = 5"
    assert file.read_bytes() == mark + end.join(lines)
    assert run(capsys, "set", "gateway.port", "4711")[0] == 0
    data = file.read_bytes()
    assert data.startswith(mark + b"# mine" + end) and data.count(b"\xef\xbb\xbf") == bool(mark)
    assert data.count(b"\n") == data.count(end) and data.count(b"\r") == data.count(b"\r\n")
    assert run(capsys, "get", "gateway.port")[1] == "4711\n"
    assert run(capsys, "unset", "gateway.port")[0] == 0
    assert file.read_bytes() == mark + end.join(lines)
