"""`dragoman token` and `dragoman pair`, with and without a running daemon."""

import json
from pathlib import Path

import httpx
import pytest
from tests.daemon.running import Daemon

from dragoman.cli.main import main


def test_a_token_is_made_listed_and_revoked(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    where = ["--config-dir", str(tmp_path)]
    assert main(["token", "new", "--name", "laptop", *where]) == 0
    token = capsys.readouterr().out.split()[-1]
    assert token.startswith("tok_") and len(token) > 50
    assert main(["token", "list", "--json", *where]) == 0
    (row,) = json.loads(capsys.readouterr().out)
    assert row["name"] == "laptop" and token.startswith(row["id"])
    assert token[13:] not in json.dumps(row)
    assert main(["token", "revoke", row["id"], *where]) == 0
    capsys.readouterr()
    assert main(["token", *where]) == 0
    assert "no tokens" in capsys.readouterr().out
    assert main(["token", "revoke", row["id"], *where]) == 1


def test_a_token_is_revoked_by_its_name(tmp_path: Path, capsys: pytest.CaptureFixture[str]):
    where = ["--config-dir", str(tmp_path)]
    ids = []
    for name in ("laptop", "laptop", "phone", ""):
        assert main(["token", "new", "--name", name, *where]) == 0
        ids.append(capsys.readouterr().out.split()[0])
    assert main(["token", "revoke", "phone", *where]) == 0
    assert capsys.readouterr().out == f"{ids[2]} is worthless now\n"
    assert main(["token", "revoke", "laptop", *where]) == 1
    said = capsys.readouterr().err
    assert "2 tokens are named laptop" in said and ids[0] in said and ids[1] in said
    assert main(["token", "revoke", "tablet", *where]) == 1
    assert f"(there are: laptop, {ids[3]})" in capsys.readouterr().err
    assert main(["token", "revoke", "", *where]) == 2
    assert "token revoke needs " in capsys.readouterr().err
    assert main(["token", "revoke", ids[0], *where]) == 0
    assert main(["token", "revoke", "laptop", *where]) == 0
    assert capsys.readouterr().out.split()[4:] == [ids[1], "is", "worthless", "now"]


def test_a_running_daemon_sees_new_and_revoked_tokens_at_once(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    where = ["--config-dir", str(tmp_path)]
    with Daemon(tmp_path, config="[gateway]\nport = 0\n", gateway=True) as daemon:
        daemon.wait_ready()
        address = json.loads((tmp_path / "data/gateway.json").read_text())["address"]
        assert f"open {address}/ and pair with the code".encode() in daemon.said
        assert main(["token", "new", *where]) == 0
        token = capsys.readouterr().out.split()[-1]
        with httpx.Client(base_url=address, headers={"authorization": f"Bearer {token}"}) as client:
            assert client.get("/api/status").status_code == 200
            assert main(["pair", "--json", *where]) == 0
            told = json.loads(capsys.readouterr().out)
            assert told["address"] == address
            paired = client.post("/pair", headers={"x-pairing-code": told["code"]})
            assert paired.status_code == 200
            assert main(["token", "revoke", token[:12], *where]) == 0
        # On new connections: the gateway may close those of a token that is worthless now.
        with httpx.Client(base_url=address, headers={"authorization": f"Bearer {token}"}) as client:
            assert client.get("/api/status").status_code == 401
        with httpx.Client(base_url=address) as client:
            other = {"authorization": f"Bearer {paired.json()['token']}"}
            assert client.get("/api/status", headers=other).status_code == 200
        assert daemon.stop() == 0
        assert token[13:] not in daemon.log()


def test_the_address_is_said_at_every_start_the_code_until_somebody_has_paired(
    tmp_path: Path,
) -> None:
    def said(config: str = "") -> str:
        given = f"[gateway]\nport = 0\n{config}"
        with Daemon(tmp_path, config=given, gateway=True) as daemon:
            daemon.wait_ready()
            address = json.loads((tmp_path / "data/gateway.json").read_text())["address"]
            assert daemon.stop() == 0
            return daemon.said.decode().replace(address, "ADDRESS")

    assert "open ADDRESS/ and pair with the code" in said()
    assert "the gateway listens at ADDRESS/\n" in said("require_pairing = false\n")
    assert main(["token", "new", "--config-dir", str(tmp_path)]) == 0
    now = said('path_prefix = "/x"\n')
    assert "the gateway listens at ADDRESS/\n" in now and "code" not in now
