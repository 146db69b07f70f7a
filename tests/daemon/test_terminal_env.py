"""The terminal's environment at real commands, as far as the agent's rules let it."""

from tests.daemon.running import Daemon, call, say, script
from tests.daemon.test_terminal_client import INIT, Terminal


def test_commands_find_what_the_profile_allows(tmp_path):
    turns = [call("bash", command="echo $MINE-$OTHER-$MINE_TOKEN-$PATH-"), say("done")]
    config = script(tmp_path, turns) + 'mode = "full"\nallow_env = ["MINE*"]\n'
    env = {"MINE": "yes", "OTHER": "no", "MINE_TOKEN": "secret", "PATH": "/evil", "BAD\0": "x"}
    with Daemon(tmp_path, config=config).wait_ready() as daemon:
        line = Terminal(daemon.socket, {**INIT, "env": env})
        made = line.ask("session/new", {"agent_alias": "default", "cwd": str(tmp_path)})
        line.tell("session/prompt", {"session_id": made["session_id"], "prompt": "go"})
        said = line.until("tool_result")["raw_output"]
        assert "yes---" in said and "/evil" not in said and "secret" not in said
        line.close()
