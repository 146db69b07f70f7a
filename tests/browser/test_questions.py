"""Questions in a real browser: whole, visible, inert, and remembered by the chosen scope."""

import json
import subprocess
from pathlib import Path
from typing import Any

from tests.browser.test_dashboard import CHROMIUM, HERE, NODE
from tests.browser.test_dashboard import pytestmark as pytestmark
from tests.daemon.running import Daemon, Line

LONG = "echo " + "x" * 39_980 + " END"
NASTY = "echo \u202etxt \x1b[2J\u200b\r\u00a0 <img src=x onerror=alert(1)>"
HIDDEN = "\u202e\x1b\u200b\r\u00a0"


def test_questions_are_whole_visible_and_kept_to_their_scope(tmp_path: Path) -> None:
    work = tmp_path / "work"
    work.mkdir()
    (work / "big.txt").write_text("".join(f"lost {n} {'z' * 90}\n" for n in range(30_000)))
    (work / "kept.txt").write_text("precious\n")
    with Daemon(tmp_path, config="[gateway]\nport = 0\n", gateway=True) as daemon:
        daemon.wait_ready()
        address = json.loads((daemon.data / "gateway.json").read_text())["address"]
        code = daemon.said.decode().split("pair with the code ")[1].split()[0]
        caller = Line(daemon.data / "acp.sock")
        made = caller.ask("session/new", {"cwd": str(work), "mcpServers": []})
        sessions = [str(made["sessionId"])]
        for _ in range(2):
            made = caller.ask("session/new", {"cwd": str(work), "mcpServers": []})
            sessions.append(str(made["sessionId"]))
        human = Line(daemon.data / "humanlayer.sock", init=None)
        ids = [
            human.ask("createApproval", {
                "run_id": sessions[0], "tool_name": "Bash", "tool_input": {"command": command},
                "tool_use_id": f"t{number}",
            })["approval_id"]
            for number, command in enumerate((LONG, NASTY))
        ]  # fmt: skip
        for session, name in zip(sessions[1:], ("kept.txt", "big.txt"), strict=True):
            text = [{"type": "text", "text": f'write "new" to {name}'}]
            caller.say("session/prompt", {"sessionId": session, "prompt": text})
            while not (rows := human.ask("fetchApprovals", {"session_id": session})["approvals"]):
                pass
            ids.append(rows[0]["id"])
        node = str(NODE / ".bin" / "node")
        script = str(HERE / "questions.mjs")
        done = subprocess.run(
            [node, script, address, code, CHROMIUM, *ids], capture_output=True, timeout=1100
        )
        assert done.returncode == 0, done.stderr.decode()
        rows: list[dict[str, Any]] = [json.loads(line) for line in done.stdout.splitlines()]  # type: ignore[no-redef]
        long, nasty, kept, big, over = rows
        assert LONG in long["text"]
        assert "echo <U+202E>txt <ESC>[2J<U+200B><CR><U+00A0> <img src=x" in nasty["text"]
        assert not set(HIDDEN) & set(nasty["text"])
        assert "-precious" in kept["text"] and "+new" in kept["text"]
        assert kept["plus"] == 1 and kept["minus"] == 1
        assert "No newline at end of file" in kept["text"]  # the last line feed goes as well
        assert big["text"].count("-lost ") == 30_000
        assert not any(row["clipped"] for row in rows[:4])
        assert over["troubles"] == []
        assert any("this exact command" in words for _, words in over["scopes"])
        assert "in this project" not in over["rule"] and str(work) in over["rule"]
        caller.close()
        human.close()
        assert (work / "kept.txt").read_text() == "precious\n"
