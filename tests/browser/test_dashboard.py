"""The dashboard in a real browser, against a real daemon, beside a real ACP client."""

import json
import os
import select
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
from tests.daemon.running import Daemon, Line

HERE = Path(__file__).parent
NODE = HERE.parent / "interop" / "node" / "node_modules"
NAMES = ("chromium", "chromium-browser", "google-chrome")
CHROMIUM = next((path for name in NAMES if (path := shutil.which(name))), "")
READY = bool(CHROMIUM) and (NODE / "playwright-core").exists()
# Each page as it looked, to be looked at.
SCREENS = Path(os.environ.get("SCREENS") or HERE / "screens")

pytestmark = [
    pytest.mark.browser,
    pytest.mark.skipif(
        not READY and os.environ.get("CI") != "true", reason="needs make setup-browser"
    ),
    pytest.mark.timeout(1200),
]


class Browser:
    """The script that drives the browser; each step says what it saw."""

    def __init__(self, *words: str, script: str = "dashboard.mjs") -> None:
        self.process = subprocess.Popen(
            [str(NODE / ".bin" / "node"), str(HERE / script), *words],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
        )  # fmt: skip
        self._rest = b""

    def step(self, name: str, within: float = 900.0) -> dict[str, Any]:
        assert self.process.stdout is not None and self.process.stderr is not None
        while b"\n" not in self._rest:
            ready, _, _ = select.select([self.process.stdout], [], [], within)
            assert ready, f"{name} did not happen"
            more = os.read(self.process.stdout.fileno(), 65536)
            assert more, self.process.stderr.read().decode()
            self._rest += more
        line, _, self._rest = self._rest.partition(b"\n")
        row: dict[str, Any] = json.loads(line)
        if row["step"] != name:
            for part, value in row.items():  # assertions cut it short
                print(f"{part}: {value}")
        assert row["step"] == name, row
        return row

    def go_on(self, word: str = "go") -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(f"{word}\n".encode())
        self.process.stdin.flush()

    def __enter__(self) -> "Browser":
        return self

    def __exit__(self, *problem: object) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait(60)
        for stream in (self.process.stdin, self.process.stdout, self.process.stderr):
            assert stream is not None
            stream.close()


def test_a_day_at_the_dashboard(tmp_path: Path) -> None:
    work = tmp_path / "work"
    work.mkdir()
    with Daemon(tmp_path, config="[gateway]\nport = 0\n", gateway=True) as daemon:
        daemon.wait_ready()
        address = json.loads((daemon.data / "gateway.json").read_text())["address"]
        code = daemon.said.decode().split("pair with the code ")[1].split()[0]
        with Browser(address, code, str(work), str(SCREENS), CHROMIUM) as browser:
            paired = browser.step("paired")
            assert paired["httpOnly"] and paired["readable"] == ""
            assert paired["sameSite"] == ["Strict"]

            streamed = browser.step("streamed")
            assert "39" in streamed["text"] and "40" in streamed["text"]

            client = Line(daemon.data / "acp.sock")
            params = {"sessionId": streamed["session"], "cwd": str(work), "mcpServers": []}
            client.ask("session/resume", params)
            browser.go_on()
            asked = browser.step("asked")
            assert asked["badge"] == "1" and asked["group"].startswith("Needs you")
            settled = browser.step("settled")
            assert "hello from the browser" in settled["output"]
            assert settled["by"].startswith("Allowed")
            # The ACP client was asked too, did not answer, and saw the call run all the same.
            seen = _until(client, '"status":"completed"')
            assert any(one.get("method") == "session/request_permission" for one in seen)
            assert "hello from the browser" in json.dumps(seen)

            assert browser.step("changed")["mode"] == "readonly"
            assert (work / "hello.txt").exists()

            configured = browser.step("configured")
            assert configured["note"] == "Saved. In use now." and not configured["zeroIsValid"]
            for key in ("default_agent", "max_sessions", "session_timeout_secs"):
                assert f"acp.{key}" in configured["keys"]
            fresh = Line(daemon.data / "acp.sock")
            told = fresh.init["_meta"]["zeroclaw"]
            assert told["maxSessions"] == 3
            assert "max_sessions = 3" in daemon.config.read_text()

            browser.step("wire")
            client.ask("session/list", {})
            browser.go_on()
            clients = browser.step("clients")
            assert "session/list" in clients["wire"]
            assert {"acp", "dashboard"} <= set(clients["dialects"])

            assert browser.step("phone")["overflow"] <= 0
            over = browser.step("over")
            assert over["troubles"] == []
            client.close()
            fresh.close()
        assert daemon.stop() == 0
    assert len(list(SCREENS.glob("*.png"))) >= 18


def _until(client: Line, text: str) -> list[dict[str, Any]]:
    seen = list(client.seen)
    while text.replace('":"', '": "') not in json.dumps(seen):
        seen.append(client.receive())
    return seen
