"""Stands between a client and an agent process and writes down every line of both.

Usage: python recorder.py LOG COMMAND [ARGS...]
"""

import subprocess
import sys
import threading
from typing import IO, BinaryIO


def copy(source: BinaryIO, sink: IO[bytes], log: BinaryIO, mark: bytes) -> None:
    for line in source:
        log.write(mark + line)
        log.flush()
        try:
            sink.write(line)
            sink.flush()
        except BrokenPipeError:
            return
    if mark == b"C ":
        sink.close()


def main() -> int:
    with open(sys.argv[1], "ab", buffering=0) as log:
        agent = subprocess.Popen(sys.argv[2:], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert agent.stdin is not None and agent.stdout is not None
        down = threading.Thread(
            target=copy, args=(sys.stdin.buffer, agent.stdin, log, b"C "), daemon=True
        )
        down.start()
        copy(agent.stdout, sys.stdout.buffer, log, b"A ")
        code = agent.wait()
        log.write(b"X %d\n" % code)
        return code


if __name__ == "__main__":
    sys.exit(main())
