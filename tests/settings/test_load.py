"""Loading: what wins over what, and what is said about mistakes."""

import os
import pwd
from pathlib import Path

import pytest

from dragoman.engine.faults import BadInput
from dragoman.settings.load import BadSettings, load
from dragoman.settings.model import Settings
from dragoman.settings.write import set_key


def write(folder: Path, text: str, mode: int = 0o600) -> str:
    file = folder / "config.toml"
    file.write_text(text, encoding="utf-8")
    file.chmod(mode)
    return str(file)


def test_without_anything_there_are_defaults(tmp_path: Path) -> None:
    loaded = load(str(tmp_path / "config.toml"), {})
    assert loaded.settings == Settings()
    assert loaded.warnings == () and loaded.sources == {}
    assert loaded.settings.acp.max_sessions == 10
    assert loaded.settings.gateway.port == 42617


@pytest.mark.parametrize(
    ("written", "meant"),
    [
        ('model = "anthropic/claude-sonnet-4-5"', "agents.default.model"),
        ("max_steps = 5", "agents.default.max_steps"),
        ('[mcpServers.files]\ncommand = "x"', "mcp.<name>"),
        ('[mcp_servers.files]\ncommand = "x"', "mcp.<name>"),
        ('[permissions]\nallow = ["x"]', "autonomy"),
        ("acpp = 1", "acp"),
    ],
)
def test_a_key_of_an_agent_or_of_other_programs_is_told_where_it_belongs(
    tmp_path: Path, written: str, meant: str
) -> None:
    file = tmp_path / "config.toml"
    file.write_text(f"{written}\n")
    (warning,) = load(str(file), {}).warnings
    assert warning.endswith(f"; did you mean {meant}? It is ignored.")


@pytest.mark.parametrize(
    ("env", "flags", "value", "kind"),
    [
        ({}, {}, 3, "file"),
        ({"ZEROCLAW_acp__max_sessions": "4"}, {}, 4, "env"),
        ({"ZEROCLAW_acp__max_sessions": "4", "DRAGOMAN_acp__max_sessions": "5"}, {}, 5, "env"),
        ({"DRAGOMAN_acp__max_sessions": "5"}, {"acp.max_sessions": 6}, 6, "flag"),
        ({"DRAGOMAN_acp__max_sessions": "5"}, {"acp.max_sessions": None}, 5, "env"),
    ],
)
def test_flags_beat_environment_beats_file(
    tmp_path: Path, env: dict[str, str], flags: dict[str, object], value: int, kind: str
) -> None:
    loaded = load(write(tmp_path, "[acp]\nmax_sessions = 3\n"), env, flags)
    assert loaded.settings.acp.max_sessions == value
    assert loaded.sources[("acp", "max_sessions")].kind == kind


def test_environment_reaches_every_kind_of_key() -> None:
    loaded = load(
        "",
        {
            "DRAGOMAN_agents__coder__tools": "read,write",
            "DRAGOMAN_AGENTS__CODER__MODEL": "demo/demo",
            "DRAGOMAN_openclawos__hook_timeouts": '{"tool_executing": 100}',
            "DRAGOMAN_gateway__enabled": "false",
            "DRAGOMAN_SOCKET": "/not/a/key",
            "DRAGOMAN_CONFIG_DIR": "/neither",
            "OTHER_acp__max_sessions": "9",
        },
    )
    assert loaded.settings.agents["coder"].tools == ("read", "write")
    assert loaded.settings.agents["coder"].model == "demo/demo"
    assert loaded.settings.openclawos.hook_timeouts == {"tool_executing": 100}
    assert loaded.settings.gateway.enabled is False
    assert loaded.settings.acp.max_sessions == 10


def test_an_unknown_variable_of_ours_is_an_error_and_of_theirs_a_warning() -> None:
    with pytest.raises(BadSettings) as caught:
        load("", {"DRAGOMAN_acp__max_sesions": "1"})
    assert caught.value.message == (
        "DRAGOMAN_acp__max_sesions in the environment: unknown key acp.max_sesions; "
        "did you mean acp.max_sessions?"
    )
    loaded = load("", {"ZEROCLAW_zzzzz__telegram__bot": "x"})
    assert loaded.warnings == (
        "ZEROCLAW_zzzzz__telegram__bot in the environment: unknown key zzzzz. It is ignored.",
    )


