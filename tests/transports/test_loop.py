"""The event loop that programs run on."""

import asyncio
import asyncio.selector_events
import asyncio.unix_events
import subprocess
import sys

from dragoman.transports import loop


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
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=20)
    assert done.stdout.split() == ["asyncio.unix_events", "65536", "65536"], done.stderr


def test_memory_is_settled():
    code = (
        "import gc; from dragoman.transports.loop import settle_memory\n"
        "settle_memory(); print(gc.get_freeze_count() > 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=20)
    assert done.stdout.strip() == "True", done.stderr
