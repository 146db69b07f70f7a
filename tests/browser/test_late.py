"""Somebody who types and presses keys while answers are still under way, in a real browser."""

import json
from pathlib import Path

from tests.browser.test_dashboard import CHROMIUM, Browser
from tests.browser.test_dashboard import pytestmark as marks
from tests.daemon.running import Daemon, hang, say, script

pytestmark = marks


def test_what_is_typed_while_answers_are_under_way_is_not_lost(tmp_path: Path) -> None:
    work = tmp_path / "work"
    work.mkdir()
    config = script(tmp_path, [say("yes")] * 8) + "[gateway]\nport = 0\n"
    with Daemon(tmp_path, config=config, gateway=True) as daemon:
        daemon.wait_ready()
        address = json.loads((daemon.data / "gateway.json").read_text())["address"]
        code = daemon.said.decode().split("pair with the code ")[1].split()[0]
        with Browser(address, code, CHROMIUM, str(work), script="late.mjs") as browser:
            folder = browser.step("folder")
            assert folder["folder"] == str(work)
            assert folder["early"] == "" and folder["usual"] == str(tmp_path)

            sent = browser.step("sent")
            assert sent["back"] == "first\nsecond" and sent["at"] == "/config"

            written = browser.step("written")
            assert written["hidden"]
            texts = [one["text"] for one in written["files"]["content"]]
            assert texts[0] == "with two files" and len(texts) == 3
            assert "text 1" in texts[1] and "text 2" in texts[2]

            settings = browser.step("settings")
            assert settings["unsaved"] and settings["kept"] == 9
            assert browser.step("over")["troubles"] == []


def test_an_answer_does_not_hide_what_the_stream_told_before_it(tmp_path: Path) -> None:
    work = tmp_path / "work"
    work.mkdir()
    config = script(tmp_path, [hang()]) + "[gateway]\nport = 0\n"
    with Daemon(tmp_path, config=config, gateway=True) as daemon:
        daemon.wait_ready()
        address = json.loads((daemon.data / "gateway.json").read_text())["address"]
        code = daemon.said.decode().split("pair with the code ")[1].split()[0]
        with Browser(address, code, CHROMIUM, str(work), script="newer.mjs") as browser:
            assert "tell me more" in browser.step("newer")["running"]
            assert browser.step("over")["troubles"] == []
