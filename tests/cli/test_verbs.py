"""Commands by themselves, with a host that knows its answers by heart: one test or more for each
module of `cli/verbs` (acp, agents, approvals, approve, apps, bug_report, daemon, dialects,
doctor, login, logs, mcp, memory, models, pair, self_test, status, stop, tap, terminal,
upgrade_check, and those of `sessions`).
"""

import argparse
import json
import os
import re
import resource
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from dragoman.cli import reach
from dragoman.cli.verbs import (
    acp,
    agents,
    approvals,
    approve,
    apps,
    bug_report,
    daemon,
    dialects,
    doctor,
    login,
    logs,
    mcp,
    memory,
    models,
    pair,
    self_test,
    status,
    stop,
    tap,
    terminal,
    upgrade_check,
)
from dragoman.cli.verbs.sessions import changing, following, rows
from dragoman.client.problems import ConnectionGone, NotRunning
from dragoman.engine.faults import BadInput, UnknownSession
from dragoman.engine.ports.rows import DoctorRow


class Host:
    """Answers by method; notices come from a list, then the connection ends."""

    def __init__(self, **answers: Any) -> None:
        self.answers = answers
        self.asked: list[Any] = []
        self.told: list[Any] = []
        self.waiting = True

    def __enter__(self) -> "Host":
        return self

    def __exit__(self, *_: object) -> None:
        return None

    def call(self, method: str, params: Any = None, **_: Any) -> Any:
        name = method.rpartition("/")[2]
        self.asked.append((name, params))
        found = self.answers.get(name, {})
        found = found(params) if callable(found) else found
        if isinstance(found, Exception):
            raise found
        return found

    def begin(self, method: str, params: Any = None) -> int:
        self.asked.append((method.rpartition("/")[2], params))
        return 7

    def message(self, wait: float | None = None, *, reader: int = -1) -> Any:
        if not self.told:
            raise ConnectionGone("the daemon ended")
        found = self.told.pop(0)
        if isinstance(found, BaseException):
            raise found
        return found

    def notices(self, *, reader: int = -1) -> Any:
        while self.told:
            yield self.told.pop(0)
        raise ConnectionGone("the daemon ended")


@pytest.fixture
def host(monkeypatch: pytest.MonkeyPatch) -> Host:
    made = Host()
    monkeypatch.setattr(reach, "daemon", lambda args: made)
    monkeypatch.setattr(reach, "host", lambda args: made)
    return made


@pytest.fixture
def away(monkeypatch: pytest.MonkeyPatch) -> None:
    def none(args: Any) -> Any:
        raise NotRunning("nobody listens")

    monkeypatch.setattr(reach, "daemon", none)


def args(**given: Any) -> argparse.Namespace:
    usual = {"config_dir": None, "json": False, "verb": "test"}
    return argparse.Namespace(**{**usual, **given})


Out = pytest.CaptureFixture[str]
SESSION = {
    "id": "s-0123456789", "title": "", "query": "do it\n\n<context name=x>", "agent": "a",
    "status": "idle", "error": "", "turns": 1, "cost": 0.5, "updated_at": 0, "origin": "acp",
    "created_at": 0, "model": "p/m", "mode": "full", "reasoning": "", "cwd": "/w", "parent": None,
    "active_ms": 1000, "messages": 2, "usage": {"input": 1, "output": 2}, "last_seq": 9,
    "archived": False,
}  # fmt: skip
ASK = {"id": "ask-1", "session": "s-0123456789", "kind": "tool", "title": "Run it", "at": 0,
       "tool": "bash", "args": {"command": "ls"}, "digest": "d"}  # fmt: skip


# --- agents, models ---


def test_agents_marks_the_default_and_shows_problems(host: Host, capsys: Out) -> None:
    row = {"alias": "a", "model": "p/m", "problem": "", "mode": "full", "reasoning": "",
           "backend": "builtin"}  # fmt: skip
    broken = {**row, "alias": "b", "model": "", "problem": "no such profile"}
    host.answers["agents"] = {"agents": [row, broken], "default": "a"}
    assert agents.run(args(sub="list")) == 0
    said = capsys.readouterr().out
    assert "a *" in said and "no such profile" in said
    assert agents.run(args(sub="list", json=True)) == 0
    assert json.loads(capsys.readouterr().out)["default"] == "a"


