"""Hosts whose agent is a child process."""

import sys
from pathlib import Path

import pytest

from dragoman.host.compose import Composed, compose

AGENT = str(Path(__file__).with_name("hosted_agent.py"))


@pytest.fixture
async def hosts(tmp_path: Path):
    """Makes hosts on one configuration; all are closed at the end."""
    made: list[Composed] = []
    (tmp_path / "config").mkdir()
    (tmp_path / "state").mkdir()
    (tmp_path / "work").mkdir()

    async def make(more: str = "", args: list[str] | None = None) -> Composed:
        given = [AGENT, str(tmp_path / "state")] if args is None else args
        (tmp_path / "config" / "config.toml").write_text(
            "[agents.other]\n"
            'backend = "acp"\n'
            f'command = "{sys.executable}"\n'
            f"args = {given!r}\n{more}"
        )
        host = await compose(config_dir=str(tmp_path / "config"))
        made.append(host)
        return host

    yield make
    for one in made:
        await one.close()
