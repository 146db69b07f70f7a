"""Names of terminals: signed, kept over restarts, refused to others."""

import os
import stat

import pytest

from dragoman.dialects.zeroclaw import Desk
from dragoman.dialects.zeroclaw.terminals import FILE, Signer
from dragoman.testing.host import memory_door
from dragoman.testing.script import Scripted

from .talking import Talker
from .test_terminal import hello


def test_a_signature_fits_its_name_alone_also_after_a_restart(tmp_path):
    signed = Signer(str(tmp_path)).sign("tui_1")
    assert len(signed) == 64 and stat.S_IMODE(os.stat(tmp_path / FILE).st_mode) == 0o600
    again = Signer(str(tmp_path))
    assert again.fits("tui_1", signed) and again.fits("tui_1", f" {signed.upper()}\n")
    for name, wrong in (("tui_2", signed), ("tui_1", ""), ("tui_1", "ü"), ("tui_1", signed[:-1])):
        assert not again.fits(name, wrong)
    assert os.listdir(tmp_path) == [FILE]


@pytest.mark.parametrize("damaged", [b"", b"xyz", b"00", b"\xff" * 64])
def test_a_damaged_key_is_made_again(tmp_path, damaged):
    (tmp_path / FILE).write_bytes(damaged)
    signed = Signer(str(tmp_path)).sign("tui_1")
    assert signed and Signer(str(tmp_path)).fits("tui_1", signed)


def test_the_first_process_makes_the_key_of_both(tmp_path, monkeypatch):
    first, second = Signer(str(tmp_path)), Signer(str(tmp_path))
    read = second._read
    signed = []

    def late():
        if not signed:
            signed.append(first.sign("a"))  # between the look and the making
            return b""
        return read()

    monkeypatch.setattr(second, "_read", late)
    assert second.sign("a") == signed[0]


def test_a_link_is_not_followed_and_nothing_is_signed(tmp_path):
    (tmp_path / "elsewhere").write_text("00" * 32)
    (tmp_path / FILE).symlink_to(tmp_path / "elsewhere")
    signer = Signer(str(tmp_path))
    assert signer.sign("a") == "" and signer.fits("a", "anything")


def test_without_a_folder_every_name_is_taken():
    assert Signer("").sign("a") == "" and Signer("").fits("a", "wrong")


async def test_a_terminal_takes_its_name_again_and_nobody_else_does(tmp_path):
    door = memory_door(Scripted(["hi"]))
    door.facts.data_dir = str(tmp_path)
    desk = Desk(door)
    told = Talker(desk, hello()).init["result"]
    mine = {"tui_id": told["tui_id"], "tui_sig": told["tui_sig"]}
    assert Talker(desk, hello(**mine)).init["result"]["tui_sig"] == told["tui_sig"]
    other = Talker(desk, hello(**mine | {"tui_sig": "0" * 64}))
    assert other.init["error"] == {"code": -32010, "message": "Invalid TUI signature"}
    assert (await other.refused("status"))["code"] == -32010  # it is not in
    other.client.send(hello(**mine))
    assert "result" in (await other.answer(0))


async def test_nodes_of_a_fleet_take_the_names_of_each_other(tmp_path):
    async def nodes():
        return ()

    door = memory_door(Scripted(["hi"]))
    door.facts.data_dir = str(tmp_path)
    door.facts.fleet = nodes
    told = Talker(Desk(door), hello(tui_id="tui_1", tui_sig="of another node")).init["result"]
    assert told["tui_id"] == "tui_1" and "tui_sig" not in told
