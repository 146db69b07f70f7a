"""What `--native` says when another program listens where its clients look."""

import os
import socket
from pathlib import Path

from tests.cli.living import Living


def test_the_refusal_advises_what_helps(tmp_path: Path) -> None:
    living = Living(tmp_path)
    taken = tmp_path / ".humanlayer"
    taken.mkdir(mode=0o700)
    with socket.socket(socket.AF_UNIX) as other:
        other.bind(str(taken / "daemon.sock"))
        other.listen()
        done = living.run("daemon", "--native", "--no-gateway")
        assert done.returncode == 1
        assert f"in use by process {os.getpid()}" in done.stderr
        assert "leave --native" in done.stderr and "config-dir" not in done.stderr
    living.start()  # it does
    living.stop()
