"""The file for `pip --require-hashes`: it has every pin, and its maker reads what indexes serve."""

import importlib.util
import re
import subprocess
import sys
import zipfile
from hashlib import sha256
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[1]


@pytest.fixture
def maker() -> ModuleType:
    spec = importlib.util.spec_from_file_location("make_hashes", ROOT / "scripts/make_hashes.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_every_pin_has_its_digests(maker: ModuleType) -> None:
    assert maker.check() == ""
    for block in re.split(r"\n(?! )", (ROOT / "constraints-hashes.txt").read_text().strip())[1:]:
        assert re.fullmatch(r"\S+==\S+( \\\n    --hash=sha256:[0-9a-f]{64})+", block), block


@pytest.mark.parametrize(
    ("file", "version"),
    [
        ("a_b-1.2-py3-none-any.whl", "1.2"),
        ("a_b-1.2-1-cp311-cp311-linux_x86_64.whl", "1.2"),
        ("a-b-1.2.tar.gz", "1.2"),
        ("a.b-1.2.zip", "1.2"),
        ("a-b-c-1.2.tar.gz", ""),  # another package
        ("a_b-1.2-py3-none-any.whl.metadata", ""),
    ],
)
def test_the_version_of_a_file(maker: ModuleType, file: str, version: str) -> None:
    assert maker.version_of(file, "a-b") == version


def test_a_page_of_an_index_is_read(maker: ModuleType) -> None:
    one, two = "1" * 64, "2" * 64
    page = (
        f'<a href="../../x/a_b-1.0-py3-none-any.whl#sha256={one}" data-x="y">a</a>'
        f"<a href='a-b-1.0.tar.gz#sha256={two}'>b</a>"
        f'<a href="a-b-1.1.tar.gz#sha256={"3" * 64}">c</a>'
    )
    assert maker.digests(page, "a-b", "1.0") == [one, two]
    with pytest.raises(SystemExit, match="no file of a-b 2"):
        maker.digests(page, "a-b", "2")


@pytest.mark.parametrize("right", [True, False])
def test_pip_takes_only_what_has_one_of_the_digests(
    maker: ModuleType, tmp_path: Path, right: bool
) -> None:
    wheel = tmp_path / "tiny-1.0-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("tiny.py", "")
        info = "tiny-1.0.dist-info"
        archive.writestr(f"{info}/METADATA", "Metadata-Version: 2.1\nName: tiny\nVersion: 1.0\n")
        archive.writestr(
            f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
        )
        archive.writestr(f"{info}/RECORD", "")
    digest = sha256(wheel.read_bytes()).hexdigest() if right else "0" * 64
    (tmp_path / "hashed.txt").write_text(maker.render({"tiny": ("1.0", [digest])}))
    done = subprocess.run(
        [sys.executable, "-m", "pip", "install", "-q", "--no-index", f"--find-links={tmp_path}",
         "--require-hashes", "-r", str(tmp_path / "hashed.txt"), f"--target={tmp_path / 'in'}"],
        capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert (tmp_path / "in/tiny.py").exists() is right, done.stderr
    assert right or "DO NOT MATCH THE HASHES" in done.stderr
