"""Log lines: shape, levels, bound values, secrets, files."""

import asyncio
import json
import logging
import os
import stat
from collections.abc import Iterator
from pathlib import Path

import pytest

from dragoman.observe import log as logs
from dragoman.observe.log import bind, configure, get_log
from dragoman.observe.redact import HIDDEN, is_secret, redact, scrub


@pytest.fixture(autouse=True)
def fresh() -> Iterator[None]:
    configure("debug")
    yield
    configure("warning")


def test_a_line_has_time_level_area_event_and_pairs(capsys: pytest.CaptureFixture[str]) -> None:
    get_log("store").info("opened", path="/a/b c", sessions=12, none=None)
    captured = capsys.readouterr()
    stamp, rest = captured.err.split(" ", 1)
    assert len(stamp) == 24 and stamp.endswith("Z")
    assert rest == 'info store opened path="/a/b c" sessions=12 none=None\n'
    assert captured.out == ""


def test_lines_below_the_level_are_not_written(capsys: pytest.CaptureFixture[str]) -> None:
    configure("warning")
    log = get_log("x")
    log.debug("no")
    log.info("no")
    log.warning("yes")
    assert capsys.readouterr().err.count("\n") == 1
    assert log.wants("error") and not log.wants("info")


def test_a_line_stays_one_line_whatever_is_logged(capsys: pytest.CaptureFixture[str]) -> None:
    get_log("x").info("a\nb", text='say "hi"\r\n\x1b[31m', big="y" * 5000)
    err = capsys.readouterr().err
    assert err.count("\n") == 1 and "\x1b" not in err and len(err) < 2300


def test_json_lines_parse(capsys: pytest.CaptureFixture[str]) -> None:
    configure("info", as_json=True)
    get_log("x").info("event", count=3, level="strange", text="ü")
    row = json.loads(capsys.readouterr().err)
    assert row["event"] == "event" and row["count"] == 3 and row["text"] == "ü"
    assert row["level"] == "info" and row["level_"] == "strange"


async def test_bound_values_follow_their_task(capsys: pytest.CaptureFixture[str]) -> None:
    log = get_log("x")

    async def work(name: str) -> None:
        with bind(session=name):
            await asyncio.sleep(0)
            log.info("did", turn=1)

    await asyncio.gather(work("a"), work("b"))
    log.info("after")
    lines = capsys.readouterr().err.splitlines()
    assert sorted(line.split(" ", 4)[-1] for line in lines[:2]) == [
        "session=a turn=1",
        "session=b turn=1",
    ]
    assert "session" not in lines[2]


