"""A home for each test of the terminal."""

from collections.abc import Iterator

import pytest
from tests.tui.panes import Home


@pytest.fixture
def home() -> Iterator[Home]:
    made = Home()
    yield made
    made.close()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """A person at a real terminal has a core to himself: keys are not typed beside many others."""
    for item in items:
        if "home" in getattr(item, "fixturenames", ()) and "tests/tui" in item.nodeid:
            item.add_marker(pytest.mark.terminal)
