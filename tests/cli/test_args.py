"""What commands read of their arguments is declared: a flag or an argument of the table."""

import ast
from collections.abc import Iterator
from pathlib import Path

from dragoman.cli import table
from dragoman.cli.parse import Args, Command

SRC = Path(__file__).parent.parent.parent / "src" / "dragoman"
KINDS = {"Args", "DaemonFlags", "TerminalFlags"}
OWN = {"command", "path", "values", "verb", "sub"}


def declared(commands: tuple[Command, ...]) -> Iterator[str]:
    for command in commands:
        yield from (flag.key for flag in command.all_flags())
        yield from (arg.name.replace("-", "_") for arg in command.args)
        yield from declared(command.subs)


def used(text: str) -> Iterator[tuple[int, str]]:
    """(line, name) of what functions read of a parameter `args` with one of those types."""
    for node in ast.walk(ast.parse(text)):
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        kinds = [
            ast.unparse(one.annotation).strip("'\"")
            for one in node.args.args
            if one.arg == "args" and one.annotation is not None
        ]
        if not KINDS & set(kinds):
            continue
        for one in ast.walk(node):
            if isinstance(one, ast.Attribute) and ast.unparse(one.value) == "args":
                yield one.lineno, one.attr


def test_what_is_read_is_declared() -> None:
    known = {*declared(table.commands()), *OWN}
    found, wrong = 0, []
    for path in sorted(SRC.rglob("*.py")):
        for line, name in used(path.read_text(encoding="utf-8")):
            found += 1
            if name not in known:
                wrong.append(f"{path.relative_to(SRC)}:{line} args.{name}")
    assert found > 300 and not wrong


def test_a_wrong_name_is_found() -> None:
    assert list(used("def run(args: 'Args') -> int:\n    return args.nonsense")) == [
        (2, "nonsense")
    ]
    assert all(hasattr(Args, name) for name in ("verb", "sub"))
