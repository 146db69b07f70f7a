"""Where everything is, for any environment."""

import subprocess
import sys

import pytest

from dragoman.engine.faults import BadInput
from dragoman.settings.places import endpoint, endpoints, names, native, places

HOME = {"HOME": "/home/ann"}
OWN_CONFIG = "/home/ann/.config/dragoman"
OWN_DATA = "/home/ann/.local/share/dragoman"


def where(env: dict[str, str], **rest: str) -> tuple[str, str]:
    found = places({**HOME, **env}, platform="linux", **rest)
    return found.config_dir, found.data_dir


@pytest.mark.parametrize(
    ("env", "config", "data"),
    [
        ({}, OWN_CONFIG, OWN_DATA),
        ({"XDG_CONFIG_HOME": "/c", "XDG_DATA_HOME": "/d"}, "/c/dragoman", "/d/dragoman"),
        (
            {"XDG_DATA_HOME": "relative"},
            OWN_CONFIG,
            OWN_DATA,
        ),
        ({"DRAGOMAN_CONFIG_DIR": "/x"}, "/x", "/x/data"),
        ({"DRAGOMAN_CONFIG_DIR": "~/x"}, "/home/ann/x", "/home/ann/x/data"),
        ({"DRAGOMAN_CONFIG_DIR": " "}, OWN_CONFIG, OWN_DATA),
        ({"DRAGOMAN_CONFIG_DIR": "/x", "DRAGOMAN_DATA_DIR": "/y"}, "/x", "/y"),
        ({"DRAGOMAN_DATA_DIR": "/y"}, OWN_CONFIG, "/y"),
        ({"ZEROCLAW_CONFIG_DIR": "/z"}, "/z", "/z/data"),
        ({"ZEROCLAW_CONFIG_DIR": "/z", "ZEROCLAW_DATA_DIR": "/q"}, "/z", "/z/data"),
        ({"ZEROCLAW_CONFIG_DIR": "/z", "DRAGOMAN_CONFIG_DIR": "/x"}, "/x", "/x/data"),
        ({"ZEROCLAW_CONFIG_DIR": "/z", "DRAGOMAN_DATA_DIR": "/y"}, "/z", "/y"),
        ({"ZEROCLAW_DATA_DIR": "/q/data"}, OWN_CONFIG, "/q/data"),
        ({"ZEROCLAW_DATA_DIR": "/q/else"}, OWN_CONFIG, "/q/else/data"),
        ({"ZEROCLAW_DATA_DIR": "/q", "DRAGOMAN_DATA_DIR": "/y"}, OWN_CONFIG, "/y"),
    ],
)
def test_directories(env, config, data):
    assert where(env) == (config, data)


def test_the_command_line_wins():
    env = {"DRAGOMAN_CONFIG_DIR": "/x", "ZEROCLAW_CONFIG_DIR": "/z"}
    assert where(env, config_dir="/flag") == ("/flag", "/flag/data")
    assert where({"DRAGOMAN_DATA_DIR": "/y"}, config_dir="/flag") == ("/flag", "/y")
    assert places({}, "/flag").config_file == "/flag/config.toml"


def test_a_zeroclaw_data_directory_that_holds_the_configuration(tmp_path):
    (tmp_path / "config.toml").write_text("")
    found = places({**HOME, "ZEROCLAW_DATA_DIR": str(tmp_path)}, platform="linux")
    assert (found.config_dir, found.data_dir) == (str(tmp_path), str(tmp_path / "data"))


def test_given_tells_a_chosen_place_from_the_platforms_own():
    assert not places(HOME).given
    assert places({**HOME, "DRAGOMAN_DATA_DIR": "/y"}).given
    assert places(HOME, "/flag").given


@pytest.mark.parametrize("name", ["--config-dir", "DRAGOMAN_CONFIG_DIR", "ZEROCLAW_CONFIG_DIR"])
@pytest.mark.parametrize(
    "env",
    [{}, {"XDG_DATA_HOME": "/x"}, {"XDG_CONFIG_HOME": "/x/../c/"}, {"DRAGOMAN_DATA_DIR": "/y"},
     {"ZEROCLAW_DATA_DIR": "/z"}],
)  # fmt: skip
def test_the_platforms_own_directory_by_its_name_is_no_other_installation(env, name):
    env = {**HOME, **env}
    unnamed = places(env, platform="linux")
    flag = unnamed.config_dir if name == "--config-dir" else None
    env |= {} if flag else {name: unnamed.config_dir}
    named = places(env, flag, platform="linux")
    assert (named.data_dir, named.given) == (unnamed.data_dir, unnamed.given)
    assert named.config_file == unnamed.config_file


def test_the_platforms_own_directory_by_its_name_is_not_zeroclaws(tmp_path):
    (tmp_path / "config.toml").touch()
    env = {**HOME, "ZEROCLAW_DATA_DIR": str(tmp_path)}
    own = places(HOME, platform="linux")
    named = places(env, own.config_dir, platform="linux")
    assert (named.config_dir, named.data_dir) == (own.config_dir, own.data_dir)


