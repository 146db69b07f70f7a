"""Who may import whom, and how long a module may be. The table is that of docs/architecture.md.

Every import statement counts, those inside functions too, except that the command line may reach
the programs it starts from inside a function.
"""

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parent.parent
SRC = ROOT / "src" / "dragoman"

_FACTS = ("ask", "content", "events", "faults", "info", "reading", "shown", "visible")
_PORTS = ("ports", "ask", "content", "events", "info", "faults", "reading", "traits", "visible")
PORTS = tuple(f"engine.{name}" for name in _PORTS)
FACTS = tuple(f"engine.{name}" for name in _FACTS)
BEHIND_PORTS = (*PORTS, "observe")

INSIDE = (
    "engine wire observe http dialects transports store agents providers policy sandbox tools "
    "checkpoints settings gateway fleet schedules"
).split()

# What each folder may import beside itself. A name stands for itself and all below it.
MAY: dict[str, tuple[str, ...]] = {
    "": ("cli",),  # dragoman/__init__.py and __main__.py
    "engine": (),
    "wire": (),
    "observe": (),
    "markup": (),
    "http": (),
    "apps": ("settings.places",),  # for authors of apps, whose programs know nothing else of ours
    "dialects": ("wire", "engine", "observe"),
    "transports": ("wire", "observe"),
    "store": BEHIND_PORTS,
    "fleet": ("engine", "store", "observe"),  # sessions that other machines have
    "agents": (*BEHIND_PORTS, "wire"),  # a hosted agent is driven over its own protocol
    "providers": (*BEHIND_PORTS, "http"),
    "policy": BEHIND_PORTS,
    "sandbox": BEHIND_PORTS,
    "tools": (*BEHIND_PORTS, "policy", "sandbox"),  # they open and run what policy has judged
    "checkpoints": (*BEHIND_PORTS, "policy.opening", "tools.overwrite", "tools.trees"),
    "settings": (
        *PORTS,
        "engine.points",
        "observe",
        "dialects.descriptor",
    ),  # sockets are named by descriptors
    "schedules": ("engine", "observe"),  # their runs go through the door, like any prompt
    "client": ("wire", "transports", "settings", "observe", "dialects.dragoman.answers", *FACTS),
    "gateway": (
        *("wire", "transports", "settings", "observe", "engine", "http", "markup"),
        "dialects.descriptor",
    ),
    "cli": (
        *("client", "settings", "observe", "markup", "dialects.descriptor"),
        *("engine.opening", *FACTS),  # where we were started, for those that open sessions
    ),
    "testing": tuple(
        "engine wire observe dialects transports store agents providers policy sandbox tools "
        "settings client".split()
    ),
    "host": tuple(INSIDE),
    "stdio": (*INSIDE, "client", "testing", "host", "cli"),
    "daemon": (*INSIDE, "host"),
    "tui": ("client", "settings", "observe", *FACTS),  # the terminal is a client like any other
    "cli.run": (*INSIDE, "client", "host", "cli.dialogue", "cli.ends", "cli.parse"),
    "cli.local": (*INSIDE, "client", "host"),
}
# What may be imported only inside a function, because most runs do not need it.
MAY_LAZILY: dict[str, tuple[str, ...]] = {
    "cli": ("daemon", "host", "stdio", "tui", "cli.run", "cli.local"),
    "cli.run": ("tui.chunks", "tui.piece", "tui.prose"),  # Markdown as rows; none knows Textual
}

LINES = 600
TOO_LONG: set[str] = set()  # stays empty: split the module instead


class Import(NamedTuple):
    module: str  # what imports, below dragoman
    target: str  # what is imported, below dragoman
    lazy: bool
    line: int


def modules(folder: str = "") -> list[Path]:
    return sorted((SRC / folder).rglob("*.py"))


def folders() -> list[str]:
    """Of the modules: a test each."""
    return sorted({path.relative_to(SRC).parts[0] for path in modules() if path.parent != SRC})


def name_of(path: Path) -> str:
    parts = path.relative_to(SRC).with_suffix("").parts
    return ".".join(part for part in parts if part != "__init__")


@cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"))


@cache
def imports(path: Path) -> tuple[Import, ...]:
    tree = tree_of(path)
    name = name_of(path)
    package = name if path.name == "__init__.py" else name.rpartition(".")[0]
    skipped = _typing_only(tree)

    def visit(node: ast.AST, lazy: bool) -> Iterator[Import]:
        if id(node) in skipped:
            lazy = True  # only the type checker sees it, which costs no start-up time
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda):
            lazy = True
        for target in _targets(node, package):
            yield Import(name, target, lazy, getattr(node, "lineno", 0))
        for child in ast.iter_child_nodes(node):
            yield from visit(child, lazy)

    return tuple(visit(tree, False))


def _typing_only(tree: ast.AST) -> set[int]:
    found: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            found.update(id(child) for child in node.body)
    return found


