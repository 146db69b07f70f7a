"""Which modules of `src` have logic, and which tests import them by name.

    python -m tests.modules            those that have logic and no test of their own

A test that imports a module by name is where a failure of that module should be seen first.
"""

import ast
from pathlib import Path

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src"
BRANCHES = (
    ast.If, ast.For, ast.AsyncFor, ast.While, ast.Try, ast.Match, ast.IfExp, ast.BoolOp,
    ast.comprehension,
)  # fmt: skip
LITTLE = 3  # branches in a module that only puts things together


def modules() -> dict[str, Path]:
    """All modules by their dotted names."""
    found = {}
    for file in sorted((SOURCE / "dragoman").rglob("*.py")):
        parts = file.relative_to(SOURCE).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = file
    return found


def has_logic(text: str) -> bool:
    """Whether a module decides something: functions, and more than a few branches in them."""
    functions = [
        node
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
    ]
    inside = {id(node) for one in functions for node in ast.walk(one) if isinstance(node, BRANCHES)}
    return len(inside) >= LITTLE


def imported(text: str) -> set[str]:
    """The names that a file imports, those inside functions too."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            found.update(one.name for one in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            found.add(node.module)
            found.update(f"{node.module}.{one.name}" for one in node.names)
    return found


def untested() -> list[str]:
    """Modules with logic that no test imports by name."""
    ours = [one for one in (ROOT / "tests").rglob("*.py") if "node_modules" not in one.parts]
    known = set().union(*(imported(one.read_text(encoding="utf-8")) for one in ours))
    return [
        name
        for name, file in modules().items()
        if name not in known and has_logic(file.read_text(encoding="utf-8"))
    ]


if __name__ == "__main__":
    print("\n".join(untested()))
