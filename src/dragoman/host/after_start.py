"""What is left for after the start, so that the first client is answered before it is done."""

import asyncio
import gc
from importlib import import_module

from dragoman.transports.loop import settle_memory

_CALM_SECONDS = 0.25  # after the start, for those who waited for it
# What the first session needs and the first answer does not: 29 ms that the first client would wait
# (decision 0073), in steps of a few milliseconds.
LATER = (
    "dragoman.engine.turn",
    "dragoman.engine.session",
    "dragoman.policy.programs",
    "dragoman.policy.commands",
    "dragoman.policy.autonomy",
    "dragoman.agents.builtin",
    "dragoman.agents.commands",
    "shutil",
    "dragoman.sandbox.launch",
    "dragoman.sandbox.choose",
    "ctypes",
    "dragoman.sandbox.landlock",
    "dragoman.providers.catalogue",
)


def spare_memory() -> None:
    """Turn the garbage collector on; what start-up made is none of its business. Takes no time."""
    gc.freeze()
    gc.enable()


async def settle() -> None:
    """Load the rest in small steps, and take it out of the collector's rounds, too.

    What start-up itself left behind is not looked for: some hundred objects are not worth a pause
    that clients would notice.
    """
    await asyncio.sleep(_CALM_SECONDS)
    for name in LATER:
        import_module(name)
        await asyncio.sleep(0)  # whoever asks meanwhile is answered in between
    settle_memory()