def test_models_shortens_figures_and_names_who_lacks_a_key(host: Host, capsys: Out) -> None:
    model = {"context_window": 2_000_000, "max_output": 8_192, "price_input": 3.0, "vision": True}
    host.answers["models"] = {"models": [{"ref": "p/m", "model": model}], "without_key": ["x"]}
    assert models.run(args(provider="p")) == 0
    out, err = capsys.readouterr()
    assert "2M" in out and "8k" in out and "vision" in out and "without a key: x" in err
    assert host.asked == [("models", {"provider": "p"})]
    assert models._price(None) == "" and models._thousands(128_000) == "128k"


def test_models_tells_of_a_key_that_the_daemon_has_not(
    host: Host, capsys: Out, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = {"google": ["GEMINI_API_KEY", "GOOGLE_API_KEY"], "xai": ["XAI_API_KEY"]}
    host.answers["models"] = {"models": [], "without_key": [*names], "key_variables": names}
    for name in ("GEMINI_API_KEY", "XAI_API_KEY"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("GOOGLE_API_KEY", "")
    models.run(args(provider=None))
    assert "only this shell" not in capsys.readouterr().err
    monkeypatch.setenv("GOOGLE_API_KEY", "k")
    models.run(args(provider=None))
    told = capsys.readouterr().err
    assert "only this shell has a key for google, not" in told
    assert "dragoman login google" in told and "dragoman daemon --background." in told
    models.run(args(provider=None, config_dir="/a b"))
    told = capsys.readouterr().err
    assert "dragoman login google --config-dir '/a b'." in told
    assert "stop --config-dir '/a b' && dragoman daemon --background --config-dir '/a b'." in told
    del host.answers["models"]["key_variables"]  # an earlier daemon does not say
    assert models.run(args(provider=None)) == 0


# --- approvals, approve, deny ---


def test_approvals_lists_and_says_when_nothing_waits(host: Host, capsys: Out) -> None:
    host.answers["approvals"] = {"approvals": [{"ask": ASK}]}
    given = {"sub": "list", "watch": False, "all": True}
    assert approvals.run(args(**given)) == 0
    said = capsys.readouterr().out
    assert "ask-1" in said and "waits" in said and "ls" in said
    host.answers["approvals"] = {"approvals": []}
    approvals.run(args(**given))
    assert "nothing waits" in capsys.readouterr().out


def test_approvals_removes_the_rule_that_is_meant(host: Host, capsys: Out) -> None:
    rules = [{"id": "rule-ab"}, {"id": "rule-ac"}]
    host.answers |= {
        "rules": {"rules": rules},
        "removeRule": {"rule": {"id": "r", "words": "w\nx"}},
    }
    given = {"sub": "rules", "action": "remove"}
    with pytest.raises(BadInput, match="2 rules begin with rule-a"):
        approvals.run(args(**given, id="rule-a"))
    with pytest.raises(BadInput, match="Which rule"):
        approvals.run(args(**given, id=""))
    approvals.run(args(**given, id="rule-ab"))
    assert host.asked[-1] == ("removeRule", {"id": "rule-ab"})
    assert "\nx" not in capsys.readouterr().out
    place = {"lasts": "project", "project": "/p", "agent": "a"}
    assert approvals._place(place) == "project /p (agent a)"


def test_approvals_watching_ends_with_the_daemon(host: Host, capsys: Out) -> None:
    host.answers["approvals"] = {"approvals": [{"ask": ASK}]}
    settled = {"type": "settled", "ask_id": "ask-1", "verdict": "allow", "by": None}
    host.told = [
        # It came while the list was made: shown once.
        {"method": "dragoman/event", "params": {"event": {"type": "asked", "ask": ASK}}},
        {"method": "dragoman/event", "params": {"event": settled}},
        {"method": "other", "params": None},
    ]
    assert approvals.run(args(sub="list", watch=True, json=True)) == 1
    rows_said = [json.loads(line) for line in capsys.readouterr().out.splitlines()]
    assert [list(row) for row in rows_said] == [["asked"], ["settled"]]


def test_approve_needs_the_digest_of_what_the_list_cannot_show(host: Host, capsys: Out) -> None:
    host.answers |= {
        "approvals": {"approvals": [{"ask": ASK}]},
        "approval": {"approval": {"ask": ASK}},
        "answer": {
            "settled": {"verdict": "allow_always", "tool": "bash", "scope": "ls", "rule": "r"}
        },
    }
    given = {
        "id": "ask",
        "always": False,
        "scope": "exact",
        "for": None,
        "comment": "",
        "digest": "",
    }
    assert approve.run(args(**given)) == 0
    sent = host.asked[-1][1]
    assert (sent["verdict"], sent["digest"], sent["scope"]) == ("allow_always", "d", "exact")
    assert "remembered: ls (r)" in capsys.readouterr().out
    long = {**ASK, "args": {"command": "x" * 9_000}}
    host.answers["approval"] = {"approval": {"ask": long}}
    with pytest.raises(BadInput, match="longer than the list shows"):
        approve.run(args(**given))


def test_deny_gives_the_reason_and_no_digest(host: Host, capsys: Out) -> None:
    host.answers |= {
        "approvals": {"approvals": []}, "answer": {"settled": {"verdict": "deny"}},
    }  # fmt: skip
    assert approve.deny(args(id="x", reason="no")) == 0
    assert host.asked[-1][1] == {"id": "x", "verdict": "deny", "comment": "no"}
    assert "denied" in capsys.readouterr().out


# --- apps ---


def test_apps_lists_what_is_installed_kept_and_outside(
    host: Host, capsys: Out, tmp_path: Path
) -> None:
    (tmp_path / "config.toml").write_text('[openclawos.apps."@a/k"]\ncommand = "false"\n')
    host.answers["apps"] = {
        "kept": [
            {"id": "@a/k", "state": "failed", "pid": None, "restarts": 3, "problem": "exit 1"}
        ],
        "connected": [{"id": "@b/c", "state": "ready", "capabilities": ["tool:t"]}],
    }
    assert apps.run(args(sub="list", config_dir=str(tmp_path), json=True)) == 0
    found = {row["id"]: row for row in json.loads(capsys.readouterr().out)["apps"]}
    assert found["@a/k"]["problem"] == "exit 1" and found["@b/c"]["state"] == "outside"
    assert apps.run(args(sub="restart", config_dir=str(tmp_path), id="@a/k")) == 0
    assert "Restarted @a/k." in capsys.readouterr().out


def test_apps_logs_are_those_of_one_app(tmp_path: Path, capsys: Out) -> None:
    log = tmp_path / "data" / "daemon.log"
    log.parent.mkdir()
    log.write_text('t info apps x app=@a/b n=1\nt info apps y app=@a/bc\n{"app":"@a/b"}\n')
    assert apps.run(args(sub="logs", config_dir=str(tmp_path), id="@a/b", lines=9)) == 0
    assert len(capsys.readouterr().out.splitlines()) == 2


# --- bug_report ---


@pytest.mark.usefixtures("away")
def test_bug_report_is_shown_written_once_and_keeps_secrets(
    tmp_path: Path, capsys: Out, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(bug_report, "_doctor", lambda where: f"{Path.home()}/x is fine")
    secret = "sk-" + "a1" * 24
    (tmp_path / "config.toml").write_text(
        f'[providers.openai]\napi_key = "{secret}"\nbase_url = "http://h/v1?token=in-the-address"\n'
        '[mcp.m]\ncommand = "true"\nargs = ["--token", "in-the-words", "--api-key=in-a-word"]\n'
        'env = { PLAIN = "in-a-variable" }\n'
    )
    path = tmp_path / "report.txt"
    given = args(config_dir=str(tmp_path), lines=5, output=str(path), yes=True)
    assert bug_report.run(given) == 0
    text = path.read_text()
    assert "no daemon runs" in text and secret not in text and "~/x is fine" in text
    assert "PLAIN" in text and not re.search("in-(the|a)-", text)
    assert path.stat().st_mode & 0o777 == 0o600
    with pytest.raises(BadInput, match="is there already"):
        bug_report.run(given)
    path.unlink()
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (100, before[1]))  # as little room as a full disk has
    try:
        with pytest.raises(BadInput, match="cannot be written: File too large"):
            bug_report.run(given)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert not path.exists()  # nor does a half one keep the next from being written
    monkeypatch.setattr(sys, "stdin", open(os.devnull))  # noqa: SIM115
    assert bug_report.run(args(config_dir=str(tmp_path), lines=5, output="x", yes=False)) == 1
    sys.stdin.close()


# --- daemon, acp, terminal ---


def test_daemon_hands_over_or_goes_to_the_background(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dragoman.cli.background.start", lambda given: 5)
    assert daemon.run(args(background=True)) == 5
    monkeypatch.setattr("dragoman.daemon.main.main", lambda given: 6)
    assert daemon.run(args(background=False)) == 6


def test_acp_serves_alone_joins_or_logs_in(monkeypatch: pytest.MonkeyPatch, capsys: Out) -> None:
    served: list[Any] = []
    monkeypatch.setattr("dragoman.stdio.acp.main", lambda *words: served.append(words[1:]) or 0)
    monkeypatch.setattr("dragoman.stdio.joining.path_of", lambda *words: "/p")
    monkeypatch.setattr("dragoman.stdio.joining.reached", lambda path: "sock")
    monkeypatch.setattr("dragoman.stdio.joining.greet", lambda sock: "begun")
    usual = {"login": "", "alone": False, "max_sessions": None, "session_timeout": None}
    acp.run(args(**usual))
    acp.run(args(**{**usual, "max_sessions": 3}))
    assert served == [("/p", "begun"), ("", None)]
    assert "joined the running daemon" in capsys.readouterr().err
    assert acp.run(args(**{**usual, "login": "logn"})) == 2
    assert "Did you mean login?" in capsys.readouterr().err


def test_terminal_needs_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: False)
    with pytest.raises(BadInput, match="needs a terminal"):
        terminal.run(args())


# --- dialects, doctor ---


def test_dialects_lists_what_is_spoken(tmp_path: Path, capsys: Out) -> None:
    assert dialects.run(args(config_dir=str(tmp_path), json=True)) == 0
    found = {row["name"]: row for row in json.loads(capsys.readouterr().out)["dialects"]}
    assert (
        found["acp"]["sockets"][0].startswith(str(tmp_path))
        and "stdio" in found["zot"]["transports"]
    )
    assert dialects.run(args(config_dir=str(tmp_path))) == 0
    assert "zeroclaw" in capsys.readouterr().out


def test_dialects_names_no_page_that_is_not_there(
    tmp_path: Path, capsys: Out, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert dialects.run(args(config_dir=str(tmp_path))) == 0
    assert "docs/protocols/acp.md" in capsys.readouterr().out
    monkeypatch.setattr(dialects, "_CHECKOUT", str(tmp_path))  # as where a package is installed
    assert dialects.run(args(config_dir=str(tmp_path))) == 0
    assert "docs/" not in capsys.readouterr().out
    assert dialects._is_there("https://example.org/pi")


def test_doctor_fails_when_something_needs_repair(
    capsys: Out, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = [DoctorRow("ok", "a", "fine"), DoctorRow("error", "b", "broken\x1b", "Mend it.")]
    monkeypatch.setattr(doctor, "_examined", lambda given, where: found)
    assert doctor.run(args(attack=False)) == 1
    said = capsys.readouterr().out
    assert "ERROR" in said and "→ Mend it." in said and "\x1b" not in said
    assert "1 ok, 0 to note, 1 to repair" in said
    monkeypatch.setattr(doctor, "_examined", lambda given, where: found[:1])
    assert doctor.run(args(attack=False, json=True)) == 0
    assert json.loads(capsys.readouterr().out)["summary"] == {"ok": 1, "warn": 0, "error": 0}


# --- logout, logs ---


def test_logout_of_somebody_who_is_not_logged_in(
    tmp_path: Path, capsys: Out, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert login.log_out(args(config_dir=str(tmp_path), provider="")) == 0
    assert "Nobody is logged in." in capsys.readouterr().out
    monkeypatch.setattr("dragoman.settings.login.chosen", lambda where: "anthropic")
    assert login.log_out(args(config_dir=str(tmp_path), provider="openai")) == 1
    assert "with openai, but with anthropic" in capsys.readouterr().err


def test_logs_are_read_from_the_end(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "log"
    path.write_bytes(b"".join(b"line %d \xff\n" % n for n in range(9)))
    monkeypatch.setattr(logs, "_CHUNK", 7)
    assert logs.newest(str(path), 2) == ["line 7 \ufffd", "line 8 \ufffd"]
    assert logs.newest(str(path), 0) == [] and len(logs.newest(str(path), 99)) == 9
    for place, why in ((tmp_path / "none", "There is no log"), (tmp_path, "cannot be read")):
        with pytest.raises(BadInput, match=why):
            logs.newest(str(place), 1)


def test_logs_a_line_as_the_file_has_it() -> None:
    event = {
        "@timestamp": "T", "severity_text": "WARN", "event": {"category": "area"},
        "message": "two words", "attributes": {"k": 'a"b\n', "n": 5},
    }  # fmt: skip
    assert logs.line_of(event) == 'T warning area "two words" k="a\\"b\\n" n=5'


def test_logs_followed_shows_no_line_twice(host: Host, tmp_path: Path, capsys: Out) -> None:
    path = tmp_path / "data" / "daemon.log"
    path.parent.mkdir()
    path.write_text("T info a x\n")

    def event(message: str) -> Any:
        return ("logs/event", {"@timestamp": "T", "severity_text": "INFO",
                               "event": {"category": "a"}, "message": message,
                               "attributes": {}})  # fmt: skip

    host.told = [event("x"), ("other", {}), event("y")]
    assert logs.run(args(config_dir=str(tmp_path), follow=True, lines=5)) == 1
    assert capsys.readouterr().out.splitlines() == ["T info a x", "T info a y"]


# --- mcp, memory, pair ---


def test_mcp_lists_servers_and_signs_in(
    tmp_path: Path, capsys: Out, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "config.toml").write_text(
        '[mcp.a]\ncommand = "x"\nargs = ["-y"]\nenabled = false\n'
    )
    assert mcp.run(args(config_dir=str(tmp_path), sub="list")) == 0
    assert "x -y" in (said := capsys.readouterr().out) and "off" in said
    monkeypatch.setattr("dragoman.cli.local.mcp_login.login", lambda *words: 1)
    assert mcp.run(args(config_dir=str(tmp_path), sub="login", name="a")) == 0
    assert "signed in to a: 1 tool\n" in capsys.readouterr().out


def _forget(config_dir: str, given: str, agent: str | None) -> tuple[str, list[str]]:
    if given != "k":
        raise BadInput(f"Nothing is remembered as {given}.")
    return "k", ["a"]


def test_memory_forgets_what_is_there(
    tmp_path: Path, capsys: Out, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dragoman.cli.local.memories.forget", _forget)
    assert memory.run(args(config_dir=str(tmp_path), sub="forget", id="k", agent=None)) == 0
    assert "forgotten: k (a)" in capsys.readouterr().out
    with pytest.raises(BadInput, match="Nothing is remembered as x"):
        memory.run(args(config_dir=str(tmp_path), sub="forget", id="x", agent=None))
    assert memory.run(args(config_dir=str(tmp_path), sub="list", agent=None)) == 0


@pytest.mark.usefixtures("away")
def test_pair_without_a_daemon_writes_into_the_store(tmp_path: Path, capsys: Out) -> None:
    assert pair.run(args(config_dir=str(tmp_path), json=True)) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["code"] and found["address"].startswith("http://") and found["expires_in"] == 600


def test_pair_shows_the_certificates_fingerprint(host: Host, capsys: Out) -> None:
    host.answers["pair"] = {"code": "123", "address": "https://x", "fingerprint": "AB"}
    assert pair.run(args()) == 0
    out, err = capsys.readouterr()
    assert out == "123\n" and "fingerprint AB" in err


# --- self_test ---


def test_self_test_goes_on_after_a_failure(capsys: Out) -> None:
    def fails() -> None:
        raise self_test.Failed("it broke\x1b")

    bad, good = self_test._try("part", fails), self_test._try("other", lambda: None)
    assert not bad["ok"] and bad["problem"] == "it broke\x1b" and good["ok"]
    self_test._show(bad)
    assert "FAIL" in (said := capsys.readouterr().out) and "\x1b" not in said


def test_self_test_a_trial_sees_none_of_our_settings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("DRAGOMAN_agents__default__model", "ZEROCLAW_autonomy__level", "ZEROCLAW_SOCKET",
                 "HUMANLAYER_DAEMON_SOCKET", "OPENCLAWOS_KERNEL_SOCKET"):  # fmt: skip
        monkeypatch.setenv(name, "elsewhere")
    trial = self_test.Trial(str(tmp_path))
    assert "elsewhere" not in trial.env.values() and "PATH" in trial.env
    monkeypatch.setattr(trial, "command", lambda *words, **more: '{"type": "error"}\n')
    with pytest.raises(self_test.Failed, match="zot ended with"):
        trial.zot()
    with pytest.raises(self_test.Failed, match="did not run its command"):
        trial.demo()


# --- status, stop, tap, upgrade_check ---

FOUND = {
    "version": "1", "uptime_ms": 5_000, "pid": 7, "notices": ["mind this"], "approvals": 2,
    "clients": {"zeroclaw": 1, "acp": 2}, "sessions": {"live": 1, "active": 0},
    "store": {"durable": True, "problem": ""}, "data_dir": "/d", "rss_bytes": 5e7, "gateway": "",
    "endpoints": {"acp": "/s"}, "mcp": [{"name": "m", "state": "up", "tools": 3, "problem": ""}],
    "fleet": {"node": "n", "state": "up", "others": 1, "stalled": "", "degraded": "slow"},
}  # fmt: skip


def test_status_counts_others_and_not_itself(host: Host, capsys: Out) -> None:
    host.answers["status"] = FOUND
    assert status.run(args()) == 0
    out, err = capsys.readouterr()
    assert "acp 2" in out and "zeroclaw" not in out.split("clients")[1].splitlines()[0]
    assert "1 other node, degraded: slow" in out and "up, 3 tools" in out and "mind this" in err
    assert status._approvals(None) == "not known"
    assert status._store({"durable": False, "problem": "full"}, "") == "NOT kept: full"
    assert ":memory:" in status._store({"durable": False, "problem": ""}, "")
    assert status._store({"durable": True, "stalled": "away"}, "") == "STALLED: away"
    for file, shown in (("/d/sessions.db", "/d"), ("/d/my.db", "/d/my.db"), ("", "/d")):
        assert status._store({"durable": True, "file": file}, "/d") == shown


@pytest.mark.usefixtures("away")
def test_status_without_a_daemon(capsys: Out) -> None:
    assert status.run(args(json=True)) == 1
    assert json.loads(capsys.readouterr().out) == {"running": False}
    with pytest.raises(NotRunning):
        status.run(args())


def test_stop_waits_for_the_end_of_the_process(host: Host, capsys: Out) -> None:
    child = subprocess.Popen(["sleep", "60"])
    host.answers["status"] = {"pid": child.pid, "store": {"durable": True, "problem": ""}}
    assert stop.run(args()) == 0
    said = capsys.readouterr().out
    assert child.wait() == -signal.SIGTERM and "has ended. Sessions are kept" in said


@pytest.mark.parametrize(("problem", "said"), [("", "are gone.\n"), ("full.", "are gone: full.\n")])
def test_stop_says_that_nothing_is_kept(host: Host, capsys: Out, problem: str, said: str) -> None:
    child = subprocess.Popen(["sleep", "60"])
    host.answers["status"] = {"pid": child.pid, "store": {"durable": False, "problem": problem}}
    assert stop.run(args()) == 0
    child.wait()
    out = capsys.readouterr().out
    assert out.endswith(said) and "kept" not in out


def test_stop_says_when_it_does_not_end(
    host: Host, capsys: Out, monkeypatch: pytest.MonkeyPatch
) -> None:
    host.answers["status"] = {"pid": os.getpid(), "store": {"durable": True, "problem": ""}}
    monkeypatch.setattr(stop.os, "kill", lambda pid, number: None)
    monkeypatch.setattr(stop, "_WITHIN", 0.01)
    assert stop.run(args()) == 1 and "has not ended" in capsys.readouterr().err


def test_tap_shows_records_and_filters(host: Host, tmp_path: Path, capsys: Out) -> None:
    row = {"dialect": "acp", "connection": "c1", "direction": "in", "at": 1_234, "line": "x\x1b",
           "lost": 2}  # fmt: skip
    host.told = [("dragoman/wire", row), ("dragoman/wire", {**row, "dialect": "zot"}), ("x", {})]
    path = tmp_path / "rec"
    given = args(record=str(path), session=None, dialect="acp")
    assert tap.run(given) == 1  # the daemon ended
    out = capsys.readouterr().out
    assert "(2 lines were skipped)" in out and ".234 c1" in out and "→ x\ufffd" in out
    assert [json.loads(line)["dialect"] for line in path.read_text().splitlines()] == ["acp"]
    with pytest.raises(BadInput, match=r"no dialect 'nosuch'. Known: .*zot"):
        tap.run(args(record=None, session=None, dialect="nosuch"))
    with pytest.raises(BadInput, match="cannot be written"):
        tap._recording(str(tmp_path / "no" / "such"))


def test_upgrade_check_looks_and_changes_nothing(tmp_path: Path, capsys: Out) -> None:
    assert upgrade_check.run(args(config_dir=str(tmp_path))) == 0
    assert "can take over." in capsys.readouterr().out and not (tmp_path / "data").exists()
    (tmp_path / "config.toml").write_text("[agents\n")
    assert upgrade_check.run(args(config_dir=str(tmp_path), json=True)) == 1
    assert json.loads(capsys.readouterr().out)["ready"] is False


# --- sessions ---


def known(host: Host, **answers: Any) -> Host:
    page = {"sessions": [SESSION, {**SESSION, "id": "t-1"}], "cursor": ""}

    def history(params: Any) -> Any:
        if params["session_id"] not in (SESSION["id"], "t-1"):
            return UnknownSession(params["session_id"])
        by = {"event": {"type": "opened", "by": {"name": "ed\x1b"}}, "seq": 1}
        return {"events": [by], "more": False}

    host.answers |= {"sessions": page, "history": history, **answers}
    return host


def test_sessions_rows_list_and_show(host: Host, capsys: Out) -> None:
    known(host, session={"session": SESSION, "queued": 1, "present": [], "plan": [{"content": "x"}],
                         "asks": [ASK]})  # fmt: skip
    given = {"limit": 1, "status": "idle", "archived": False}
    assert rows.list(args(**given)) == 0
    out, err = capsys.readouterr()
    assert "do it" in out and "<context" not in out and "ed\ufffd" in out
    assert "only the newest 1 are shown" in err
    assert rows.show(args(session="s-01")) == 0
    said = capsys.readouterr().out
    assert "idle, 1 queued" in said and "dragoman approve ask-1" in said and "[ ] x" in said
    assert rows._status({"waiting": "on you", "error": "", "status": "idle"}) == "on you"
    assert rows._status({"error": "x", "status": "idle"}) == "failed"


def test_sessions_changing_says_what_was_done(host: Host, capsys: Out) -> None:
    known(
        host, rename={"session": SESSION}, archive={"session": SESSION}, cancel={},
        fork={"session": {"id": "new"}}, delete={"deleted": True},
    )  # fmt: skip
    changing.rename(args(session="t-1", title=["a", "b"]))
    changing.archive(args(session="t-1", undo=True))
    changing.fork(args(session="t-1"))
    changing.cancel(args(session="t-1"))
    changing.delete(args(session="t-1"))
    assert capsys.readouterr().out.splitlines() == [
        "renamed: a b", "back in the list", "new", "cancelled", "deleted: t-1",
    ]  # fmt: skip
    host.answers["delete"] = {"deleted": False}
    with pytest.raises(UnknownSession):
        changing.delete(args(session="t-1"))


def test_sessions_undoing_lists_and_restores(host: Host, capsys: Out) -> None:
    file = {"fate": "changed", "path": "a"}
    point = {"turn": "t1", "at": 0, "undone": True, "files": [file]}
    known(
        host, undo={"turns": ["t1"], "files": [file], "note": "large files were left"},
        redo={"turns": ["t1"], "files": [], "note": ""}, checkpoints={"checkpoints": [point]},
        endWorktree={"done": "merged"},
    )  # fmt: skip
    assert changing.undo(args(session="t-1", list=False, turn=None)) == 0
    out, err = capsys.readouterr()
    assert out == "undone: t1\n  changed  a\n" and "large files" in err
    changing.redo(args(session="t-1"))
    changing.undo(args(session="t-1", list=True))
    changing.worktree(args(session="t-1", how="merge"))
    assert "(undone)" in (said := capsys.readouterr().out) and "merged" in said


def test_sessions_export_keeps_the_file_private(host: Host, tmp_path: Path, capsys: Out) -> None:
    known(host, session={"session": SESSION})
    host.answers["history"] = {"events": [], "more": False}
    path = tmp_path / "out.json"
    assert rows.export(args(session="t-1", format="json", output=str(path))) == 0
    assert path.stat().st_mode & 0o777 == 0o600 and "written to" in capsys.readouterr().err
    with pytest.raises(BadInput, match="cannot be written"):
        rows.export(args(session="t-1", format="json", output=str(tmp_path / "no" / "x")))


def event(**body: Any) -> dict[str, Any]:
    told = {"session": "s", "seq": 1, "at": 0, "event": body}
    return {"method": "dragoman/event", "params": told}


def send_args(**more: Any) -> argparse.Namespace:
    return args(session="t-1", prompt=["go", "on"], approve=None, detach=False, **more)


def test_sessions_following_shows_its_own_turn_only(
    host: Host, capsys: Out, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(following, "_key", lambda: "k1")
    known(host)
    host.told = [
        event(type="turn_began", turn="t0", key="other", content=[]),
        event(type="text_delta", turn="t0", text="not ours"),
        event(type="turn_began", turn="t1", key="k1", content=[]),
        {"method": "something/else", "params": {}},
        event(type="text_delta", turn="t1", text="ours"),
        {"id": 3, "result": {}},
        {"id": 7, "result": {"outcome": "completed"}},
    ]
    assert following.send(send_args()) == 0
    said = capsys.readouterr().out
    assert "ours" in said and "not ours" not in said


@pytest.mark.parametrize(("outcome", "code"), [("failed", 1), ("cancelled", 130)])
def test_sessions_following_ends_with_the_turns_code(host: Host, outcome: str, code: int) -> None:
    known(host).told = [{"id": 7, "result": {"outcome": outcome}}]
    assert following.send(send_args()) == code


def test_sessions_following_an_interrupt_takes_our_prompt_back(host: Host, capsys: Out) -> None:
    known(host).told = [KeyboardInterrupt()]
    assert following.send(send_args()) == 130
    assert host.asked[-1][0] == "retract" and "cancelled" in capsys.readouterr().err


def test_sessions_following_tail_and_detach(host: Host, capsys: Out) -> None:
    known(host, prompt={"turn": "t9"})
    assert following.send(args(session="t-1", prompt=["x"], approve=None, detach=True)) == 0
    assert "queued" in capsys.readouterr().err
    host.told = [("dragoman/event", {"event": {"type": "deleted"}, "seq": 0, "at": 0})]
    assert following.tail(args(session="t-1", follow=True, after=0, json=True)) == 0
    assert json.loads(capsys.readouterr().out)["event"]["type"] == "deleted"
    assert following._turn({"ask": {"turn": "t1"}}) == "t1" and following._turn({}) == ""
