"""Ways to servers that clients lend are found by name, and only while they are there."""

import gc
from typing import Any

from dragoman.engine.ports.lent import find, keep


class Way:
    async def ask(self, id: str, method: str, params: Any) -> dict[str, Any]:
        return {"result": {}}

    def on_told(self, told: Any) -> None:
        return None


def test_a_way_is_forgotten_with_its_client() -> None:
    way = Way()
    name = keep(way)
    assert find(name) is way and find("another") is None and keep(way) != name
    del way
    gc.collect()
    assert find(name) is None
