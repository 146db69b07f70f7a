"""A PostgreSQL of its own leaves nothing behind, however its owner ends."""

import os
import select
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from dragoman import kernel

pytestmark = pytest.mark.usefixtures("initdb")
OWNER = """
import os, signal, sys
from dragoman.testing.postgres import Server
server = Server()
print(server.folder, server.pid, flush=True)
sys.stdin.read()
if "stop" in sys.argv:
    server.stop()
os.kill(os.getpid(), signal.SIGKILL)
"""


@pytest.mark.parametrize("way", ["stop", "killed"])
def test_it_goes_with_its_owner(way: str) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", OWNER, way], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as owner:
        assert owner.stdout is not None and owner.stdin is not None
        folder, pid = owner.stdout.readline().split()
        assert Path(folder).is_dir()
        server = kernel.open_process(int(pid))
        owner.stdin.close()
        assert owner.wait(60) == -signal.SIGKILL
    with os.fdopen(server) as ends:
        assert select.select([ends], [], [], 60)[0]
    until = time.monotonic() + 60
    while Path(folder).exists():
        assert time.monotonic() < until
        os.sched_yield()
