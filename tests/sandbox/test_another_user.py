"""The walls hold for ordinary users too: tests of this folder again, as `nobody`.

Root may make namespaces and open everything, so what holds around it may not be made, or may hold
for other reasons, around a user. Where the tests run as a user anyway, there is nothing to repeat.
"""

import os
import pwd
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.sandbox.test_escapes import needs_landlock

ROOT = Path(__file__).parents[2]
HERE = "tests/sandbox"
pytestmark = [
    needs_landlock,
    pytest.mark.root,  # others run the whole suite as an ordinary user anyway
]


class Nobody:
    """Runs tests as another user, with folders of its own."""

    def __init__(self, top: Path) -> None:
        found = pwd.getpwnam("nobody")
        self.as_user: dict[str, Any] = {
            "user": found.pw_uid, "group": found.pw_gid, "extra_groups": [],
        }  # fmt: skip
        self.home, self.scratch = top / "home", top / "scratch"
        top.chmod(0o755)
        for folder in (self.home, self.scratch):
            folder.mkdir()
            os.chown(folder, found.pw_uid, found.pw_gid)
        kept = {name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ}
        self.env = {
            **kept, "HOME": str(self.home), "TMPDIR": str(self.scratch), "NO_PROXY": "*",
            "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "src"), *sys.path[1:]]),
            "PYTHONDONTWRITEBYTECODE": "1",
        }  # fmt: skip
        self.python = self._python()

    def _python(self) -> str:
        """A Python that this user may run: ours may be in a home directory."""
        name = f"python{sys.version_info[0]}.{sys.version_info[1]}"
        for path in (sys.executable, f"/usr/local/bin/{name}", f"/usr/bin/{name}"):
            try:
                done = subprocess.run(
                    [path, "-c", "import ctypes, msgspec, pytest, pytest_asyncio, dragoman, tests"],
                    cwd=ROOT, env=self.env, capture_output=True, timeout=300, **self.as_user,
                )  # fmt: skip
            except OSError:
                continue
            if done.returncode == 0:
                return path
        pytest.skip("nobody may not run any Python that could run the tests")

    def run(self, *nodes: str) -> str:
        """What pytest says at last about these tests."""
        done = subprocess.run(
            [self.python, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-rs",
             f"--basetemp={self.home / 'tests'}", *nodes],
            cwd=ROOT, env=self.env, capture_output=True, text=True, timeout=1100, **self.as_user,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-1000:]
        return done.stdout.strip().splitlines()[-1]


@pytest.fixture(scope="module")
def nobody() -> Iterator[Nobody]:
    if not shutil.which("bwrap"):
        pytest.skip("no bwrap here: make setup-tools")
    top = Path(tempfile.mkdtemp(prefix="another-user-"))  # `tmp_path` is below a folder of root's
    try:
        yield Nobody(top)
    finally:
        shutil.rmtree(top)


@pytest.mark.timeout(1200)
def test_no_way_leads_out_for_an_ordinary_user(nobody: Nobody) -> None:
    said = nobody.run(f"{HERE}/test_attacks.py")
    assert " passed" in said and "failed" not in said and "skipped" not in said, said


@pytest.mark.timeout(1200)
def test_what_is_hidden_is_hidden_for_an_ordinary_user(nobody: Nobody) -> None:
    said = nobody.run(
        f"{HERE}/test_veil.py", f"{HERE}/test_bubblewrap.py", f"{HERE}/test_escapes.py",
        f"{HERE}/test_processes.py", f"{HERE}/test_ways.py",
    )  # fmt: skip
    assert " passed" in said and "failed" not in said and "skipped" not in said, said
