"""Makes the pictures of the dashboard in docs/pictures, from a host with the demo model."""

import json
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parent.parent
NODE = ROOT / "tests" / "interop" / "node" / "node_modules" / ".bin" / "node"


def main() -> int:
    sys.path.insert(0, str(ROOT))
    from tests.daemon.running import Daemon

    chromium = shutil.which("chromium") or shutil.which("google-chrome")
    if chromium is None or not NODE.exists():
        print("needs Chromium and Node: make setup-browser", file=sys.stderr)
        return 1
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        work = folder / "work"
        work.mkdir()
        with Daemon(folder, config="[gateway]\nport = 0\n", gateway=True) as daemon:
            daemon.wait_ready()
            address = json.loads((daemon.data / "gateway.json").read_text())["address"]
            code = daemon.said.decode().split("pair with the code ")[1].split()[0]
            script = str(ROOT / "scripts" / "dashboard_pictures.mjs")
            done = subprocess.run(
                [str(NODE), script, address, code, chromium, str(work)], timeout=300
            )
            daemon.stop()
            return done.returncode


if __name__ == "__main__":
    sys.exit(main())