@pytest.mark.parametrize(
    "text",
    [
        "sk-ant-REDACTED",
        "Authorization: Bearer abcdef0123456789",
        "postgres://me:hunter2@db/x",
        "ghp_abcdefghijklmnopqrstuvwxyz0123",
        "AIzaSyA1234567890abcdefghijklmn",
    ],
)
def test_secrets_are_hidden_by_shape(text: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert HIDDEN in scrub(text)
    get_log("x").info("event", note=text)
    err = capsys.readouterr().err
    assert HIDDEN in err and "hunter2" not in err and "abcdefgh" not in err


def test_secrets_are_hidden_by_name(capsys: pytest.CaptureFixture[str]) -> None:
    get_log("x").info("event", api_key="short", auth_token="t", max_tokens=7)
    err = capsys.readouterr().err
    assert "short" not in err and "max_tokens=7" in err and "auth_token=***" in err


@pytest.mark.parametrize("name", ["api_key", "X-Api-Key", "OPENAI_API_KEY", "auth_token"])
def test_secret_names(name: str) -> None:
    assert is_secret(name)


@pytest.mark.parametrize("name", ["max_tokens", "key", "model", "keyboard", "require_token"])
def test_plain_names(name: str) -> None:
    assert not is_secret(name)


def test_redact_walks_plain_data() -> None:
    data = {
        "api_key": "x",
        "headers": {"X-Any": "y"},
        "list": [{"token": "z", "n": 1}],
        "empty": "",
    }
    assert redact(data) == {
        "api_key": HIDDEN,
        "headers": {"X-Any": HIDDEN},
        "list": [{"token": HIDDEN, "n": 1}],
        "empty": "",
    }
    assert data["api_key"] == "x"


def test_a_file_is_private_and_turned_over(tmp_path: Path) -> None:
    path = tmp_path / "logs" / "daemon.log"
    configure("info", str(path), limit=1000)
    for number in range(30):
        get_log("x").info("event", number=number, pad="p" * 50)
    configure("info")
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert path.stat().st_size <= 1000 and (tmp_path / "logs" / "daemon.log.1").exists()
    assert "number=29" in path.read_text()


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
def test_a_full_disk_does_not_stop_the_work() -> None:
    before = logs.lost()
    configure("info", "/dev/full")
    get_log("x").info("event")
    assert logs.lost() == before + 1


def test_an_unknown_level_is_refused() -> None:
    with pytest.raises(ValueError, match="unknown log level 'loud': use one of debug"):
        configure("loud")


def test_library_logs_are_captured(capsys: pytest.CaptureFixture[str]) -> None:
    root = logging.getLogger()
    before, level = root.handlers[:], root.level
    try:
        logs.capture("info")
        logging.getLogger("lib").warning("careful %s", "now")
        logging.getLogger("lib").debug("not this")
        assert 'warning lib "careful now"' in capsys.readouterr().err
    finally:
        root.handlers[:] = before
        root.setLevel(level)


def test_parts_have_levels_of_their_own(tmp_path):
    file = tmp_path / "log"
    levels = {"store": "debug", "dialect": "off", "dialect.acp": "info"}
    logs.configure("warning", str(file), parts=levels)
    try:
        for area in ("store", "store.worker", "dialect.zot", "dialect.acp", "gateway", "storeroom"):
            one = logs.get_log(area)
            assert one.wants("debug") == (area in ("store", "store.worker"))
            one.debug("deep")
            one.info("said")
            one.error("bad")
    finally:
        logs.configure()
    found = [(row.split()[2], row.split()[3]) for row in file.read_text().splitlines()]
    assert found == [
        ("store", "deep"), ("store", "said"), ("store", "bad"),
        ("store.worker", "deep"), ("store.worker", "said"), ("store.worker", "bad"),
        ("dialect.acp", "said"), ("dialect.acp", "bad"), ("gateway", "bad"), ("storeroom", "bad"),
    ]  # fmt: skip


def test_an_unknown_level_of_a_part_is_refused():
    with pytest.raises(ValueError, match="loud"):
        logs.configure("info", parts={"store": "loud"})


@pytest.mark.parametrize(
    "text",
    [
        "http://localhost:1/v1?token=zzzHIDEzzz",
        "GET https://x.example/a?page=2&api_key=HIDEHIDE#top",
        "https://x.example/a?X-Amz-Signature=HIDE0123",
        "the server /bin/srv --api-key HIDEHIDE ended",
        "/bin/srv --github-token=HIDE --verbose",
        "curl --password   HIDE http://localhost",
    ],
)
def test_what_a_name_in_a_text_says_to_be_secret_is_hidden(text: str) -> None:
    assert "HIDE" not in scrub(text) and HIDDEN in scrub(text)


@pytest.mark.parametrize(
    "text",
    ["run with --max-tokens 4000 please", "see https://x.example/a?page=2&sort=key", "--token --x"],
)
def test_what_only_looks_alike_stays(text: str) -> None:
    assert scrub(text) == text


def test_a_command_line_hides_what_follows_a_secrets_flag() -> None:
    given = ["--api-key", "HIDE", "--token=HIDE", "-v", "--max-tokens", "40", "--secret", "-x"]
    shown = ["--api-key", HIDDEN, f"--token={HIDDEN}", *given[3:]]
    assert redact({"args": given}) == {"args": shown}


@pytest.mark.parametrize(
    "text",
    [
        "office cannot be reached (http://user:HIDE@HIDE@models.example:8000/v1)",
        "http://:HIDEHIDE@models.example/v1",
        "https://HIDEHIDEHIDEHIDE@ingest.example/4",
        "curl -H 'X-Api-Key: HIDEHIDE' https://hook.example",
        "curl -H 'Authorization: Basic HIDEHIDEHIDE' https://hook.example",
        "curl -u me:HIDEHIDE https://hook.example",
        "PGPASSWORD=HIDE psql -h db",
        "GITHUB_PAT=HIDEHIDE tool",
        "https://login.example/back?code=HIDEHIDE&state=1",
    ],
)
def test_secrets_of_addresses_headers_and_variables_are_hidden(text: str) -> None:
    assert "HIDE" not in scrub(text) and HIDDEN in scrub(text)


@pytest.mark.parametrize(
    "text",
    [
        "ssh://git@example.org/x.git",
        "http://localhost:8080?mail=a@b.example",
        "key=value token: expected a string",
        "http://127.0.0.1:42617/ and then me@example.org",
    ],
)
def test_addresses_without_a_secret_stay(text: str) -> None:
    assert scrub(text) == text


def test_what_a_library_says_is_searched_for_secrets(capsys: pytest.CaptureFixture[str]) -> None:
    get_log("x").info("cannot export to http://me:hunter22@127.0.0.1:9/v1/traces")
    assert "hunter22" not in capsys.readouterr().err


def test_a_program_gets_its_variables_and_nobody_else_sees_them() -> None:
    given = {"env": {"THING": "HIDE"}, "args": ["API_KEY=HIDE", "A=1", "--pat=HIDE"]}
    shown = {"env": {"THING": HIDDEN}, "args": [f"API_KEY={HIDDEN}", "A=1", f"--pat={HIDDEN}"]}
    assert redact(given) == shown
