"""What the gateway does and says when it begins to listen."""

import os
from pathlib import Path
from types import SimpleNamespace

import pytest
from tests.gateway.making import serving

from dragoman.gateway.origin import is_loopback


async def test_an_address_that_others_can_reach_without_tls_is_warned_of(capfd):
    async with serving(host="0.0.0.0"):
        assert "without TLS" in capfd.readouterr().err
    async with serving(host="127.0.0.1"):
        assert "without TLS" not in capfd.readouterr().err


async def test_without_pairing_it_says_what_that_gives_away(capfd):
    async with serving(require_pairing=False):
        assert "require_pairing = false" in capfd.readouterr().err


@pytest.mark.parametrize("host", ["127.0.0.1", "127.9.9.9", "::1", "localhost"])
def test_loopback(host: str) -> None:
    assert is_loopback(host)


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.1", "example.org", ""])
def test_not_loopback(host: str) -> None:
    assert not is_loopback(host)


async def test_the_note_of_the_address_follows_no_link(tmp_path: Path):
    victim = tmp_path / "victim"
    victim.write_text("mine")
    data = tmp_path / "data"
    data.mkdir()
    (data / "gateway.json").symlink_to(victim)
    async with serving() as served:
        served.gate.composed.places = SimpleNamespace(data_dir=str(data))
        for planted in (False, True):
            if planted:
                (data / f"gateway.json.{os.getpid()}").symlink_to(victim)
            served.gate._note_address()
            assert victim.read_text() == "mine"
            assert not (data / "gateway.json").is_symlink()
            assert served.gate.address in (data / "gateway.json").read_text()
