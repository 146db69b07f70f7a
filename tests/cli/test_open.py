"""`dragoman open` and `dragoman pair` against a real daemon."""

import json
import os
import stat
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path

from tests.daemon.running import Daemon

from dragoman.cli.verbs.open import write_page


def cli(folder: Path, *words: str, **env: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [sys.executable, "-m", "dragoman", *words, "--config-dir", str(folder)],
        env={**os.environ, **env}, text=True, capture_output=True, timeout=60,
    )  # fmt: skip


def post(address: str, code: str) -> int:
    request = urllib.request.Request(
        f"{address}/pair",
        json.dumps({"code": code}).encode(),
        {"content-type": "application/json"},
    )
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as refused:
        refused.close()
        return refused.code


def test_a_link_lets_in_once_and_a_code_comes_over_the_socket(tmp_path: Path) -> None:
    config = '[gateway]\nport = 0\n[store]\npath = ":memory:"\n'
    with Daemon(tmp_path, gateway=True, config=config) as daemon:
        daemon.wait_ready()
        shown = cli(tmp_path, "open", "--print").stdout.strip()
        address, _, secret = shown.partition("/#enter=")
        assert post(address, secret) == 200 and post(address, secret) == 403
        found = json.loads(cli(tmp_path, "pair", "--json").stdout)
        assert found["address"] == address and found["expires_in"] == 600
        assert post(address, found["code"]) == 200
        code = cli(tmp_path, "pair").stdout.strip()
        assert post(address, code) == 200


def test_a_browser_is_given_a_page_and_not_the_link(tmp_path: Path) -> None:
    seen = tmp_path / "seen"
    browser = tmp_path / "browser"
    browser.write_text(f'#!/bin/sh\necho "$@" > {seen}.new; mv {seen}.new {seen}\n')
    browser.chmod(0o755)
    home = tmp_path / "d"
    home.mkdir()
    with Daemon(home, gateway=True, config="[gateway]\nport = 0\n") as daemon:
        daemon.wait_ready()
        done = cli(home, "open", BROWSER=f"{browser} %s")
        assert "opens in your browser" in done.stderr, done
    given = seen.read_text().strip()
    assert given.startswith("file://") and "enter=" not in given
    page = Path(given.removeprefix("file://"))
    assert stat.S_IMODE(page.stat().st_mode) == 0o600 and "#enter=link_" in page.read_text()


def test_the_page_follows_no_link_and_is_replaced(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("mine")
    (tmp_path / "data").mkdir()
    (tmp_path / "data" / "open.html").symlink_to(victim)
    for link in ("http://x/#enter=1", 'http://x/#enter="><script>'):
        path = write_page(str(tmp_path / "data"), link)
        assert victim.read_text() == "mine" and "<script>" not in Path(path).read_text()
    assert os.listdir(tmp_path / "data") == ["open.html"]


def test_without_a_daemon_it_says_how_to_start_one(tmp_path: Path) -> None:
    done = cli(tmp_path, "open", "--print")
    assert done.returncode != 0 and "dragoman daemon" in done.stderr
