"""`dragoman acp-bridge` between a client on stdio and a real daemon's gateway."""

import contextlib
import json
import os
import select
import shutil
import socket
import ssl
import subprocess
import sys
import tempfile
import threading
from pathlib import Path

import httpx
import pytest
from tests.daemon.running import Daemon

from dragoman.client.plain import Plain

CONFIG = "[gateway]\nport = 0\n"


class Bridge:
    """The bridge as an editor sees it."""

    def __init__(self, folder: Path, *flags: str, **env: str) -> None:
        words = [
            sys.executable,
            "-m",
            "dragoman",
            "acp-bridge",
            "--config-dir",
            str(folder),
            *flags,
        ]
        self.process = subprocess.Popen(
            words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
            env={**os.environ, **env},
        )  # fmt: skip
        self.rest = b""
        self.said: list[dict] = []

    def send(self, id: int, method: str, **params) -> None:
        row = {"jsonrpc": "2.0", "id": id, "method": method, "params": params}
        self.process.stdin.write(json.dumps(row).encode() + b"\n")
        self.process.stdin.flush()

    def read(self, within: float = 60.0) -> dict | None:
        """The next message; None at the end."""
        while b"\n" not in self.rest:
            ready, _, _ = select.select([self.process.stdout], [], [], within)  # type: ignore[type-var]
            assert ready, f"nothing came; before: {self.said[-3:]}"
            more = os.read(self.process.stdout.fileno(), 65536)
            if not more:
                return None
            self.rest += more
        line, _, self.rest = self.rest.partition(b"\n")
        self.said.append(json.loads(line))
        return self.said[-1]

    def until(self, fits) -> dict:
        while True:
            message = self.read()
            assert message is not None, "the bridge ended"
            if fits(message):
                return message

    def answer(self, id: int) -> dict:
        return self.until(lambda one: one.get("id") == id and "method" not in one)

    def open(self, cwd: Path) -> str:
        self.send(1, "initialize", protocolVersion=1)
        assert self.answer(1)["result"]["protocolVersion"] == 1
        self.send(2, "session/new", cwd=str(cwd), mcpServers=[])
        return self.answer(2)["result"]["sessionId"]

    def ended(self) -> tuple[int, str]:
        self.process.stdin.close()
        while self.read() is not None:
            pass
        code = self.process.wait(60)
        return code, self.process.stderr.read().decode()

    def __enter__(self) -> "Bridge":
        return self

    def __exit__(self, *problem) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait(60)
        for stream in (self.process.stdin, self.process.stdout, self.process.stderr):
            stream.close()


def test_it_waits_for_outstanding_answers_at_the_end_of_input(tmp_path: Path):
    with Daemon(tmp_path, config=CONFIG, gateway=True) as daemon:
        daemon.wait_ready()
        with Bridge(tmp_path) as bridge:
            id = bridge.open(tmp_path)
            bridge.send(3, "session/prompt", sessionId=id, prompt="count slowly to 8")
            code, _ = bridge.ended()
            assert code == 0
            last = [one for one in bridge.said if one.get("id") == 3]
            assert last and last[0]["result"]["stopReason"] == "end_turn"
        kept = tmp_path / "acp-bridge-token"
        assert kept.read_text().startswith("tok_") and kept.stat().st_mode & 0o777 == 0o600
        secret = kept.read_text().strip()
        assert secret not in daemon.log()


def test_a_question_that_nobody_can_answer_any_more_is_withdrawn(tmp_path: Path):
    with Daemon(tmp_path, config=CONFIG, gateway=True) as daemon:
        daemon.wait_ready()
        with Bridge(tmp_path) as bridge:
            id = bridge.open(tmp_path)
            bridge.send(3, "session/prompt", sessionId=id, prompt="run echo hello")
            bridge.until(lambda one: one.get("method") == "session/request_permission")
            code, _ = bridge.ended()
            assert code == 0
            assert any(one.get("id") == 3 for one in bridge.said)


@pytest.mark.timeout(60)
def test_it_comes_back_with_its_sessions_when_the_daemon_does(tmp_path: Path):
    with Daemon(tmp_path, config=CONFIG, gateway=True) as first:
        first.wait_ready()
        with Bridge(tmp_path) as bridge:
            id = bridge.open(tmp_path)
            bridge.send(3, "session/prompt", sessionId=id, prompt="say the first word")
            assert bridge.answer(3)["result"]["stopReason"] == "end_turn"
            assert first.stop() == 0
            # Said while nobody listens: it must arrive all the same.
            bridge.send(4, "session/prompt", sessionId=id, prompt="say the second word")
            with Daemon(tmp_path, gateway=True) as second:
                second.wait_ready()
                done = bridge.answer(4)
                assert "second word" in done["result"]["content"]
                code, said = bridge.ended()
                assert code == 0 and "back" in said
                # Nothing that the bridge asked for itself reached the editor.
                assert not [one for one in bridge.said if "bridge" in str(one.get("id"))]