def test_an_unknown_key_warns_with_line_and_nearest_name(tmp_path: Path) -> None:
    file = write(tmp_path, "# mine\n[acp]\n\nmax_sesions = 3\n[nonsense]\na = 1\n")
    loaded = load(file, {})
    assert loaded.warnings == (
        f"{file}:4: unknown key acp.max_sesions; did you mean acp.max_sessions? It is ignored.",
        f"{file}:5: unknown key nonsense. It is ignored.",
    )
    assert loaded.settings == Settings()


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            "[acp]\nmax_sessions = 0\n",
            ":2: acp.max_sessions must be a whole number, 1 or more (got 0).",
        ),
        (
            '[acp]\n# a comment\nerror_codes = "x" # y\n',
            ':3: acp.error_codes must be one of "zeroclaw", "acp" (got "x").',
        ),
        (
            '[agents.coder]\nmodel = """\nlong\n"""\nmode = "wild"\n',
            ':5: agents.coder.mode must be one of "readonly", "plan", "supervised", "full" '
            '(got "wild").',
        ),
        ("gateway = 3\n", ":1: gateway must be a table (got 3)."),
        (
            "gateway = { port = 99999 }\n",
            ":1: gateway.port must be a whole number from 0 to 65535 (got 99999).",
        ),
        (
            '[agents.a]\napi_key = ["sk-aaaaaaaaaaaaaaaaaa"]\n',
            ':2: agents.a.api_key must be a text (got "***").',
        ),
        ("[acp]\nmax_sessions 5\n", ":2: column 14: Expected '=' after a key in a key/value pair."),
        ("[acp]\n[a.b]\n[acp]\n", ":3: column 5: [acp] stands twice; put both together."),
        ("[a.b]\n[c]\n[a.b]\n", ":3: column 5: [a.b] stands twice; put both together."),
        ("agents.a.model = demo\n", ":1: column 18: This is no value; a text stands in quotes."),
        ("x = [1,", ": The file ends in the middle of a value."),
        ('{"agents": 1}', ":1: column 1: Neither a [table] nor a key with = begins like this."),
        (
            '[agents.a]\nrisk_profile = "x"\n',
            ":2: there is no [risk_profiles.x]; there are: none.",
        ),
        (
            '[agents.a]\nbackend = "acp"\n',
            ":2: agents.a has the backend acp and needs a command.",
        ),
        (
            '[acp]\ndefault_agent = "b"\n[agents.a]\n',
            ":2: acp.default_agent names no agent: 'b' (there are: a).",
        ),
        ("[mcp.x]\nargs = []\n", ":1: mcp.x needs a command or a url."),
    ],
)
def test_a_bad_value_says_file_line_key_and_what_is_allowed(
    tmp_path: Path, text: str, said: str
) -> None:
    file = write(tmp_path, text)
    with pytest.raises(BadSettings) as caught:
        load(file, {})
    assert caught.value.message == f"{file}{said}"


def test_all_problems_are_told_at_once(tmp_path: Path) -> None:
    file = write(tmp_path, '[acp]\nmax_sessions = "a"\n[gateway]\nport = -1\n')
    with pytest.raises(BadSettings) as caught:
        load(file, {"DRAGOMAN_log__level": "loud"})
    assert len(caught.value.problems) == 3
    assert caught.value.problems[2].startswith("DRAGOMAN_log__level: log.level must be one of")


def test_a_file_that_is_no_text_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "config.toml"
    file.write_bytes(b"a = '\xff'\n")
    with pytest.raises(BadSettings, match="is not UTF-8 text"):
        load(str(file), {})


@pytest.mark.parametrize(("name", "to"), [("config.toml", "config.toml"), ("config.toml", "b")])
def test_a_link_to_itself_is_told_as_such(tmp_path: Path, name: str, to: str) -> None:
    (tmp_path / name).symlink_to(to)
    if to != name:
        (tmp_path / to).symlink_to(name)
    with pytest.raises(BadSettings) as refused:
        load(str(tmp_path / name))
    assert "is a link that leads to itself. Remove it" in str(refused.value)


