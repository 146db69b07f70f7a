"""Every room of the dashboard in a real browser: wide and narrow, light and dark, by keyboard."""

import json
import subprocess
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.browser.test_dashboard import CHROMIUM, SCREENS, Browser
from tests.browser.test_dashboard import pytestmark as marks
from tests.daemon.running import Daemon, Line

pytestmark = [*marks[:2], pytest.mark.timeout(1200), pytest.mark.slow]
LONG = "echo " + "x" * 6_000 + " END"


def token_of(daemon: Daemon) -> str:
    said = subprocess.run(
        ["dragoman", "token", "new", "--config-dir", str(daemon.config.parent), "--json"],
        capture_output=True, check=True, timeout=60,
    )  # fmt: skip
    token: str = json.loads(said.stdout)["token"]
    return token


def test_every_room_of_the_dashboard(tmp_path: Path) -> None:
    work = tmp_path / "work"
    project = work / "project"
    project.mkdir(parents=True)
    (project / "parser.py").write_text("pass\n")
    SCREENS.mkdir(parents=True, exist_ok=True)
    with Daemon(tmp_path, config="[gateway]\nport = 0\n", gateway=True) as daemon:
        daemon.wait_ready()
        address = json.loads((daemon.data / "gateway.json").read_text())["address"]
        code = daemon.said.decode().split("pair with the code ")[1].split()[0]
        words = (address, code, CHROMIUM, str(work), str(SCREENS))
        headers = {"authorization": f"Bearer {token_of(daemon)}"}
        with (
            Browser(*words, script="rooms.mjs") as browser,
            httpx.Client(base_url=address, headers=headers, timeout=60) as rest,
        ):
            home = browser.step("home")
            assert {"Agent", "Model", "Mode"} <= set(home["offered"])
            assert "a note to read" in home["said"] and "count to 9" in home["said"]
            # The prompt is the title, not the file that goes along, which is folded.
            assert home["thinking"] is False and home["title"] == "think, then count to 9"
            assert home["attached"] == ["note<b>.txt", False]
            session = home["session"]
            assert rest.get(f"/api/sessions/{session}").json()["cwd"] == str(project)

            menus = browser.step("menus")
            assert menus["slash"][0] == "/undo" and menus["filled"] == "/undo "
            assert menus["files"] == ["parser.py"] and menus["at"] == "read @parser.py "
            assert browser.step("attached")["pictures"] == 1
            tools = browser.step("tools")
            assert tools["live"] == 1 and "bash" in tools["cards"] and "write" in tools["cards"]
            assert int(tools["gauge"]) >= 0
            undone = browser.step("undone")
            assert [path for path, _ in undone["changes"]] == ["hello.txt"]
            assert "calm" in undone["changes"][0][1]
            assert undone["before"] >= 1 and undone["left"] == 0
            assert not (project / "hello.txt").exists()
            child = rest.post(f"/api/sessions/{session}/fork").json()["id"]
            rest.patch(f"/api/sessions/{child}", json={"title": "A child at work"})
            browser.go_on()
            assert "A child at work" in browser.step("agents")["tree"]

            places = browser.step("places")
            assert places["lost"] == 1
            assert places["focus"] > 0 and places["export"] and places["name"].endswith(".md")
            assert any("count to 9" in title for title in places["turns"])
            timeline = browser.step("timeline")
            assert timeline["turns"] >= 4 and timeline["kinds"] == ["model", "tool", "wait"]
            assert "Waiting for you" in timeline["sums"]
            assert session in browser.step("found")["ids"]

            own = browser.step("own")
            assert own["light"] != own["dark"] == own["again"]
            assert "Jump to a turn" in own["keys"]
            asking = rest.post("/api/sessions", json={"cwd": str(work), "title": "Far away"}).json()
            at = f"/api/sessions/{asking['id']}"
            rest.post(f"{at}/prompt", json={"text": "run echo hi", "wait": False})
            browser.go_on()
            notified = browser.step("notified")
            assert notified["note"], notified
            title, _, path = notified["note"]
            assert "Far away" in title and asking["id"] in path

            all_clean(browser.step("pages")["pages"])
            browser.step("wire")
            client = Line(daemon.data / "acp.sock")
            client.ask("session/list", {})
            browser.go_on()
            filtered = browser.step("paused")["filtered"]
            assert filtered and all("session/list" in line for line in filtered)
            client.ask("session/list", {})
            browser.go_on()
            _plays(tmp_path, browser.step("copied")["transcript"])

            human = Line(daemon.data / "humanlayer.sock", init=None)
            ask = human.ask("createApproval", {
                "run_id": asking["id"], "tool_name": "Bash", "tool_input": {"command": LONG},
                "tool_use_id": "t1",
            })["approval_id"]  # fmt: skip
            link = rest.post(f"/api/approvals/{ask}/link", json={}).json()["path"]
            browser.go_on(link)
            linked = browser.step("linked")
            assert LONG in linked["asked"] and linked["early"]
            all_clean([linked["seen"]])
            settled = rest.get(f"/api/approvals/{ask}").json()["settled"]
            assert settled["verdict"] == "allow"
            manifest = browser.step("installed")["manifest"]
            assert manifest["display"] == "standalone" and len(manifest["icons"]) == 3
            client.close()
            human.close()
            daemon.stop()
            browser.go_on()
            all_clean([browser.step("away")["away"]])
            assert browser.step("over")["troubles"] == []


def all_clean(pages: list[dict[str, Any]]) -> None:
    wrong = [page for page in pages if page["violations"] or page["cut"] or page["over"] > 0]
    assert not wrong, json.dumps(wrong, indent=1)


def _plays(folder: Path, text: str) -> None:
    """What was copied is a transcript that `dragoman replay` plays."""
    file = folder / "copied.jsonl"
    file.write_text(text)
    rows = [json.loads(line) for line in text.splitlines()]
    asked = next(row for row in rows if "session/list" in row["line"])
    mine = [row for row in rows if row["connection"] == asked["connection"]]
    said = "".join(row["line"] + "\n" for row in mine if row["direction"] == "in")
    played = subprocess.run(
        ["dragoman", "replay", str(file)], input=said.encode(), capture_output=True, timeout=60
    )
    assert b"sessions" in played.stdout, played.stderr