@pytest.mark.timeout(60)
def test_a_prompt_in_flight_is_answered_once_and_run_once(tmp_path: Path):
    with Daemon(tmp_path, config=CONFIG, gateway=True) as first:
        first.wait_ready()
        with Bridge(tmp_path) as bridge:
            id = bridge.open(tmp_path)
            bridge.send(3, "session/prompt", sessionId=id, prompt="count slowly to 5000")
            bridge.until(lambda one: "agent_message_chunk" in json.dumps(one))
            first.process.kill()
            first.process.wait(60)
            with Daemon(tmp_path, gateway=True) as second:
                second.wait_ready()
                done = bridge.answer(3)
                assert done["result"]["stopReason"] == "cancelled"  # the host died in the middle
                bridge.send(4, "session/prompt", sessionId=id, prompt="say still here")
                assert "still here" in bridge.answer(4)["result"]["content"]
                code, _ = bridge.ended()
                assert code == 0
                assert len([one for one in bridge.said if one.get("id") == 3]) == 1


def chunks(bridge: Bridge, kind: str = "agent_message_chunk") -> str:
    """What the editor was shown, in one piece."""
    found = []
    for one in bridge.said:
        update = one.get("params", {}).get("update", {})
        if update.get("sessionUpdate") == kind:
            found.append(update["content"]["text"])
    return "".join(found)


@pytest.mark.timeout(60)
def test_what_others_did_while_the_way_was_cut_is_shown_once(tmp_path: Path):
    with Daemon(tmp_path, config=CONFIG, gateway=True) as first:
        first.wait_ready()
        with Bridge(tmp_path) as bridge:
            id = bridge.open(tmp_path)
            bridge.send(3, "session/prompt", sessionId=id, prompt="say mine-before")
            bridge.answer(3)
            assert first.stop() == 0
            # Another client works with the session before the bridge is back: the bridge looks for
            # the gateway, which comes up only with the second daemon.
            with Daemon(tmp_path, gateway=False) as between:
                between.wait_ready()
                with Plain(str(tmp_path / "data" / "daemon.sock"), "another") as other:
                    other.call("dragoman/prompt", {"session_id": id, "text": "say theirs-between"})
                assert between.stop() == 0
            with Daemon(tmp_path, gateway=True) as second:
                second.wait_ready()
                bridge.send(4, "session/prompt", sessionId=id, prompt="say mine-after")
                bridge.answer(4)
                bridge.ended()
        shown = chunks(bridge)
        for word in ("mine-before", "theirs-between", "mine-after"):
            assert shown.count(word) == 1, shown
        heard = chunks(bridge, "user_message_chunk")
        assert heard.count("theirs-between") == 1 and "mine" not in heard
        assert shown.index("mine-before") < shown.index("theirs") < shown.index("mine-after")
        assert "_dragoman" not in json.dumps(bridge.said)


@pytest.mark.timeout(60)
def test_a_cut_in_the_middle_of_a_message_repeats_none_of_its_words(tmp_path: Path):
    with Daemon(tmp_path, config=CONFIG, gateway=True) as daemon:
        daemon.wait_ready()
        noted = tmp_path / "data" / "gateway.json"
        row = json.loads(noted.read_text())
        middle = Middle(int(row["address"].rpartition(":")[2]))
        noted.write_text(json.dumps({**row, "address": f"http://127.0.0.1:{middle.port}"}))
        try:
            with Bridge(tmp_path) as bridge:
                id = bridge.open(tmp_path)
                bridge.send(3, "session/prompt", sessionId=id, prompt="count slowly to 60")
                for _ in range(2):  # cut at different places of the same message
                    seen = len(chunks(bridge))
                    while len(chunks(bridge)) < seen + 8:
                        bridge.read()
                    middle.cut()
                done = bridge.answer(3)["result"]
                assert chunks(bridge) == done["content"]
                assert bridge.ended()[0] == 0
        finally:
            middle.close()