def test_whose_file_it_is_that_others_can_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Only its owner, and root, can close it."""
    path = tmp_path / "config.toml"
    path.write_text('[agents.a]\napi_key = "k"\n')
    path.chmod(0o644)
    for who in (0, path.stat().st_uid):
        monkeypatch.setattr(os, "geteuid", lambda who=who: who)
        assert f"chmod 600 {path}" in load(str(path), {}).warnings[0]
    monkeypatch.setattr(os, "geteuid", lambda: path.stat().st_uid + 1)
    (warning,) = load(str(path), {}).warnings
    owner = pwd.getpwuid(path.stat().st_uid).pw_name
    assert f"It belongs to {owner}" in warning and "chmod" not in warning


def test_a_directory_in_its_place_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BadSettings, match="is a directory. Move it away"):
        load(str(tmp_path), {})


@pytest.mark.parametrize(("mode", "warned"), [(0o600, False), (0o644, True)])
def test_a_readable_file_with_a_secret_warns(tmp_path: Path, mode: int, warned: bool) -> None:
    file = write(tmp_path, '[agents.a]\napi_key = "k"\n', mode)
    warnings = load(file, {}).warnings
    assert bool(warnings) is warned
    assert not warned or f"chmod 600 {file}" in warnings[0]


def test_a_file_of_comments_is_fine(tmp_path: Path) -> None:
    assert load(write(tmp_path, "# nothing yet\n"), {}).settings == Settings()


def test_the_environment_of_the_process_is_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(os.environ, "DRAGOMAN_acp__max_sessions", "77")
    assert load(str(tmp_path / "none.toml")).settings.acp.max_sessions == 77


@pytest.mark.parametrize(
    ("text", "env", "source"),
    [
        ("[gateway]\nport = 1\n", {"gateway__tls_cert": "/c.pem"}, "DRAGOMAN_gateway__tls_cert: "),
        ("[gateway]\nport = 1\n", {"gateway__tls_key": "/k.pem"}, "DRAGOMAN_gateway__tls_key: "),
        ("[agents.a]\n", {"mcp__x__args": "y"}, "DRAGOMAN_mcp__x__args: "),
        ("", {"mcp__x__args": "y"}, "DRAGOMAN_mcp__x__args: "),
        ("[mcp.y]\ncommand = 'y'\n", {"mcp__x__args": "y"}, "DRAGOMAN_mcp__x__args: "),
        ("[acp]\nmax_sessions = 2\n", {"acp__default_agent": "n"}, "DRAGOMAN_acp__default_agent: "),
        ("[acp]\ndefault_agent = 'n'\n", {"acp__max_sessions": "2"}, "{file}:2: "),
        ("[mcp.x]\n", {"mcp__x__args": "y"}, "{file}:1: "),
    ],
)
def test_what_is_wrong_is_said_of_where_it_comes_from(
    tmp_path: Path, text: str, env: dict[str, str], source: str
) -> None:
    file = write(tmp_path, text)
    with pytest.raises(BadSettings) as refused:
        load(file, {f"DRAGOMAN_{name}": value for name, value in env.items()})
    (problem,) = refused.value.problems
    assert problem.startswith(source.format(file=file))


@pytest.mark.parametrize(
    "line",
    [
        "mcp.x.args = '-pSESAME'",
        "mcp.x.args = {a = '-pSESAME'}",
        "mcp.x.args = ['-p', 1, 'SESAME']",
        "mcp.x.command = ['mysql', '-pSESAME']",
        "mcp.x.env = 'PIN=SESAME'",
        "mcp.x.env = ['PIN=SESAME']",
        "mcp.x.headers = 'X-Pin: SESAME'",
        "mcp = ['mysql -pSESAME']",
        "hooks = 'mysql -pSESAME'",
        "agents.a.args = 'mysql -pSESAME'",
        "mcp.x.args = [{a = '-pSESAME'}]",
        "log.levels = {store = {a = 'SESAME'}}",
    ],
)
def test_a_secret_in_a_value_of_another_shape_is_not_shown(tmp_path: Path, line: str) -> None:
    with pytest.raises(BadSettings, match="got ") as refused:
        load(write(tmp_path, f"{line}\n"), {})
    assert "SESAME" not in str(refused.value) and "***" in str(refused.value)


@pytest.mark.parametrize("key", ["agents.a.mode", "agents.a.domains"])
def test_bytes_that_are_no_text_are_refused_in_words(tmp_path: Path, key: str) -> None:
    given = b"caf\xe9".decode("utf-8", "surrogateescape")  # as the environment gives them
    name = f"DRAGOMAN_{key.replace('.', '__')}"
    file = write(tmp_path, "")
    with pytest.raises(BadSettings, match=f"{name}: {key} is no UTF-8 text"):
        load(file, {name: given})
    with pytest.raises(BadInput, match=f"{key} is no UTF-8 text"):
        set_key(file, key, given)
    assert Path(file).read_text() == ""
