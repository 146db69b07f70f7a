"""Every method that ZeroClaw's terminal can call, at a real daemon, read as it reads them."""

from pathlib import Path

import pytest
from tests.daemon.running import Daemon, call, say, script
from tests.daemon.test_terminal_client import INIT, Terminal
from tests.dialects.zeroclaw.strict import RESULTS, Misfit, fit, read_result, read_update

CONFIG = """
[agents.default]
api_key = "k"
provider = "anthropic"
model = "claude-sonnet-4-5"
risk_profile = "careful"

[agents.second]
provider = "scripted"

[acp]
default_agent = "second"

[risk_profiles.careful]
mode = "readonly"
"""


class Strict(Terminal):
    """Reads every answer and update strictly."""

    def ask(self, method, params=None):
        result = super().ask(method, params)
        return read_result(method, result)

    def ask_plain(self, method, params=None):
        """One of our own methods."""
        return super().ask(method, params)

    def receive(self):
        message = super().receive()
        if message.get("method") == "session/update":
            read_update(message["params"])
        return message


@pytest.fixture(scope="module")
def daemon(tmp_path_factory):
    folder = tmp_path_factory.mktemp("strict")
    (folder / "data").mkdir()
    (folder / "data" / "org_cost.json").write_text('{"total_usd": 4, "by_team": {"a_b": 1}}')
    turns = [call("write", path="x.txt", content="hi"), say("There."), say("More."), say("Done.")]
    config = script(folder, turns)
    with Daemon(folder, config=_joined(config)).wait_ready() as running:
        yield running


def _joined(text):
    """The script's own configuration, and two agents beside."""
    head, _, rest = text.partition("[agents.default]")
    assert rest, text
    own = rest.split("\n[", 1)
    more = f"\n[{own[1]}" if len(own) > 1 else ""
    return head + CONFIG.replace('provider = "scripted"', own[0].strip()) + more


@pytest.fixture
def line(daemon):
    made = Strict(daemon.socket, INIT)
    read_result("initialize", made.init)
    yield made
    made.close()


def test_the_reader_is_strict():
    for wrong in (
        ("cost/query", {"by_model": []}),
        ("session/list", {"sessions": [{"session_id": None}]}),
        ("fs/list_dir", {"cwd": "/", "entries": [{"name": "x", "mtime": "2026"}]}),
        ("logs/query", {"events": [], "at_end": True, "next_cursor": "3"}),
        ("quickstart/apply", {"kind": "applied", "daemon_restarted": False}),
        ("quickstart/validate", {"kind": "errors"}),
    ):
        with pytest.raises(Misfit):
            read_result(*wrong)
    with pytest.raises(Misfit):
        fit(True, int)


def test_panes_at_the_start(line):
    assert line.init["server_version"] == "0.8.4"
    line.ask("status")
    line.ask("health")
    line.ask("tui/list")
    line.ask("agents/list")
    assert [row["alias"] for row in line.ask("agents/status")["agents"]] == ["default", "second"]
    assert line.ask("cost/org") == {"total_usd": 4, "by_team": {"a_b": 1}}
    assert line.ask("logs/subscribe") == {"subscribed": True}
    found = line.ask("logs/query", {"hide_internal": True, "limit": 1, "severity_min": 5})
    line.ask("logs/get", {"id": found["events"][0]["id"]})
    for only in ({"outcome": "failure"}, {"trace_id": "none"}, {"category": "none"}):
        assert not line.ask("logs/query", only)["events"]
    until = dict(zip(("until_ts", "until_id"), found["next_cursor"], strict=True))
    (after,) = line.ask("logs/query", {**until, "limit": 1})["events"]
    assert int(after["id"]) == int(found["events"][0]["id"]) - 1
    line.ask("doctor/run")


