"""What is missing is told with a command that adds it to the environment that runs."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

import dragoman
from dragoman.observe.extras import adding


def test_what_pipx_has_installed_is_added_to_by_pipx(tmp_path: Path) -> None:
    for name in ("dragoman", "dragoman-2"):  # as with --suffix
        (tmp_path / name).mkdir()
        (tmp_path / name / "pipx_metadata.json").write_text("{}")
        assert adding("mcp", str(tmp_path / name)) == f"pipx inject {name} 'mcp>=2.0'"


@pytest.mark.parametrize(
    ("file", "text"), [("uv-receipt.toml", ""), ("pyvenv.cfg", "home = /usr/bin\nuv = 0.9.1\n")]
)
def test_what_uv_has_made_is_added_to_by_uv(tmp_path: Path, file: str, text: str) -> None:
    """`uv tool install --with` would forget what was added before."""
    (tmp_path / file).write_text(text)
    said = adding("telemetry", str(tmp_path))
    assert said.startswith(f"uv pip install --python {sys.executable} 'opentelemetry-")


def test_beside_the_systems_packages_it_goes_where_we_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "prefix", sys.base_prefix)
    monkeypatch.setattr("sysconfig.get_path", lambda *_: str(tmp_path))
    assert "--target" not in adding("mcp", str(tmp_path))
    (tmp_path / "EXTERNALLY-MANAGED").write_text("")
    home = Path(dragoman.__file__).parents[1]
    said = adding("mcp", str(tmp_path))
    assert said == f"{sys.executable} -m pip install --target {home} 'mcp>=2.0'"
    monkeypatch.setattr(os, "access", lambda *_: False)
    assert adding("mcp", str(tmp_path)).startswith("sudo ")


def test_elsewhere_it_is_the_pip_of_the_python_that_runs(tmp_path: Path) -> None:
    said = adding("postgres", str(tmp_path))
    assert said == f"{sys.executable} -m pip install 'asyncpg>=0.30'"
    assert "dragoman" not in said.partition(" -m ")[2]  # no registry needs to know us for it


def test_an_extra_that_nobody_knows_is_named_itself(tmp_path: Path) -> None:
    (tmp_path / "pipx_metadata.json").write_text("{}")
    assert adding("nothing", str(tmp_path)).endswith(" -m pip install 'dragoman[nothing]'")


def test_an_environment_without_pip_gets_one_first(tmp_path: Path) -> None:
    bare = tmp_path / "bare"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", bare], check=True)
    source = Path(__file__).parents[2] / "src"
    code = f"import sys; sys.path.insert(0, {str(source)!r}); "
    code += "from dragoman.observe.extras import adding; print(adding('mcp'))"
    python = str(bare / "bin" / "python")
    said = subprocess.run(
        [python, "-c", code], text=True, capture_output=True, check=True
    ).stdout.strip()
    assert said == f"{python} -m ensurepip && {python} -m pip install 'dragoman[mcp]'"
