"""A TypeScript client, generated from the published OpenAPI document, against a real daemon."""

import json
import shutil
import socket
import subprocess
import urllib.request
from pathlib import Path

import pytest
from tests.daemon.running import Daemon

from .acp_agent import NODE, needs_node
from .test_gateway import new_token

pytestmark = [pytest.mark.interop, needs_node]
BIN = NODE / "node_modules" / ".bin"
TYPED = {
    "compilerOptions": {
        "noEmit": True, "strict": True, "allowImportingTsExtensions": True, "module": "nodenext",
        "target": "es2022", "lib": ["es2023", "dom", "dom.iterable", "dom.asynciterable"],
        "skipLibCheck": True, "types": [],
    },
    "files": ["humanlayer_rest.ts", "globals.d.ts"],
}  # fmt: skip


def test_a_generated_client_is_typed_and_works_on_both_ports(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    folder = tmp_path / "config"
    folder.mkdir()
    config = f"[gateway]\nport = 0\n[humanlayer]\nhttp_port = {port}\n"
    with Daemon(folder, config=config, gateway=True) as daemon:
        daemon.wait_ready()
        gateway = json.loads((daemon.data / "gateway.json").read_text())["address"]
        native = f"http://127.0.0.1:{port}"
        with urllib.request.urlopen(f"{native}/api/v1/openapi.json", timeout=60) as answer:
            (tmp_path / "openapi.json").write_bytes(answer.read())
        place = tmp_path / "client"
        place.mkdir()
        (place / "node_modules").symlink_to(NODE / "node_modules")
        (place / "package.json").write_text('{"type":"module"}')
        for name in ("humanlayer_rest.ts", "globals.d.ts"):
            shutil.copy(NODE / name, place / name)
        words = [str(BIN / "openapi-typescript"), str(tmp_path / "openapi.json"), "-o",
                 str(place / "humanlayer_rest.gen.ts")]  # fmt: skip
        subprocess.run(words, check=True, capture_output=True, timeout=60)
        (place / "tsconfig.json").write_text(json.dumps(TYPED))
        typed = subprocess.run(
            [str(BIN / "tsc"), "-p", str(place)], capture_output=True, text=True, timeout=100
        )
        assert typed.returncode == 0, typed.stdout
        for address, token in ((gateway, new_token(folder)), (native, "")):
            work = tmp_path / ("work" + token[:4])
            work.mkdir()
            done = subprocess.run(
                [str(BIN / "node"), "--no-warnings", "--experimental-strip-types",
                 str(place / "humanlayer_rest.ts"), address, token, str(work)],
                capture_output=True, text=True, timeout=60,
            )  # fmt: skip
            assert done.returncode == 0, done.stderr
            told = json.loads(done.stdout)
            assert (told["health"], told["status"], told["title"]) == (
                "ok", "completed", "typed",
            )  # fmt: skip
            assert told["approved"] == "bash" and (work / "made.txt").read_text() == "hi\n"
            assert {"tool_call", "tool_result", "message"} <= set(told["kinds"])
            assert {"new_approval", "approval_resolved", "session_status_changed"} <= set(
                told["heard"]
            )
            assert told["missing"] == "HLD-102"