def _targets(node: ast.AST, package: str) -> Iterator[str]:
    """The modules of ours that a statement imports, without the leading `dragoman.`"""
    if isinstance(node, ast.Import):
        for alias in node.names:
            if alias.name.partition(".")[0] == "dragoman":
                yield alias.name.partition(".")[2]
    elif isinstance(node, ast.ImportFrom):
        if node.level:
            parts = package.split(".") if package else []
            base = ".".join(parts[: len(parts) - (node.level - 1)])
            base = ".".join(part for part in (base, node.module or "") if part)
        elif (node.module or "").partition(".")[0] == "dragoman":
            base = (node.module or "").partition(".")[2]
        else:
            return
        for alias in node.names:
            whole = f"{base}.{alias.name}".strip(".")
            yield whole if _is_module(whole) else base
    elif isinstance(node, ast.Call):
        yield from _dynamic(node)


def _dynamic(node: ast.Call) -> Iterator[str]:
    """`import_module("dragoman.x")` is an import as well."""
    called = ast.unparse(node.func).rpartition(".")[2]
    first = node.args[0] if node.args else None
    if called in ("import_module", "__import__") and isinstance(first, ast.Constant):
        if str(first.value).partition(".")[0] == "dragoman":
            yield str(first.value).partition(".")[2]


def _is_module(name: str) -> bool:
    path = SRC.joinpath(*name.split("."))
    return path.is_dir() or path.with_suffix(".py").is_file()


def below(target: str, allowed: str) -> bool:
    return allowed == "*" or target == allowed or target.startswith(f"{allowed}.")


def complaint(found: Import) -> str:
    """Why an import is not allowed, or nothing."""
    folder = _folder(found.module)
    target = found.target
    everybodys = ("holding", "kernel", "leaving", "standing")
    if not target or target.startswith("__") or target in everybodys:
        return ""
    lazily = any(below(target, one) for one in MAY_LAZILY.get(folder, ()))
    if folder and below(target, folder) and not lazily:
        return _between_dialects(found)
    if folder not in MAY:
        return f"{folder} is a new folder: say in MAY what it may import"
    if any(below(target, one) for one in MAY[folder]):
        return ""
    if lazily:
        return "" if found.lazy else f"may import {target} only inside a function"
    return f"may not import {target}"


def _folder(module: str) -> str:
    """The longest folder above a module that has a row in the table."""
    parts = module.split(".")
    for length in range(len(parts), 1, -1):
        if (name := ".".join(parts[:length])) in MAY:
            return name
    return parts[0] if SRC.joinpath(parts[0]).is_dir() else ""


def _between_dialects(found: Import) -> str:
    mine, theirs = found.module.split("."), found.target.split(".")
    if mine[0] != "dialects" or len(mine) < 3 or len(theirs) < 2:
        return ""
    other = SRC / "dialects" / theirs[1]
    if (mine[1], theirs[1]) == ("zeroclaw", "dragoman"):
        return ""  # it carries our own methods, which have no socket of their own
    if theirs[1] != mine[1] and other.is_dir():
        return f"is a dialect and may not import another one ({theirs[1]})"
    return ""


@pytest.mark.parametrize("folder", ["", *folders()])
def test_imports_follow_the_table(folder: str) -> None:
    paths = modules(folder) if folder else sorted(SRC.glob("*.py"))
    assert paths
    wrong = [
        f"{found.module}:{found.line} {text}"
        for path in paths
        for found in imports(path)
        if (text := complaint(found))
    ]
    assert not wrong, "\n".join(wrong)


def test_no_module_is_too_long() -> None:
    lines = {name_of(path): len(path.read_text("utf-8").splitlines()) for path in modules()}
    long = {name: found for name, found in lines.items() if found > LINES and name not in TOO_LONG}
    assert not long, f"{LINES} lines are allowed: split by subject {long}"


def test_the_engine_is_no_cycle() -> None:
    """Every import counts, for the type checker and inside functions alike."""
    needs: dict[str, set[str]] = {}
    for path in modules():
        name = name_of(path)
        if below(name, "engine"):
            targets = {found.target for found in imports(path)}
            needs[name] = {target for target in targets if below(target, "engine")} - {name}
    assert len(needs) > 20
    while free := {name for name, targets in needs.items() if not targets & needs.keys()}:
        needs = {name: targets for name, targets in needs.items() if name not in free}
    assert not needs, f"these import each other in a circle: {sorted(needs)}"


INSIDE = ("dialects", "gateway", "client", "cli", "stdio", "tui")  # type: ignore[assignment]
# What stands behind the door: the host, live sessions, and their parts.
PARTS = frozenset({"ledger", "gear", "inbox"})


