"""Runs a command as if it were at the other end of a slow line: python slow_line.py COMMAND...

What it writes arrives in small pieces, BYTES a second; what is typed goes there at once.
"""

import fcntl
import os
import pty
import select
import sys
import termios
import time
import tty

BYTES = 24_000  # a poor mobile connection
PIECE = 120  # far less than a frame


def main() -> None:
    pid, line = pty.fork()
    if pid == 0:
        os.execvp(sys.argv[1], sys.argv[1:])
    size = fcntl.ioctl(0, termios.TIOCGWINSZ, b"\0" * 8)
    fcntl.ioctl(line, termios.TIOCSWINSZ, size)
    tty.setraw(0)
    while True:
        ready, _, _ = select.select([0, line], [], [])
        if 0 in ready:
            os.write(line, os.read(0, 65536))
        if line in ready:
            try:
                data = os.read(line, PIECE)
            except OSError:
                return  # the command is over
            os.write(1, data)
            time.sleep(len(data) / BYTES)


if __name__ == "__main__":
    main()
