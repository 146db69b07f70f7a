"""`dragoman daemon --background`: the daemon runs on, the command comes back when it is ready."""

import os
import select
import socket
import subprocess
from typing import Any

from dragoman import kernel
from dragoman.client.launch import launch, log_path, said_before, unsaid, words_since
from dragoman.client.problems import NotRunning
from dragoman.engine.faults import BadInput
from dragoman.leaving import leaving_in_order, undisturbed

from . import reach, say
from .parse import Args
from .places import next_line, short_folder

_WITHIN = 60.0  # seconds in which a daemon is ready or has said what is wrong
_OURS = "dragoman: "
_END_WITHIN = 10.0  # seconds in which one that nobody waits for any more has ended


def start(args: Args) -> int:
    """Start a daemon unless one runs. Exit code 1 when it does not come up."""
    try:
        found = reach.of_daemon(args, "status")
    except NotRunning:
        return _launch(args)
    say.out(f"A daemon runs already, process {found['pid']}.")
    flags = _flags(args)
    if {flag.removeprefix("--") for flag in flags}.difference(found.get("flags", ())):
        again = " ".join((next_line(args, "daemon --background"), *flags))
        end = next_line(args, "stop")
        say.warn(f"It keeps the flags of its own start. For yours: {end}; {again}")
    return 0


def _launch(args: Args) -> int:
    flags = _flags(args)
    log = log_path(args.config_dir)
    begins = said_before(log)
    with leaving_in_order(), short_folder() as folder:
        address = os.path.join(folder, "ready")
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as ear:
            try:
                ear.bind(address)
            except OSError as problem:
                why = problem.strerror or problem
                raise BadInput(
                    f"No socket can be made in {os.path.dirname(folder)}: {why}.",
                    "Choose another folder for temporary files with TMPDIR.",
                ) from None
            env = {**os.environ, "NOTIFY_SOCKET": address}
            process, ready = _begun(args, flags, env, ear)
    if not ready:
        code = process.poll()
        how = "does not answer" if code is None else f"ended with code {code}"
        said = words_since(log, begins)
        next_words = "It said:" if said else unsaid(next_line(args, "daemon"), log)
        say.err(f"dragoman: The daemon {how}. {next_words}")
        for line in said.splitlines():
            say.err(say.clean(line))
        return 1
    say.out(
        f"The daemon is ready, process {process.pid}. It writes to {log}; "
        f"end it: {next_line(args, 'stop')}"
    )
    for line in words_since(log, begins).splitlines():
        if line.startswith(_OURS):  # what it has for people; `ready` and its log are not
            say.err(say.clean(line))
    process.returncode = 0  # it is meant to outlive us
    return 0


def _begun(
    args: Args, flags: list[str], env: dict[str, str], ear: socket.socket
) -> "tuple[subprocess.Popen[bytes], bool]":
    """A new daemon, and whether it is ready. Who is interrupted meanwhile takes it along."""
    process = None
    try:
        with undisturbed():
            process = launch(args.config_dir, flags, env)
        return process, _hears(ear, process)
    except BaseException:
        if process is not None:
            _end(process)
        raise


def _end(process: "subprocess.Popen[bytes]") -> None:
    """End a daemon that has not said yet that it is ready."""
    process.terminate()
    try:
        process.wait(_END_WITHIN)
    except (subprocess.TimeoutExpired, KeyboardInterrupt):
        process.kill()
        process.wait()
    say.err(f"dragoman: The daemon that was starting, process {process.pid}, was ended.")


def _flags(args: Args) -> list[str]:
    names = ("ephemeral", "no-gateway", "native")
    return [f"--{name}" for name in names if getattr(args, name.replace("-", "_"))]


def _hears(ear: socket.socket, process: "subprocess.Popen[bytes]") -> bool:
    """Wait until the daemon says that it is ready, or ends."""
    end = kernel.open_process(process.pid) if kernel.holds_processes() else -1
    try:
        while True:
            wanted: list[Any] = [ear] if end < 0 else [ear, end]
            heard, _, _ = select.select(wanted, [], [], _WITHIN if end >= 0 else 0.5)
            if ear in heard:
                if b"READY=1" in ear.recv(4096):
                    return True
            elif end >= 0 or process.poll() is not None:
                return False
    finally:
        if end >= 0:
            os.close(end)