class Middle:
    """A way to the gateway that can be cut; the next connection goes through again."""

    def __init__(self, to: int) -> None:
        self._to = to
        self._server = socket.create_server(("127.0.0.1", 0))
        self.port = self._server.getsockname()[1]
        self._pairs: list[tuple[socket.socket, socket.socket]] = []
        self._threads = [threading.Thread(target=self._accept)]
        self._threads[0].start()

    def _accept(self) -> None:
        while True:
            try:
                near, _ = self._server.accept()
            except OSError:
                return
            far = socket.create_connection(("127.0.0.1", self._to))
            self._pairs.append((near, far))
            for one, other in ((near, far), (far, near)):
                self._threads.append(threading.Thread(target=self._carry, args=(one, other)))
                self._threads[-1].start()

    def _carry(self, one: socket.socket, other: socket.socket) -> None:
        try:
            while data := one.recv(65536):
                other.sendall(data)
        except OSError:
            return  # cut

    def cut(self) -> None:
        while self._pairs:
            for one in self._pairs.pop():
                with contextlib.suppress(OSError):
                    one.shutdown(socket.SHUT_RDWR)
                one.close()

    def close(self) -> None:
        self._server.shutdown(socket.SHUT_RDWR)
        self._server.close()
        self.cut()
        for thread in self._threads:
            thread.join(60)


def test_a_lost_connection_loses_no_session_of_a_host_without_a_store(tmp_path: Path):
    config = f'{CONFIG}require_pairing = false\n[store]\npath = ":memory:"\n'
    with Daemon(tmp_path, config=config, gateway=True) as daemon:
        daemon.wait_ready()
        noted = tmp_path / "data" / "gateway.json"
        row = json.loads(noted.read_text())
        port = int(row["address"].rpartition(":")[2])
        middle = Middle(port)
        noted.write_text(json.dumps({**row, "address": f"http://127.0.0.1:{middle.port}"}))
        try:
            with Bridge(tmp_path) as bridge:
                id = bridge.open(tmp_path)
                bridge.send(3, "session/prompt", sessionId=id, prompt="say one")
                assert "result" in bridge.answer(3)
                middle.cut()
                bridge.send(4, "session/prompt", sessionId=id, prompt="say two")
                assert "two" in bridge.answer(4)["result"]["content"]
                assert bridge.ended()[0] == 0
        finally:
            middle.close()


def test_a_message_over_the_limit_is_answered_and_the_rest_goes_on(tmp_path: Path):
    """By the bridge's own limit, and by a gateway whose limit is lower."""
    limits = "[limits]\nmax_line_bytes = 100000\n"
    with Daemon(tmp_path, config=CONFIG + limits, gateway=True) as daemon:
        daemon.wait_ready()
        with Bridge(tmp_path) as bridge:
            id = bridge.open(tmp_path)
            bridge.send(3, "session/prompt", sessionId=id, prompt="x" * 17_000_000)
            refused = bridge.until(lambda m: "error" in m)["error"]
            assert refused["code"] == -32600 and "16777216" in refused["message"]
            bridge.send(4, "session/prompt", sessionId=id, prompt="x" * 200_000)
            told = bridge.until(lambda m: m.get("id") == 4)["error"]["message"]
            assert "longer than 100000 bytes" in told
            bridge.send(5, "session/list")
            assert bridge.until(lambda m: m.get("id") == 5)["result"]["sessions"]
            assert bridge.ended()[0] == 0


def test_tokens_come_from_the_environment(tmp_path: Path):
    with Daemon(tmp_path, config=CONFIG, gateway=True) as daemon:
        daemon.wait_ready()
        made = subprocess.run(
            [sys.executable, "-m", "dragoman", "token", "new", "--config-dir", str(tmp_path)],
            capture_output=True, text=True, timeout=60, check=True,
        )  # fmt: skip
        token = made.stdout.split()[-1]
        for name in ("DRAGOMAN_ACP_BRIDGE_TOKEN", "ZEROCLAW_ACP_BRIDGE_TOKEN"):
            with Bridge(tmp_path, **{name: token}) as bridge:
                bridge.open(tmp_path)
                assert bridge.ended()[0] == 0
        assert not (tmp_path / "acp-bridge-token").exists()
        with Bridge(tmp_path, DRAGOMAN_ACP_BRIDGE_TOKEN="tok_00000000_wrong") as bridge:
            code, said = bridge.ended()
            assert code == 1 and "token" in said and "wrong" not in said