def test_other_platforms():
    mac = places(HOME, platform="darwin")
    assert mac.config_dir == "/home/ann/Library/Application Support/dragoman"
    windows = places({"APPDATA": "/r", "LOCALAPPDATA": "/l"}, platform="win32")
    assert (windows.config_dir, windows.data_dir) == ("/r/dragoman", "/l/dragoman/data")


def test_default_sockets():
    assert endpoints({}, places({}, "/c")) == {
        "zeroclaw": "/c/data/daemon.sock",
        "humanlayer": "/c/data/humanlayer.sock",
        "openclawos": "/c/data/kernel.sock",
        "acp": "/c/data/acp.sock",
        "any": "/c/data/any.sock",
    }


@pytest.mark.parametrize(
    ("name", "ours", "theirs"),
    [
        ("zeroclaw", "DRAGOMAN_SOCKET", "ZEROCLAW_SOCKET"),
        ("humanlayer", "DRAGOMAN_HUMANLAYER_SOCKET", "HUMANLAYER_DAEMON_SOCKET"),
        ("openclawos", "DRAGOMAN_KERNEL_SOCKET", "OPENCLAWOS_KERNEL_SOCKET"),
        ("acp", "DRAGOMAN_ACP_SOCKET", ""),
        ("any", "DRAGOMAN_ANY_SOCKET", ""),
    ],
)
def test_overrides(name, ours, theirs):
    at = places({}, "/c")
    assert endpoint(name, {ours: "/o.sock"}, at) == "/o.sock"
    assert endpoint(name, {ours: "  "}, at) == endpoint(name, {}, at)
    assert endpoint(name, {**HOME, ours: "~/o.sock"}, at) == "/home/ann/o.sock"
    if theirs:
        assert endpoint(name, {theirs: "/t.sock"}, at) == "/t.sock"
        assert endpoint(name, {theirs: "/t.sock", ours: "/o.sock"}, at) == "/o.sock"
    assert [endpoint(other, {ours: "/o.sock"}, at) for other in names()].count("/o.sock") == 1


def test_named_pipes_differ_by_directory_and_dialect():
    one = endpoints({}, places({}, "/c"), platform="win32")
    two = endpoints({}, places({}, "/d"), platform="win32")
    assert all(path.startswith("\\\\.\\pipe\\dragoman-") for path in one.values())
    assert len({*one.values(), *two.values()}) == 10
    assert one == endpoints({}, places({}, "/c"), platform="win32")


def test_native_places():
    env = {**HOME, "XDG_RUNTIME_DIR": "/run/user/1"}
    assert native(env) == [
        ("zeroclaw", "/home/ann/.zeroclaw/data/daemon.sock"),
        ("humanlayer", "/home/ann/.humanlayer/daemon.sock"),
        ("openclawos", "/run/user/1/openclawos/kernel.sock"),
        ("openclawos", "/tmp/openclawos/kernel.sock"),  # the SDK knows no other place
    ]
    assert [path for name, path in native(HOME) if name == "openclawos"] == [
        "/tmp/openclawos/kernel.sock"
    ]


def test_a_path_too_long_names_the_way_out():
    deep = "/" + "d" * 100
    with pytest.raises(BadInput, match="DRAGOMAN_DATA_DIR") as caught:
        endpoint("zeroclaw", {}, places({}, deep))
    assert "107" in str(caught.value) and "DRAGOMAN_SOCKET" in str(caught.value)
    with pytest.raises(BadInput, match="Set ZEROCLAW_SOCKET"):
        endpoint("zeroclaw", {"ZEROCLAW_SOCKET": "/" + "ü" * 60}, places({}, "/c"))
    fits = "/" + "x" * 106
    assert endpoint("acp", {"DRAGOMAN_ACP_SOCKET": fits}, places({}, "/c")) == fits


def test_an_unknown_name():
    with pytest.raises(BadInput, match="zeroclaw"):
        endpoint("nope", {}, places({}, "/c"))


def test_it_is_cheap_to_import():
    code = (
        "import sys; import dragoman.settings.places\n"
        "print([m for m in ('asyncio', 'msgspec', 'pathlib', 'socket', 're') if m in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-I", "-c", code], capture_output=True, text=True, timeout=60
    )
    base = subprocess.run(
        [sys.executable, "-I", "-c", code.replace("dragoman.settings.places", "os")],
        capture_output=True,
        text=True,
        timeout=60,
    )
    assert done.stdout == base.stdout, done.stderr


def test_an_empty_home_is_the_one_the_system_knows() -> None:
    import os
    import pwd

    home = pwd.getpwuid(os.getuid()).pw_dir
    for env in ({"HOME": ""}, {}):
        where = places(env, platform="linux")
        assert where.config_dir == f"{home}/.config/dragoman"
        assert where.data_dir == f"{home}/.local/share/dragoman"


def test_what_was_kept_beside_the_platforms_own_configuration_is_found_again(tmp_path):
    own = tmp_path / ".config" / "dragoman"
    env = {"HOME": str(tmp_path)}
    assert places(env, str(own), "linux").data_dir == str(tmp_path / ".local/share/dragoman")
    (own / "data").mkdir(parents=True)
    assert places(env, str(own), "linux").data_dir == str(own / "data")
    assert places(env, None, "linux").data_dir == str(tmp_path / ".local/share/dragoman")