def test_a_session(line, tmp_path):
    new = {"agent_alias": "second", "cwd": str(tmp_path), "session_id": None, "tui_id": None}
    made = line.ask("session/new", {**new, "chat_mode": "acp", "exclude_memory": True})
    sid = {"session_id": made["session_id"]}
    line.tell("session/prompt", {**sid, "prompt": "look for zebras"})
    asked = line.until("approval_request")
    assert asked["tool_name"] == "file_write"
    line.ask(
        "session/approve", {**sid, "request_id": asked["request_id"], "decision": "allow_once"}
    )
    assert line.until("turn_complete")["outcome"] == "completed"
    told = line.ask("session/messages", {**sid, "limit": None})
    assert [one["role"] for one in told["messages"]] == ["user", "assistant"]
    line.ask("session/git_branch", sid)
    line.ask("session/state", sid)
    known = line.ask("config/list", {"prefix": "agents.second.model_provider"})["entries"][0]
    given = {"model_provider": known["value"]}
    assert line.ask("session/configure", {**sid, "overrides": given})["overrides"] == given
    rows = line.ask("session/list", {"query": "zebra"})["sessions"]
    assert [row["session_id"] for row in rows] == [made["session_id"]]
    assert rows[0]["channel_id"] is None
    assert not line.ask("session/list", {"query": "giraffes"})["sessions"]
    line.ask("session/list", {"query": None})
    line.ask("session/list-acp")
    files = [{"data_b64": "aGk=", "filename": "a.txt"}]
    line.ask("file/attach", {**sid, "files": files})
    cost = line.ask("cost/query", {"agent": None, "from": "2020-01-01T00:00:00Z"})
    assert cost["by_agent"]["second"]["agent_alias"] == "second"
    assert not [name for name in cost["by_model"] if "@" in name]
    line.ask("fs/list_dir", {"path": str(tmp_path), "show_hidden": True})
    line.ask("session/close", sid)
    line.ask("session/delete", sid)


def test_memory(line):
    line.ask("memory/store", {"key": "k", "content": "likes tea", "agent": "second"})
    assert line.ask("memory/list", {"category": None})["entries"][0]["agent_alias"] == "second"
    assert line.ask("memory/search", {"query": "tea", "limit": 5})["entries"]
    assert line.ask("memory/get", {"key": "k"})["entry"]["content"] == "likes tea"
    assert line.ask("memory/delete", {"key": "k"})["deleted"]


def test_schedules(line, tmp_path):
    every = {"kind": "every", "every_ms": 3_600_000}
    job = {"agent": "second", "schedule": every, "prompt": "go", "name": "n"}
    made = line.ask("cron/add", {**job, "cwd": str(tmp_path)})
    job = {"id": made["id"]}
    cron = {"agent": "second", "schedule": "30 7 * * mon-fri", "tz": "Europe/Berlin", "prompt": "x"}
    other = line.ask("cron/add", cron)
    assert other["schedule"] == {"kind": "cron", "expr": cron["schedule"], "tz": cron["tz"]}
    assert [one["id"] for one in line.ask("cron/list")["jobs"]] == [made["id"], other["id"]]
    line.ask("cron/get", job)
    line.ask("cron/settings")
    patched = line.ask("cron/patch", {**job, "name": "other", "enabled": False})
    assert patched["name"] == "other" and patched["enabled"] is False
    run = line.say("cron/trigger", job)
    while True:  # its agent asks before it writes, like any other
        waiting = line.ask_plain("dragoman/approvals")["approvals"]
        if waiting:
            break
    ask = waiting[0]["ask"]
    yes = {"id": ask["id"], "verdict": "allow", "digest": ask["digest"]}
    line.ask_plain("dragoman/answer", yes)
    ran = read_result("cron/trigger", line.answer(run)["result"])
    assert ran["success"] and ran["output"] == "There."
    (one,) = line.ask("cron/runs", {**job, "limit": 5})["runs"]
    assert one["status"] == "ok" and one["id"] == 1
    rows = line.ask("session/list", {"query": None})["sessions"]
    assert one["session_id"] in [row["session_id"] for row in rows]
    for which in (made, other):
        line.ask("cron/delete", {"id": which["id"]})
    assert not line.ask("cron/list")["jobs"]


