"""Every transport test runs on both event loops."""

import asyncio

from dragoman.transports.loop import tame_reads


def pytest_asyncio_loop_factories(config, item):
    """The loops that tests here run on."""
    tame_reads()
    factories = {"asyncio": asyncio.new_event_loop}
    try:
        import uvloop
    except ImportError:
        return factories
    return {"uvloop": uvloop.new_event_loop, **factories}
