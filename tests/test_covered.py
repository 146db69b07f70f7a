"""What `scripts/covered.py` says of a measured run, and when it fails."""

import importlib.util
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

ROOT = Path(__file__).parents[1]


@pytest.fixture
def covered() -> ModuleType:
    spec = importlib.util.spec_from_file_location("covered", ROOT / "scripts/covered.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def file(lines: int, ran: int, branches: int, taken: int) -> dict[str, Any]:
    return {
        "summary": {
            "num_statements": lines,
            "covered_lines": ran,
            "num_branches": branches,
            "covered_branches": taken,
        }
    }


def test_the_files_of_a_part_count_together(covered: ModuleType) -> None:
    report = {
        "files": {
            "src/dragoman/engine/a.py": file(10, 10, 4, 3),
            "src/dragoman/engine/ports/b.py": file(10, 10, 6, 6),
            "src/dragoman/wire/c.py": file(10, 5, 10, 9),
            "src/dragoman/policy/d.py": file(1, 1, 0, 0),
        }
    }
    found = covered.figures(report)
    assert found["engine"] == (90.0, pytest.approx(100 * 29 / 30))
    assert found["wire"] == (90.0, 70.0)
    assert found["store"] == (0.0, 0.0)  # nothing was measured: that is below every floor


def test_a_part_below_the_floor_is_named_and_fails(covered: ModuleType) -> None:
    figures = {"engine": (95.0, 97.0), "store": (94.9, 99.0)}
    said, enough = covered.table(figures, 95)
    assert not enough
    assert said.splitlines() == [
        "branch coverage of engine: 95.0 %; with lines 97.0 %",
        "branch coverage of store: 94.9 % (below 95 %); with lines 99.0 %",
    ]
    assert covered.table(figures, 94)[1]


def test_every_part_is_a_folder_that_is_measured(covered: ModuleType) -> None:
    measured = (ROOT / "pyproject.toml").read_text()
    for part in covered.PARTS:
        assert (ROOT / "src/dragoman" / part).is_dir()
        assert f'"dragoman.{part}"' in measured


def test_ci_measures_and_tells() -> None:
    run = (ROOT / ".ci/run").read_text()
    assert "COVER=yes" in run and "make covered" in run
