"""Certificates of our own: made once, kept, renewed, known by their fingerprint."""

import asyncio
import hashlib
import json
import os
import ssl
import stat
from pathlib import Path
from typing import Any

import pytest
import websockets
from tests.cli.living import Living

from dragoman.http import certificate


def test_it_is_made_once_and_its_key_is_private(tmp_path: Path) -> None:
    cert, key = certificate.own(str(tmp_path), ["localhost", "127.0.0.1", "::1"])
    before = Path(cert).read_bytes()
    assert stat.S_IMODE(os.stat(key).st_mode) == 0o600
    assert certificate.own(str(tmp_path), ["localhost"]) == (cert, key)
    assert Path(cert).read_bytes() == before


@pytest.mark.parametrize("broken", ["", "no certificate", None])
def test_a_damaged_one_is_made_again(tmp_path: Path, broken: str | None) -> None:
    cert, key = certificate.own(str(tmp_path), ["localhost"])
    Path(cert).unlink() if broken is None else Path(cert).write_text(broken)
    before = Path(key).read_bytes()
    assert certificate.own(str(tmp_path), ["localhost"]) == (cert, key)
    assert Path(key).read_bytes() != before
    assert len(certificate.fingerprint(cert)) == 95


def test_one_that_ends_soon_is_made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cert, _ = certificate.own(str(tmp_path), ["localhost"])
    before = Path(cert).read_bytes()
    monkeypatch.setattr(certificate, "RENEW_SECONDS", (certificate.DAYS + 1) * 86400)
    certificate.own(str(tmp_path), ["localhost"])
    assert Path(cert).read_bytes() != before


def test_without_the_program_it_says_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(certificate, "_PLACES", str(tmp_path))
    with pytest.raises(certificate.NoCertificate, match="install it, or bring a certificate"):
        certificate.own(str(tmp_path), ["localhost"])


def test_a_terminal_from_elsewhere_comes_in_by_the_bare_address(tmp_path: Path) -> None:
    living = Living(tmp_path)
    living.env |= {"DRAGOMAN_gateway__tls_self_signed": "true", "DRAGOMAN_gateway__port": "0"}
    daemon = living.process = living.spawn("daemon")
    try:
        assert daemon.stderr is not None
        said = []
        while (line := daemon.stderr.readline()).strip() != "ready":
            assert line, said
            said.append(line)
        paired = json.loads(living.says("pair", "--json"))
        place = paired["address"]
        assert place.startswith("https://127.0.0.1:")
        assert any(paired["fingerprint"] in line for line in said)
        token = json.loads(living.says("token", "new", "--name", "far", "--json"))["token"]
        answer, seen = asyncio.run(_shake_hands(place.replace("https", "wss"), token))
        assert seen == paired["fingerprint"].replace(":", "").lower()
        assert answer["result"]["server_version"] == "0.8.4"
        with pytest.raises(websockets.InvalidStatus, match="401"):
            asyncio.run(_shake_hands(place.replace("https", "wss"), "wrong"))
        # Our own bridge trusts the certificate that it finds beside the data.
        bridge = living.spawn("acp-bridge")
        ask = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": 1}}
        out, err = bridge.communicate(json.dumps(ask) + "\n", timeout=60)
        assert json.loads(out.splitlines()[0])["result"]["protocolVersion"] == 1, err
    finally:
        living.stop()


async def _shake_hands(address: str, token: str) -> tuple[Any, str]:
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE  # known by its fingerprint, as the terminal does it
    async with websockets.connect(f"{address}/?token={token}", ssl=context) as socket:
        wire = socket.transport.get_extra_info("ssl_object")
        seen = hashlib.sha256(wire.getpeercert(True)).hexdigest()
        params = {
            "protocol_version": 1,
            "clientCapabilities": {"elicitation": {"form": {}}},
            "client": {"name": "zerocode", "version": "0.8.4"},
        }
        ask = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params}
        await socket.send(json.dumps(ask))
        return json.loads(await socket.recv()), seen
