"""Lines of all kinds of JSON on every socket: an error at most, and the connection goes on."""

import json
import socket

import pytest
from tests.daemon.json_cases import cases
from tests.daemon.running import Daemon

CASES = list(cases())
# What to say on each endpoint to see that it still listens, and how the answer is known.
PROBES = {
    "daemon": (b'{"jsonrpc":"2.0","method":"no/such","id":"probe"}', "id"),
    "humanlayer": (b'{"jsonrpc":"2.0","method":"health","id":"probe"}', "id"),
    "acp": (b'{"jsonrpc":"2.0","method":"no/such","id":"probe"}', "id"),
    "kernel": (b'{"type":"request","id":"probe","method":"no.such","params":{}}', "probe"),
}
ZOT = (b'{"type":"ping","id":"probe"}', "id")


@pytest.fixture(scope="module")
def daemon(tmp_path_factory):
    with Daemon(tmp_path_factory.mktemp("json")).wait_ready() as running:
        yield running
        assert "Traceback" not in running.log() and "request failed" not in running.log()
        assert running.stop() == 0


def talk(path, lines, probe):
    """Say lines and a probe on one connection; returns what came before the probe's answer."""
    with socket.socket(socket.AF_UNIX) as sock:
        sock.settimeout(60)
        sock.connect(str(path))
        sock.sendall(b"".join(line + b"\n" for line in (*lines, probe)))
        said = []
        with sock.makefile("rb") as file:
            for row in file:
                if b"probe" in row:
                    return said
                said.append(json.loads(row))
    raise AssertionError(f"the connection ended after {said[-3:]}")


def test_there_are_enough_cases():
    kinds = [name[0] for name, _ in CASES]
    assert kinds.count("y") > 100 and kinds.count("n") > 100 and len(CASES) > 250


@pytest.mark.parametrize("endpoint", sorted(PROBES))
def test_one_after_another(daemon, endpoint):
    probe, _ = PROBES[endpoint]
    path = daemon.data / f"{endpoint}.sock"
    for start in range(0, len(CASES), 40):
        talk(path, [line for _, line in CASES[start : start + 40]], probe)


def test_zot_behind_its_first_line(daemon):
    for start in range(0, len(CASES), 40):
        lines = [b'{"type":"ping"}', *(line for _, line in CASES[start : start + 40])]
        talk(daemon.data / "any.sock", lines, ZOT[0])


def test_first_on_the_socket_for_any_protocol(daemon):
    for name, line in CASES:
        if name[0] == "n" or line[:1] not in b'{"':
            talk(daemon.data / "any.sock", [line], PROBES["daemon"][0])


@pytest.mark.parametrize("endpoint", ["daemon", "acp", "humanlayer"])
def test_what_is_said_to_each(daemon, endpoint):
    for name, line in CASES:
        said = talk(daemon.data / f"{endpoint}.sock", [line], PROBES[endpoint][0])
        if name[0] == "n":
            assert [one["error"]["code"] for one in said] == [-32700], (name, line, said)
        elif name[0] == "y":
            codes = {one["error"]["code"] for one in said if isinstance(one, dict)}
            codes |= {one[0]["error"]["code"] for one in said if isinstance(one, list)}
            assert codes == {-32600}, (name, line, said)
