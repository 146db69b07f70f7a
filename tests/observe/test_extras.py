"""What is missing is told with a command that adds it to the environment that runs."""

import subprocess
import sys
from pathlib import Path

from dragoman.observe.extras import adding


def test_what_pipx_has_installed_is_added_to_by_pipx(tmp_path: Path) -> None:
    (tmp_path / "pipx_metadata.json").write_text("{}")
    assert adding("mcp", str(tmp_path)) == "pipx inject dragoman 'mcp>=2.0'"


def test_what_uv_has_installed_is_added_to_by_uv(tmp_path: Path) -> None:
    (tmp_path / "uv-receipt.toml").write_text("")
    said = adding("telemetry", str(tmp_path))
    assert said.startswith("uv tool install dragoman --with 'opentelemetry-")
    assert said.count("--with") == 2


def test_elsewhere_it_is_the_pip_of_the_python_that_runs(tmp_path: Path) -> None:
    said = adding("postgres", str(tmp_path))
    assert said == f"{sys.executable} -m pip install 'asyncpg>=0.30'"
    assert "dragoman" not in said.partition(" -m ")[2]  # no registry needs to know us for it


def test_an_extra_that_nobody_knows_is_named_itself(tmp_path: Path) -> None:
    (tmp_path / "pipx_metadata.json").write_text("{}")
    assert adding("nothing", str(tmp_path)).endswith(" -m pip install 'dragoman[nothing]'")


def test_an_environment_without_pip_is_added_to_from_outside(tmp_path: Path) -> None:
    bare = tmp_path / "bare"
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", bare], check=True)
    source = Path(__file__).parents[2] / "src"
    code = f"import sys; sys.path.insert(0, {str(source)!r}); "
    code += "from dragoman.observe.extras import adding; print(adding('mcp'))"
    python = str(bare / "bin" / "python")
    said = subprocess.run(
        [python, "-c", code], text=True, capture_output=True, check=True
    ).stdout.strip()
    assert said == f"python3 -m pip --python {python} install 'dragoman[mcp]'"
