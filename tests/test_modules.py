"""Each module with logic of its own has a test file that a failure would point to.

A module counts as tested when a test imports it by its name, or has its name. Whole conversations,
which reach it too, do not count: a failure of one points to nothing.
"""

import ast
import os
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parent.parent
SRC = ROOT / "src"


def name_of(path: Path) -> str:
    parts = path.relative_to(SRC).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def has_logic(path: Path) -> bool:
    """Whether something in it decides or repeats: structs, ports and tables do not."""
    deciding = (ast.If, ast.For, ast.While, ast.Try, ast.AsyncFor, ast.IfExp, ast.BoolOp)
    tree = ast.parse(path.read_text())
    functions = (n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef))
    return any(isinstance(node, deciding) for one in functions for node in ast.walk(one))


def files_below(folder: Path) -> list[Path]:
    """Every file of ours; what `node` installed beside is other people's, and much."""
    found: list[Path] = []
    for place, folders, files in os.walk(folder):
        folders[:] = [name for name in folders if name != "node_modules"]
        found += (Path(place) / name for name in files if name.endswith(".py"))
    return found


def imported_by_tests() -> set[str]:
    found: set[str] = set()
    for path in files_below(ROOT / "tests"):
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                found |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                found.add(node.module)
                found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return found


@cache
def below(folder: Path) -> list[Path]:
    return files_below(folder)


def has_its_name(path: Path) -> bool:
    """tests/engine/test_hub_edges.py is about engine/hub.py; a dialect's tests have a folder."""
    part, *inner = path.relative_to(SRC / "dragoman").parts
    folder = ROOT / "tests" / part
    if len(inner) > 1 and (folder / inner[0]).is_dir():
        folder /= inner[0]
    return any(one.name.startswith(f"test_{path.stem}") for one in below(folder))


def test_every_module_with_logic_is_tested_by_name() -> None:
    tested = imported_by_tests()
    without = sorted(
        name_of(path)
        for path in (SRC / "dragoman").rglob("*.py")
        if path.name != "__main__.py"
        and has_logic(path)
        and name_of(path) not in tested
        and not has_its_name(path)
    )
    assert not without, f"modules without a test of their own: {without}"
