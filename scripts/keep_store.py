"""Keep a store of the newest schema for the tests: python scripts/keep_store.py

Runs two turns with the demo model, and writes the store as SQL to tests/store/released/. A version
that changes the schema keeps one of the schema before it first.
"""

import os
import sqlite3
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).parent.parent
KEPT = ROOT / "tests" / "store" / "released"


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        work = Path(folder) / "project"
        work.mkdir()
        env = {**os.environ, "HOME": folder, "DRAGOMAN_CONFIG_DIR": f"{folder}/config"}
        env["DRAGOMAN_agents__default__model"] = "demo/demo"
        for words in (["run echo hello", "--approve", "all"], ["what is dragoman"]):
            command = [sys.executable, "-m", "dragoman", "run", *words]
            subprocess.run(command, cwd=work, env=env, stdin=subprocess.DEVNULL, check=True)
        base = sqlite3.connect(f"{folder}/config/data/sessions.db")
        rows = list(base.iterdump())
        for pragma in ("user_version", "application_id"):
            rows.append(f"PRAGMA {pragma} = {base.execute(f'PRAGMA {pragma}').fetchone()[0]};")
        version = base.execute("PRAGMA user_version").fetchone()[0]
        base.close()
        text = (
            "\n".join(rows).replace(str(work), "/home/user/project").replace(folder, "/home/user")
        )
        (KEPT / f"schema-{version}.sql").write_text(text + "\n")
        print(f"kept schema {version}")


if __name__ == "__main__":
    main()
