"""How each dialect is started for its talks: `<dialect>/starter.py` beside them.

A starter module has `async def start(setup: Setup) -> Stage`, and `TRANSPORTS` when not all carry
the dialect.
"""

from importlib import import_module

from dragoman.testing.play import TRANSPORTS, Starter


def of(dialect: str) -> tuple[Starter, tuple[str, ...]]:
    """The starter of a dialect, and the transports that its talks run over."""
    module = import_module(f"tests.transcripts.{dialect}.starter")
    return module.start, getattr(module, "TRANSPORTS", TRANSPORTS)
