"""What the daemon loads before its first answer, and what it leaves for after it."""

import asyncio
import gc
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from dragoman.daemon import main
from dragoman.host import after_start as settling

CONFIG = '[agents.default]\nmodel = "demo/demo"\n[gateway]\nenabled = false\n'
# What only sessions, tools, models or the gateway need.
LATER = {
    *settling.LATER,
    "dragoman.agents.skills",
    "dragoman.engine.turn",
    "dragoman.policy.commands",
    "dragoman.policy.programs",
    "dragoman.providers.openai_chat",
    "dragoman.providers.retry",
    "dragoman.sandbox.launch",
    "dragoman.store.memory",
    "dragoman.wire.frames",
    "dragoman.tools",
    "dragoman.gateway",
    "dragoman.client",
    "dragoman.dialects.acp.hear",
    "dragoman.dialects.zot.hear",
    "dragoman.dialects.openclawos.hear",
    "dragoman.cli.help",
    "dragoman.cli.commands.work",
}
FOREIGN = set(
    "argparse ctypes dataclasses difflib email hashlib httpx json lzma mcp pathlib pydantic "
    "random secrets shutil tempfile urllib.parse websockets zlib zipfile".split()
)


WATCHED = """
import os, sys
class Err:
    def write(self, text):
        os.write(2, text.encode())
        if text == "ready":
            os.write(1, " ".join(sys.modules).encode())
            os._exit(0)
    def flush(self): pass
sys.stderr = Err()
sys.argv = ["dragoman", "daemon"]
from dragoman.cli.main import script
script()
"""


def test_a_daemon_is_ready_before_what_only_sessions_need_is_loaded(tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text(CONFIG)
    env = {**os.environ, "DRAGOMAN_CONFIG_DIR": str(tmp_path), "HOME": str(tmp_path)}
    done = subprocess.run(
        [sys.executable, "-c", WATCHED], env=env, capture_output=True, text=True, timeout=60
    )
    loaded = set(done.stdout.split())
    assert "dragoman.engine.host" in loaded, done.stderr  # it was really watched
    assert not loaded & LATER
    code = "import asyncio, sys; print(*sys.modules)"  # what it brings is Python's matter
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert not (loaded & FOREIGN) - set(done.stdout.split())


@pytest.fixture
def collector() -> object:
    yield
    gc.unfreeze()
    gc.enable()


async def test_the_collector_is_on_again_and_leaves_the_start_alone(
    collector: object, monkeypatch: pytest.MonkeyPatch
) -> None:
    gc.unfreeze()
    gc.disable()
    settling.spare_memory()
    assert gc.isenabled() and gc.get_freeze_count() > 0
    monkeypatch.setattr(settling, "_CALM_SECONDS", 0)
    await settling.settle()
    assert gc.isenabled() and gc.get_freeze_count() > 0
    assert all(name in sys.modules for name in settling.LATER)


@pytest.mark.parametrize("fails", [False, True])
def test_the_collector_rests_only_while_a_server_begins(fails: bool, collector: object) -> None:
    from dragoman.cli.quiet import begin

    seen = []

    def serve() -> int:
        seen.append(gc.isenabled())
        if fails:
            raise ValueError
        return 7

    if fails:
        with pytest.raises(ValueError):
            begin(serve)
    else:
        assert begin(serve) == 7
    assert seen == [False] and gc.isenabled()


async def test_few_unused_sessions_gather_and_memory_goes_back_now_and_then(monkeypatch):
    """Sweeping is cheap and often; giving memory back is not, and comes once for several sweeps."""
    swept: list[str] = []
    given: list[int] = []
    enough = asyncio.Event()

    async def sweep(idle: float, most: int) -> list[str]:
        swept.append("s")
        if len(swept) > 2 * main._TIDY_EVERY:
            enough.set()
        return ["s"]

    monkeypatch.setattr(main, "_SWEEP_SECONDS", 0.0)
    monkeypatch.setattr(main, "_give_back", lambda: given.append(len(swept)))
    host = SimpleNamespace(sweep=sweep, live={})
    composed = SimpleNamespace(host=host, descendants=SimpleNamespace(bury=lambda: None))
    daemon = cast(Any, SimpleNamespace(composed=composed))
    sweeping = asyncio.ensure_future(main.Daemon._sweep(daemon))
    await asyncio.wait_for(enough.wait(), 60)
    sweeping.cancel()
    assert given == [main._TIDY_EVERY, 2 * main._TIDY_EVERY]
