"""An agent with a key and an address of its own: its provider has one name, told everywhere."""

import json
from pathlib import Path

import pytest
from tests.daemon.running import Daemon, Line
from tests.daemon.test_terminal_client import INIT, Terminal

CONFIG = """
[acp]
default_agent = "own"

[agents.own]
provider = "openai-compatible"
base_url = "http://127.0.0.1:9/v1"
api_key = "k"
model = "mine"

[agents.known]
provider = "anthropic"
api_key = "k"
model = "claude-sonnet-4-5"
"""


@pytest.fixture
def daemon(tmp_path):
    with Daemon(tmp_path, config=CONFIG) as running:
        running.config.chmod(0o600)
        yield running.wait_ready()


class Zot(Line):
    def command(self, kind, **fields):
        self.send({"id": kind, "type": kind, **fields})
        return self.answer(kind)


@pytest.mark.parametrize("agent", ["own", "known"])
def test_the_terminal_can_go_to_another_provider_and_back(daemon, tmp_path, agent):
    line = Terminal(daemon.socket, INIT)
    made = line.ask("session/new", {"agent_alias": agent, "cwd": str(tmp_path)})
    sid = {"session_id": made["session_id"]}
    (told,) = line.ask("config/list", {"prefix": f"agents.{agent}.model_provider"})["entries"]
    before = _model(line, sid)
    for name in ("demo", told["value"], "demo", told["value"].replace(".", "@")):
        line.ask("session/configure", {**sid, "overrides": {"model_provider": name}})
        assert (_model(line, sid) == before) == (name != "demo")
    models = line.ask("config/catalog-models", {"model_provider": told["value"]})["models"]
    assert before.partition("/")[2] in models
    names = line.ask("config/resolve-alias-source", {"source": "model_providers"})["values"]
    assert before.partition("/")[0] in names and not [one for one in names if "@" in one]
    line.close()


def _model(line, sid):
    return line.ask("dragoman/session", sid)["session"]["model"]


def test_a_model_that_no_list_has_can_be_chosen_in_every_protocol(daemon, tmp_path):
    ref = "openai-compatible/mine"
    native = Line(daemon.socket)
    assert ref in [row["ref"] for row in native.ask("dragoman/models")["models"]]
    acp = Line(Path(daemon.data) / "acp.sock")
    made = acp.ask("session/new", {"cwd": str(tmp_path), "mcpServers": []})
    options = json.dumps(made)
    assert f'"{ref}"' in options and "@" not in options
    zot = Zot(Path(daemon.data) / "any.sock", init=None)
    zot.command("open", session=made["sessionId"])
    hello = zot.command("hello")["data"]
    assert (hello["provider"], hello["model"]) == ("openai-compatible", "mine")
    assert [one["id"] for one in zot.command("get_models")["data"]["models"]] == ["mine"]
    assert zot.command("set_model", model="mine")["success"]
    for one in (native, acp, zot):
        one.close()