def test_the_configuration_pane(line):
    sections = line.ask("config/sections")["sections"]
    assert {"agents", "providers", "gateway", "limits"} <= {one["key"] for one in sections}
    assert all(one["help"] for one in sections)
    for one in sections:
        if one["shape"] == "one_tier_alias_map":
            for key in line.ask("config/map-keys", {"path": one["key"]})["keys"]:
                line.ask("config/list", {"prefix": f"{one['key']}.{key}"})
        else:
            assert line.ask("config/list", {"prefix": one["key"]})["entries"]
    listed = line.ask("config/list", {"prefix": None})["entries"]
    assert not [one for one in listed if "<name>" in one["path"]]
    keys = [one for one in listed if one["path"] == "agents.default.api_key"]
    assert keys[0]["is_secret"] and keys[0]["value"] is None
    assert "agents" in [one["path"] for one in line.ask("config/templates")["templates"]]
    line.ask("config/map-key-create", {"path": "risk_profiles", "key": "mine"})
    line.ask("config/set", {"prop": "risk_profiles.mine.mode", "value": "full"})
    line.ask("config/get", {"prop": "risk_profiles.mine.mode"})
    told = line.ask(
        "config/map-key-rename", {"path": "risk_profiles", "from": "careful", "to": "c"}
    )
    assert told["warnings"] == ["agents.default.risk_profile is c now"]
    told = line.ask("config/map-key-rename", {"path": "agents", "from": "second", "to": "third"})
    assert told["warnings"] == ["acp.default_agent is third now"]
    line.ask("config/map-key-rename", {"path": "agents", "from": "third", "to": "second"})
    values = line.ask("config/resolve-alias-source", {"source": "risk_profiles"})["values"]
    assert values == ["c", "mine"]
    for source in ("agents", "model_providers", "channels", "mcp_bundles", "skill_bundles"):
        line.ask("config/resolve-alias-source", {"source": source})
    line.ask("config/set", {"prop": "limits.max_clients", "value": 100})
    line.ask("config/delete", {"prop": "limits.max_clients"})
    line.ask("config/map-key-delete", {"path": "risk_profiles", "key": "mine"})
    line.ask("config/validate")
    line.ask("config/status")
    providers = [one["name"] for one in line.ask("config/catalog")["model_providers"]]
    assert "anthropic" in providers and not [one for one in providers if "@" in one]
    models = line.ask("config/catalog-models", {"model_provider": "anthropic.default"})
    assert (
        "claude-sonnet-4-5" in models["models"] and models["pricing"]["claude-sonnet-4-5"]["prompt"]
    )
    line.ask("config/reload")


@pytest.mark.parametrize(
    ("method", "params"),
    [
        ("config/map-key-create", {"path": "agents", "key": "second"}),
        ("config/map-key-create", {"path": "limits", "key": "x"}),
        ("config/map-key-create", {"path": "nothing", "key": "x"}),
        ("config/map-key-create", {"path": "agents", "key": " "}),
        ("config/map-key-delete", {"path": "agents", "key": "nobody"}),
        ("config/map-key-rename", {"path": "agents", "from": "nobody", "to": "x"}),
        ("config/map-key-rename", {"path": "agents", "from": "second", "to": "default"}),
        ("config/resolve-alias-source", {"source": "stars"}),
        ("personality/get", {"agent": "second", "filename": "../../config.toml"}),
        ("personality/put", {"agent": "second", "filename": "SOUL.md", "content": "x" * 20_001}),
        ("personality/list", {"agent": "../.."}),
        ("skills/read", {"bundle": "default", "name": "../agents"}),
        ("skills/delete", {"bundle": "default", "name": ".."}),
        ("skills/write", {"bundle": "none", "name": "x", "frontmatter": {}, "body": ""}),
        ("skills/read", {"bundle": "default", "name": "nothing"}),
        ("locales/fetch", {"locale": "xx", "catalog": []}),
        ("cron/add", {"agent": "second", "schedule": "whenever", "prompt": "x"}),
        ("cron/add", {"agent": "nobody", "schedule": "* * * * *", "prompt": "x"}),
        ("cron/add", {"agent": "second", "schedule": "* * * * *", "command": "rm -rf /"}),
        ("cron/trigger", {"id": "nothing"}),
        ("cron/runs", {"id": ""}),
        ("logs/get", {"id": "none"}),
    ],
)
def test_what_is_refused_is_refused_in_words(line, daemon, method, params):
    before = daemon.config.read_text()
    answer = line.answer(line.say(method, params))
    assert answer["error"]["code"] in (-32602, -32603) and len(answer["error"]["message"]) > 10
    assert daemon.config.read_text() == before


