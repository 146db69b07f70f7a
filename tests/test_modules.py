"""Each module with logic of its own has a test file that a failure would point to.

A module counts as tested when a test imports it by its name, or has its name. Those that only
whole conversations reach stand in `modules_without_tests.txt`; the list may only become shorter.
"""

import ast
from pathlib import Path

ROOT = Path(__file__).parent.parent
SRC = ROOT / "src"
LIST = Path(__file__).parent / "modules_without_tests.txt"


def name_of(path: Path) -> str:
    parts = path.relative_to(SRC).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def has_logic(path: Path) -> bool:
    """Whether something in it decides or repeats: structs, ports and tables do not."""
    deciding = (ast.If, ast.For, ast.While, ast.Try, ast.AsyncFor, ast.IfExp, ast.BoolOp)
    tree = ast.parse(path.read_text())
    functions = (n for n in ast.walk(tree) if isinstance(n, ast.FunctionDef | ast.AsyncFunctionDef))
    return any(isinstance(node, deciding) for one in functions for node in ast.walk(one))


def imported_by_tests() -> set[str]:
    found: set[str] = set()
    for path in (ROOT / "tests").rglob("*.py"):
        if "node_modules" in path.parts:
            continue  # other people's
        for node in ast.walk(ast.parse(path.read_text())):
            if isinstance(node, ast.Import):
                found |= {alias.name for alias in node.names}
            elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
                found.add(node.module)
                found |= {f"{node.module}.{alias.name}" for alias in node.names}
    return found


def has_its_name(path: Path) -> bool:
    """tests/engine/test_hub_edges.py is about engine/hub.py."""
    folder = ROOT / "tests" / path.relative_to(SRC / "dragoman").parts[0]
    return any(folder.rglob(f"test_{path.stem}*.py"))


def test_every_module_with_logic_is_tested_by_name() -> None:
    known = set(LIST.read_text().split())
    tested = imported_by_tests()
    without = {
        name_of(path).removeprefix("dragoman.")
        for path in (SRC / "dragoman").rglob("*.py")
        if path.name != "__main__.py"
        and has_logic(path)
        and name_of(path) not in tested
        and not has_its_name(path)
    }
    new = sorted(without - known)
    assert not new, f"modules without a test of their own: {new}"
    done = sorted(known - without)
    assert not done, f"tested now (or gone): take them out of {LIST.name}: {done}"
