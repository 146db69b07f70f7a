"""The event loop that programs run on."""

import asyncio
import asyncio.selector_events
import asyncio.unix_events
import signal
import subprocess
import sys

import pytest

from dragoman.transports import loop

ENDING = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)


def test_run_uses_uvloop_where_it_is():
    async def name() -> str:
        return type(asyncio.get_running_loop()).__module__

    assert loop.run(name()).startswith("uvloop")


def test_without_uvloop_it_is_asyncio_with_small_reads():
    code = (
        "import sys; sys.modules['uvloop'] = None\n"
        "import asyncio, asyncio.selector_events as s, asyncio.unix_events as u\n"
        "from dragoman.transports import loop\n"
        "async def main(): return type(asyncio.get_running_loop()).__module__\n"
        "print(loop.run(main()), s._SelectorTransport.max_size, u._UnixReadPipeTransport.max_size)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.stdout.split() == ["asyncio.unix_events", "65536", "65536"], done.stderr


@pytest.mark.parametrize("kind", ["uvloop", "asyncio"])
def test_who_ended_its_loop_can_be_ended_by_signals(
    monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    """A closed uvloop's handlers stay, and do nothing."""
    if kind == "asyncio":
        monkeypatch.setitem(sys.modules, "uvloop", None)

    async def listen() -> int:
        for number in ENDING:
            asyncio.get_running_loop().add_signal_handler(number, print)
        return 3

    async def fail() -> int:
        raise OSError(await listen())

    before = [signal.getsignal(number) for number in ENDING]
    assert loop.run(listen()) == loop.run(loop.ended_by_signals(listen())) == 3
    with pytest.raises(OSError, match="3"):
        loop.run(fail())
    assert [signal.getsignal(number) for number in ENDING] == before


INTERRUPTED = """
import asyncio, os, signal
from dragoman.cli.quiet import unhurt
from dragoman.transports import loop

async def turn():
    {here}
    await asyncio.sleep(300)

def serve():
    try:
        {before}
        return loop.run(turn())
    except BaseException as problem:
        print(type(problem).__name__)
        return 7

raise SystemExit(unhurt(serve))
"""
KILL = "os.kill(os.getpid(), signal.SIGINT)"


def test_an_interrupt_ends_what_is_being_loaded_and_is_an_exception_once_the_loop_runs():
    """One in the middle of an import of msgspec's types was a segmentation fault."""
    for code, expected in (
        (INTERRUPTED.format(before=KILL, here="pass"), (-signal.SIGINT, "")),
        (INTERRUPTED.format(before="pass", here=KILL), (7, "KeyboardInterrupt\n")),
    ):
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, timeout=60)
        assert (done.returncode, done.stdout.decode()) == expected, done.stderr


def test_memory_is_settled():
    code = (
        "import gc; from dragoman.transports.loop import settle_memory\n"
        "settle_memory(); print(gc.get_freeze_count() > 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert done.stdout.strip() == "True", done.stderr