def test_without_a_daemon_it_says_so(tmp_path: Path):
    (tmp_path / "config.toml").write_text("[gateway]\nport = 1\n")
    with Bridge(tmp_path) as bridge:
        code, said = bridge.ended()
        assert code == 1 and "dragoman daemon" in said
    assert [one.name for one in tmp_path.iterdir()] == ["config.toml"]  # no token, no store


def test_unknown_keys_are_told_beside_the_wire(tmp_path: Path):
    (tmp_path / "config.toml").write_text("foo = 1\n[gateway]\nport = 1\n")
    with Bridge(tmp_path) as bridge:
        _, said = bridge.ended()
    assert said.count("unknown key foo. It is ignored.") == 1 and not bridge.said


def test_no_token_is_made_for_somebody_elses_port(tmp_path: Path):
    with socket.create_server(("127.0.0.1", 0)) as stranger:
        port = stranger.getsockname()[1]
        (tmp_path / "config.toml").write_text(f"[gateway]\nport = {port}\n")
        with Bridge(tmp_path) as bridge:
            code, said = bridge.ended()
            assert code == 1 and "is not the daemon of" in said
    assert [one.name for one in tmp_path.iterdir()] == ["config.toml"]


@pytest.mark.parametrize("more", [{}, {"ZEROCLAW_DATA_DIR": "z"}], ids=["own", "zeroclaw"])
def test_the_platforms_own_directory_leads_to_the_daemon_that_was_told_none(more, request):
    tmp_path = Path(tempfile.mkdtemp(prefix="db-", dir="/tmp"))  # room for the names of sockets
    request.addfinalizer(lambda: shutil.rmtree(tmp_path))
    env = {name: "" for name in os.environ if name.startswith(("XDG_", "DRAGOMAN_", "ZEROCLAW_"))}
    env |= {name: str(tmp_path / value) for name, value in more.items()} | {"HOME": str(tmp_path)}
    folder = tmp_path / ".config" / "dragoman"
    folder.mkdir(parents=True)
    (folder / "config.toml").write_text(CONFIG)

    def dragoman(*words: str) -> None:
        subprocess.run([sys.executable, "-m", "dragoman", *words], env={**os.environ, **env},
                       cwd=tmp_path, check=True, capture_output=True, timeout=60)  # fmt: skip

    dragoman("daemon", "--background")
    try:
        for _ in ("makes a token", "takes it again"):
            with Bridge(folder, **env) as bridge:
                assert bridge.ended() == (0, "")
    finally:
        dragoman("stop")


def test_it_trusts_the_configured_certificate_and_leaves_with_streams_open(tmp_path: Path):
    cert, key = tmp_path / "cert.pem", tmp_path / "key.pem"
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1",
         "-nodes", "-days", "2", "-subj", "/CN=somewhere", "-keyout", key, "-out", cert],
        check=True, capture_output=True, timeout=60,
    )  # fmt: skip
    config = f'{CONFIG}tls_cert = "{cert}"\ntls_key = "{key}"\n'
    with Daemon(tmp_path, config=config, gateway=True) as daemon:
        daemon.wait_ready()
        noted = json.loads((daemon.data / "gateway.json").read_text())
        assert noted["address"].startswith("https://")
        with Bridge(tmp_path) as bridge:
            bridge.open(tmp_path)
            token = (tmp_path / "acp-bridge-token").read_text().strip()
            headers = {"authorization": f"Bearer {token}"}
            trust = ssl.create_default_context(cafile=cert)
            trust.check_hostname = False
            with httpx.Client(verify=trust, headers=headers, timeout=60) as client:
                with client.stream("GET", f"{noted['address']}/api/events") as stream:
                    assert next(stream.iter_lines()) == ": hello"
                    assert daemon.stop() == 0  # with a WebSocket and a stream open
        assert not (daemon.data / "gateway.json").exists()


def test_a_running_gateway_follows_who_is_let_in(tmp_path: Path) -> None:
    with Daemon(tmp_path, config=CONFIG, gateway=True) as daemon:
        daemon.wait_ready()
        address = json.loads((daemon.data / "gateway.json").read_text())["address"]

        def status() -> int:
            return httpx.get(f"{address}/api/sessions", timeout=60).status_code

        assert status() == 401
        for value, expected in (("false", 200), ("true", 401)):
            words = ["config", "set", "gateway.require_pairing", value]
            words += ["--config-dir", str(tmp_path)]
            subprocess.run([sys.executable, "-m", "dragoman", *words], check=True, timeout=90)
            assert status() == expected
