"""What the gateway does and says when it begins to listen."""

import os
from pathlib import Path
from types import SimpleNamespace

import pytest
from tests.gateway.making import serving

from dragoman.engine.faults import StoreFailed
from dragoman.gateway.gate import Gate
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


async def test_one_that_does_not_come_up_leaves_no_address(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    """A full disk: no code can be written down."""
    written: list[bytes] = []

    async def full(gate: Gate) -> None:
        written.append((tmp_path / "gateway.json").read_bytes())
        raise StoreFailed("The disk is full.")

    monkeypatch.setattr(Gate, "_show_code", full)
    with pytest.raises(StoreFailed):
        async with serving(data_dir=str(tmp_path)):
            pass
    assert written and not list(tmp_path.iterdir())


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
