"""A session in a worktree of its own, opened and ended at the dashboard."""

import json
import subprocess
from pathlib import Path

import pytest
from tests.browser.test_dashboard import CHROMIUM, Browser
from tests.browser.test_dashboard import pytestmark as marks
from tests.browser.test_rooms import all_clean
from tests.daemon.running import Daemon, script

pytestmark = [*marks[:2], pytest.mark.timeout(1200), pytest.mark.slow]


def test_a_worktree_is_merged_or_dropped_by_the_users_word(tmp_path: Path) -> None:
    work = tmp_path / "work"
    work.mkdir()
    subprocess.run(
        "git init -q . && git config user.email a@b && git config user.name n "
        "&& echo one > a.txt && git add . && git commit -qm first",
        shell=True, cwd=work, check=True,
    )  # fmt: skip

    def made(name: str) -> list[dict[str, object]]:
        args = {"path": name, "content": f"{name}\n"}
        call = {"type": "call", "name": "write", "args": args}
        return [{"parts": [call]}, {"parts": [{"type": "say", "text": "done"}]}]

    turns = [*made("merged.txt"), *made("dropped.txt")]
    config = script(tmp_path, turns) + "[gateway]\nport = 0\n"
    with Daemon(tmp_path, config=config, gateway=True) as daemon:
        daemon.wait_ready()
        address = json.loads((daemon.data / "gateway.json").read_text())["address"]
        code = daemon.said.decode().split("pair with the code ")[1].split()[0]
        with Browser(address, code, CHROMIUM, str(work), script="worktree.mjs") as browser:
            ended = browser.step("ended")
            merged, dropped = ended["seen"]
            assert "make-the-merge-file" in merged["branch"]
            assert "merged" in merged["ended"] and "dropped" in dropped["ended"]
            all_clean(ended["pages"])
            assert browser.step("over")["troubles"] == []
    assert (work / "merged.txt").read_text() == "merged.txt\n"
    assert not (work / "dropped.txt").exists()
    branches = subprocess.run(
        ["git", "branch", "--format=%(refname:short)"], cwd=work, capture_output=True, check=True
    )
    assert len(branches.stdout.split()) == 1
