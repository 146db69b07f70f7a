"""What the real terminal client sends, from its first line to its reconnect, against a daemon."""

import pytest
from tests.daemon.running import Daemon, Line, call, say, script

INIT = {
    "protocol_version": 1,
    "env": {"PATH": "/usr/bin", "SECRET_TOKEN": "abc"},
    "clientCapabilities": {"elicitation": {"form": {}}},
}


class Terminal(Line):
    """Uses the client's own ids, and null for what it leaves out."""

    def say(self, method, params=None):
        self._id = getattr(self, "_id", 0) + 1
        id = f"zc-out-{self._id - 1}"
        self.send({"jsonrpc": "2.0", "method": method, "params": params or {}, "id": id})
        return id

    def tell(self, method, params):
        self.send({"jsonrpc": "2.0", "method": method, "params": params})


@pytest.fixture
def daemon(tmp_path):
    turns = [call("bash", command="echo hi"), say("There."), say("More.")]
    config = script(tmp_path, turns, resume=True)
    with Daemon(tmp_path, "--ephemeral", config=config).wait_ready() as running:
        yield running


def start(line, agent="default"):
    """The panes in the order they open. What must not fail is asked with `ask`."""
    assert line.init["server_version"] == "0.8.4"
    line.ask("cost/query", {"agent": None})
    line.ask("agents/status")
    line.ask("tui/list")
    assert line.ask("config/sections")["sections"]
    assert line.ask("config/templates")["templates"]
    line.ask("session/list-acp")
    line.ask("config/list", {"prefix": "todotracker"})
    ref = line.ask("config/list", {"prefix": f"agents.{agent}.model_provider"})["entries"][0]
    line.ask("config/list", {"prefix": f"providers.models.{ref['value']}.model"})
    assert line.ask("logs/subscribe") == {"subscribed": True}
    line.ask("logs/query", {"hide_internal": True, "limit": 200, "severity_min": 5})
    line.ask("quickstart/state")
    line.ask("status")
    line.ask("health")


def test_from_start_to_reconnect(daemon, tmp_path):
    line = Terminal(daemon.socket, INIT)
    assert line.init["server_pid"] == daemon.process.pid
    tui = line.init["tui_id"]
    start(line)
    new = {
        "agent_alias": "default",
        "chat_mode": "acp",
        "cwd": str(tmp_path),
        "exclude_memory": True,
        "session_id": None,
        "tui_id": tui,
        "surface": "zerocode_code",
    }
    session = line.ask("session/new", new)["session_id"]
    line.tell("session/prompt", {"prompt": "run it", "session_id": session})
    asked = line.until("approval_request")
    for name in ("request_id", "tool_name", "arguments_summary", "timeout_secs", "session_id"):
        assert name in asked
    line.ask("session/git_branch", {"session_id": session})
    decision = {
        "decision": "allow_once",
        "request_id": asked["request_id"],
        "session_id": session,
    }
    line.ask("session/approve", decision)
    kinds = [one["params"]["type"] for one in line.seen if one.get("method") == "session/update"]
    while "turn_complete" not in kinds:
        message = line.receive()
        line.seen.append(message)
        if message.get("method") == "session/update":
            kinds.append(message["params"]["type"])
    assert [kind for kind in kinds if kind in ("tool_call", "tool_result", "turn_complete")] == [
        "tool_call",
        "tool_result",
        "turn_complete",
    ]
    assert line.ask("doctor/run")["results"]
    line.close()
    # Back within the second that an ephemeral daemon waits, under the old name.
    own = {"tui_id": tui, "tui_sig": line.init["tui_sig"]}
    line = Terminal(daemon.socket, {**INIT, **own})
    assert line.init["tui_id"] == tui
    start(line)
    again = {"agent_alias": "default", "chat_mode": "acp", "session_id": session, "cwd": None}
    joined = line.ask("session/new", {**again, "tui_id": tui})
    assert joined["workspace_dir"] == str(tmp_path) and joined["message_count"] == 2
    told = line.ask("session/messages", {"session_id": session})
    assert told["total"] == 2 and told["messages"][0]["content"] == "run it"
    models = line.ask("config/catalog-models", {"model_provider": "demo"})
    assert models["models"]
    line.tell("session/prompt", {"prompt": "more", "session_id": session})
    assert line.until("turn_complete") == {
        "session_id": session,
        "type": "turn_complete",
        "outcome": "completed",
        "content": "More.",
    }
    line.ask("session/close", {"session_id": session})
    line.close()
    assert daemon.ended() == 0


def test_switching_away_leaves_what_another_terminal_runs(tmp_path):
    """`session/close` of the old session is what the terminal sends when its user switches."""
    config = script(tmp_path, [call("bash", command="echo hi"), say("There."), say("Other.")])
    with Daemon(tmp_path, config=config).wait_ready() as daemon:
        worker, other = Terminal(daemon.socket, INIT), Terminal(daemon.socket, INIT)
        new = {"agent_alias": "default", "cwd": str(tmp_path), "session_id": None, "tui_id": None}
        session = worker.ask("session/new", new)["session_id"]
        other.ask("session/new", {**new, "session_id": session, "cwd": None})
        worker.tell("session/prompt", {"session_id": session, "prompt": "run it"})
        asked = worker.until("approval_request")
        assert "run it" in other.until("agent_thought_chunk")["text"]
        fresh = other.ask("session/new", new)["session_id"]
        assert other.ask("session/close", {"session_id": session})["closed"]
        yes = {"session_id": session, "request_id": asked["request_id"], "decision": "allow_once"}
        worker.ask("session/approve", yes)
        assert worker.until("turn_complete")["outcome"] == "completed"
        # Back again: all of it is there, and the session that was left unused is forgotten.
        other.ask("session/new", {**new, "session_id": session, "cwd": None})
        other.ask("session/close", {"session_id": fresh})
        told = other.ask("session/messages", {"session_id": session})["messages"]
        assert [one["content"] for one in told] == ["run it", "There."]
        rows = other.ask("session/list", {"query": None})["sessions"]
        assert [row["session_id"] for row in rows] == [session]
        worker.close()
        other.close()