def test_texts_for_agents(line):
    of = {"agent": "second"}
    assert not any(one["exists"] for one in line.ask("personality/list", of)["files"])
    assert line.ask("personality/get", {**of, "filename": "SOUL.md"})["content"] is None
    (soul,) = [
        one["content"] for one in line.ask("personality/templates", of)["files"]
        if one["filename"] == "SOUL.md"
    ]  # fmt: skip
    line.ask("personality/put", {**of, "filename": "SOUL.md", "content": soul})
    assert line.ask("personality/get", {**of, "filename": "SOUL.md"})["content"] == soul
    skill = {"bundle": "default", "name": "tidy"}
    facts = {"name": "tidy", "description": "How to tidy up", "always": True}
    line.ask("skills/write", {**skill, "frontmatter": facts, "body": "# Tidy\n\nDo it."})
    assert [one["name"] for one in line.ask("skills/list", {"bundle": None})["skills"]] == ["tidy"]
    read = line.ask("skills/read", skill)
    assert read["frontmatter"] == facts and read["body"] == "# Tidy\n\nDo it."
    line.ask("skills/bundles")
    line.ask("skills/delete", skill)
    assert not line.ask("skills/list", {"bundle": "default"})["skills"]
    assert line.ask("locales/list")["locales"]
    line.ask("locales/fetch", {"locale": "en", "catalog": ["app"]})


def test_a_quick_start(line):
    state = line.ask("quickstart/state")
    assert state["quickstart_completed"] and state["agents"] == ["default", "second"]
    assert "openai" in [one["kind"] for one in state["model_provider_types"]]
    line.ask("quickstart/fields", {"section": "model_provider", "type_key": "openai"})
    fresh = {"provider_type": "openai", "alias": "a", "model": "gpt-5", "fields": {"api_key": "k"}}
    submission = {
        "model_provider": {"mode": "fresh", "value": fresh},
        "risk_profile": {"mode": "fresh", "value": "readonly"},
        "runtime_profile": {"mode": "fresh", "value": "balanced"},
        "memory": {"mode": "fresh", "value": "sqlite"},
        "channels": [],
        "agent": {"name": "third", "system_prompt": "Be brief.", "personality_file": None},
    }
    wrong = {**submission, "agent": {"name": "second", "system_prompt": ""}}
    assert line.ask("quickstart/validate", {"submission": wrong})["errors"][0]["step"] == "agent"
    assert line.ask("quickstart/apply", {"submission": wrong})["kind"] == "errors"
    nothing = line.ask("quickstart/validate", {"submission": {}})["errors"]
    assert {one["step"] for one in nothing} == {"agent", "model_provider"}
    assert line.ask("quickstart/validate", {"submission": submission}) == {"kind": "ok"}
    made = line.ask("quickstart/apply", {"submission": submission})
    assert made["agent"]["model_provider"] == "openai.third"
    known = {row["alias"]: row for row in line.ask_plain("dragoman/agents")["agents"]}
    assert known["third"]["model"] == "openai/gpt-5" and known["third"]["mode"] == "readonly"
    line.ask("quickstart/dismiss", {"run_id": "r", "surface": "zerocode", "last_step": None})
    line.ask("config/map-key-delete", {"path": "agents", "key": "third"})


def test_nothing_of_these_tables_is_left_out():
    from dragoman.dialects.zeroclaw.verbs import agents, cron, quickstart, writings

    for table in (agents, cron, quickstart, writings):
        assert table.VERBS.keys() <= RESULTS.keys()


def test_all_of_them_are_asked_for_here():
    text = Path(__file__).read_text()
    told = {"initialize", "session/prompt", "session/kill", "session/cancel"}  # elsewhere, or told
    assert [name for name in RESULTS.keys() - told if text.count(f'"{name}"') == 0] == []
    assert len(RESULTS) >= 65