def behind_the_door(tree: ast.AST) -> Iterator[str]:
    """Expressions that reach past the door."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute):
            owner = ast.unparse(node.value).rpartition(".")[2].lstrip("_")
            past = owner == "door" and (node.attr == "host" or node.attr.startswith("_"))
            part = node.attr in PARTS and owner not in ("self", "app", "status")  # of a page
            if past or owner == "host" and node.attr == "live" or part:
                yield f"{node.lineno}: {ast.unparse(node)}"


@pytest.mark.parametrize("folder", INSIDE)
def test_nobody_reaches_past_the_door(folder: str) -> None:
    paths = modules(folder)
    found = [f"{name_of(path)}:{one}" for path in paths for one in behind_the_door(tree_of(path))]
    assert paths and not found, "\n".join(found)
    kept = {"engine.session", "engine.ledger", "engine.gear", "engine.inbox", "engine.asks"}
    assert not kept & {found.target for path in paths for found in imports(path)}


@pytest.mark.parametrize(
    ("code", "past"),
    [
        ("door.host.spawn(x)", True),
        ("self._door._host", True),
        ("conn.door.host.live[x]", True),
        ("host.live.values()", True),
        ("session.gear.files = x", True),
        ("door.live(x).inbox.busy", True),
        ("door.live(x).busy", False),
        ("door.prompt(x)", False),
        ("given.host", False),
    ],
)
def test_the_reader_of_the_door(code: str, past: bool) -> None:
    assert bool(list(behind_the_door(ast.parse(code)))) is past


def test_there_are_no_exceptions_for_long_modules() -> None:
    assert not TOO_LONG


@pytest.mark.parametrize(
    ("module", "target", "lazy", "said"),
    [
        ("engine.turn", "store.memory", True, "may not import store.memory"),
        ("engine.turn", "engine.events", False, ""),
        ("wire.lines", "engine.faults", False, "may not import engine.faults"),
        ("dialects.acp.hear", "dialects.zot.shapes", False, "may not import another one (zot)"),
        ("dialects.acp.hear", "dialects.acp.shapes", False, ""),
        ("dialects.acp.hear", "transports.unix", True, "may not import transports.unix"),
        ("transports.unix", "engine.door", False, "may not import engine.door"),
        ("cli.verbs.daemon", "daemon.main", True, ""),
        ("cli.verbs.daemon", "daemon.main", False, "only inside a function"),
        ("cli.main", "engine.door", True, "may not import engine.door"),
        ("store.sqlite", "engine.ports", False, ""),
        ("store.sqlite", "engine.host", False, "may not import engine.host"),
        ("daemon.main", "dialects.acp", False, ""),
        ("daemon.main", "stdio.acp", True, "may not import stdio.acp"),
        ("host.compose", "daemon.main", True, "may not import daemon.main"),
        ("cli.verbs.daemon", "cli.run.terminal", False, "only inside a function"),
        ("cli.run.terminal", "host.compose", False, ""),
    ],
)
def test_the_rules_themselves(module: str, target: str, lazy: bool, said: str) -> None:
    found = complaint(Import(module, target, lazy, 1))
    assert (said in found) if said else not found


def test_lazy_relative_and_dynamic_imports_are_seen(tmp_path: Path) -> None:
    tree = ast.parse(
        "from . import a\n"
        "def f():\n"
        "    from ..engine import door\n"
        "    import dragoman.store.sqlite\n"
        "    import_module('dragoman.tui')\n"
    )
    found = [one for node in ast.walk(tree) for one in _targets(node, "cli.verbs")]
    assert set(found) >= {"store.sqlite", "tui"}
    assert any(one.startswith("cli.engine") for one in found)


def _page() -> dict[str, set[str]]:
    """The table of the page: folder -> what it may import, `observe` left out."""
    found: dict[str, set[str]] = {}
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    for line in page.partition("## Folders")[2].partition("## What holds")[0].splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if not line.startswith("| `") or len(cells) != 3:
            continue
        for folder in re.findall(r"`([^`]+)`", cells[0]):
            name = folder.removesuffix("/<name>").replace("/", ".")
            first, *also = re.split(r"; (?=`|inside a function)", cells[2])
            may = _named(first)
            for one in also:
                if one.startswith(f"`{folder}` also"):
                    may |= _named(one.partition("also")[2])
            found[name] = may
    return found


def _named(text: str) -> set[str]:
    names = set(MAY["host"]) if "*inside*" in text else set()
    if inner := re.search(r"`engine` \(([^)]*)\)", text):
        names |= {f"engine.{name}" for name in inner.group(1).split(", ")}
        text = text.replace(inner.group(0), "")
    return names | set(re.findall(r"`([^`]+)`", text.partition(", to ")[0]))


def test_the_page_has_this_table() -> None:
    page = _page()
    known = {name: {*may} - {"observe"} for name, may in MAY.items() if name}
    for name in known | page:
        assert page.get(name, set()) - {"observe"} == known.get(name), name
    unseen = {name for name, may in MAY.items() if "observe" not in may} - {"", "tui", "cli"}
    assert unseen == {"engine", "wire", "observe", "markup", "http", "apps"}


# Programs of their own, which run without our package: they import nothing of it.
APART = (
    *("tools/scan.py", "tools/trees.py", "tools/wide.py", "tools/extract.py"),
    "sandbox/attacks/driver.py",
)


@pytest.mark.parametrize("name", APART)
def test_programs_of_their_own_import_nothing_of_ours(name: str) -> None:
    assert not [found for found in imports(SRC / name) if found.target], name
