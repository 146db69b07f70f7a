"""`dragoman stop`: end the running daemon as a service manager would."""

import os
import select
import signal
import time

from dragoman import kernel
from dragoman.client.problems import NotRunning

from .. import reach, say
from ..parse import Args

_WITHIN = 30.0  # seconds in which a daemon has ended


def run(args: Args) -> int:
    """Ask it to end and wait until it has. Exit code 1 when none runs, or it does not end."""
    try:
        with reach.daemon(args) as host:
            found = host.call("dragoman/status")
            pid = int(found["pid"])
            ended = _Ended(pid)
            os.kill(pid, signal.SIGTERM)
    except NotRunning as none:
        raise NotRunning(none.message) from none  # whoever ends it does not want to start it
    if not ended.wait(_WITHIN):
        say.warn(f"The daemon, process {pid}, has not ended after {_WITHIN:.0f} s.")
        return 1
    say.out(f"The daemon has ended. {_left(found['store'])}")
    return 0


def _left(store: reach.Row) -> str:
    """What the daemon leaves of its sessions."""
    if store["durable"]:
        return "Sessions are kept; what was under way goes on at the next start."
    why = f": {store['problem']}" if store["problem"] else "."
    return f"Its sessions were in memory only and are gone{why}"


class _Ended:
    """Waits for the end of a process that is not our child."""

    def __init__(self, pid: int) -> None:
        self._pid = pid
        self._fd = kernel.open_process(pid) if kernel.holds_processes() else -1

    def wait(self, seconds: float) -> bool:
        if self._fd >= 0:
            try:
                return bool(select.select([self._fd], [], [], seconds)[0])
            finally:
                os.close(self._fd)
        end = time.monotonic() + seconds  # systems without pidfds tell nobody
        while time.monotonic() < end:
            try:
                os.kill(self._pid, 0)
            except ProcessLookupError:
                return True
            time.sleep(0.05)
        return False
