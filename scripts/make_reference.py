"""Write the reference pages of the documentation from the code, into a folder.

    python scripts/make_reference.py FOLDER

Commands, configuration, methods and events of each dialect with their transcripts, events of a
session, REST, Python, and every message that tells why something could not be done.
"""

import ast
import json
import re
import sys
import tomllib
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import msgspec

ROOT = Path(__file__).parent.parent
TALKS = ROOT / "tests" / "transcripts"
TABLES = {
    "zeroclaw": "hear",
    "humanlayer": "hear",
    "openclawos": "hear",
    "acp": "hear",
    "zot": "verbs",
}
SECONDS = {"acp": ("verbs.second", "TABLE2")}
SECOND = re.compile(r'"protocolVersion": ?2')
SIDES = {"C>": "client", "S>": "server"}
SOURCE = ROOT / "src" / "dragoman"
_RESTS = ("is ", "names ", "was ")  # how the rest of a sentence begins whose subject is a key
# How the code of a dialect spells what it says by itself; what is found is put into the text.
SPOKEN = {
    "zeroclaw": ((r'_(?:update|prefix)\(\s*"(\w+)"', "session/update {}"),
                 (r'notification\(\s*"((?!session/)[\w/]+)"', "{}")),
    "humanlayer": ((r'(?m)^[A-Z][A-Z_]+ = "(\w+)"$', "{}"), (r'"type":"(heartbeat)"', "{}")),
    "openclawos": ((r'"(capability:\w+|config:\w+)"', "{}"),),
    "acp": ((r'"sessionUpdate": "(\w+)"', "session/update {}"),
            (r'notification\(\s*"([\w/]+)"', "{}"),
            (r'"((?:fs|terminal|elicitation|mcp)/\w+|session/request_permission)"', "{}")),
    "zot": ((r'type="(\w+)"|"type": ?"(waiting|done|assistant_start|text_delta)"', "{}"),),
}  # fmt: skip


def main(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    pages = {"commands": commands(), "configuration": configuration(), "rest": rest()}
    pages["python"] = python()
    pages |= {"events": events(), "messages": messages()}
    for name in TABLES:
        pages[name] = dialect(name)
        pages[f"{name}-transcripts"] = transcripts(name)
    for name, text in pages.items():
        (folder / f"{name}.md").write_text(text)
    index = ["# Reference", "", "```{toctree}", *pages, "```", ""]
    (folder / "index.md").write_text("\n".join(index))


def commands() -> str:
    from dragoman.cli import help, table

    def below(found: Any, depth: int) -> Iterator[str]:
        for one in found:
            yield f"{'#' * depth} dragoman {one.full_name}\n"
            yield f"```text\n{help.of(one)}\n```\n"
            yield from below(one.subs, min(depth + 1, 4))

    return "# Commands\n\n" + "\n".join(below(table.commands(), 2))


def configuration() -> str:
    from dragoman.settings.explain import explain
    from dragoman.settings.load import Loaded
    from dragoman.settings.model import Settings

    rows = ["# Configuration", "", "Every key of `config.toml`; `dragoman config explain KEY` says"]
    rows += ["what it holds on your machine and why. `<name>` stands for a name of your own.", ""]
    found = explain(Loaded(Settings(), "", "", {}, ()))
    section = None
    for key in found:
        head = key.key.partition(".")[0]
        if head != section:
            section = head
            rows += [
                "",
                f"## {head}",
                "",
                "| key | holds | default | meaning |",
                "|---|---|---|---|",
            ]
        cells = (f"`{key.key}`", key.allowed, _value(key.default), key.doc)
        rows.append("| " + " | ".join(_cell(str(cell)) for cell in cells) + " |")
    return "\n".join(rows) + "\n"


def _value(value: Any) -> str:
    if value is None or value == "":
        return ""
    return f"`{json.dumps(msgspec.to_builtins(value), ensure_ascii=False)}`"


def _cell(text: str) -> str:
    return text.replace("|", "\\|").replace("\n", " ").replace("<", "&lt;")


def rest() -> str:
    from dragoman.gateway.routes import all_routes

    rows = [
        "# REST",
        "",
        "A running daemon serves the OpenAPI document of these at `/openapi.json`.",
    ]
    tag = None
    for route in sorted(all_routes(), key=lambda one: (one.tag, one.path, one.method)):
        if route.hidden:
            continue
        if route.tag != tag:
            tag = route.tag
            rows += ["", f"## {tag or 'other'}"]
        rows += ["", f"### `{route.method} {route.path}`", "", _sentence(route.summary)]
        for name, kind in (("query", route.query), ("body", route.body), ("answer", route.returns)):
            rows += _struct(name.capitalize(), kind)
    return "\n".join(rows) + "\n"


def dialect(name: str) -> str:
    from dragoman.dialects.descriptor import Registry

    found = Registry().find(name)
    assert found is not None
    table = import_module(f"dragoman.dialects.{name}.{TABLES[name]}").TABLE
    examples = first_uses(name)
    said = tomllib.loads((ROOT / "docs" / "protocols" / "methods.toml").read_text())[name]
    rows = [f"# {found.title}: methods and events", ""]
    rows += [f"Whole conversations: [transcripts]({name}-transcripts.md). What it is for:"]
    rows += [f"[{found.title}](../protocols/{name}.md).", ""]
    rows += _methods(table.verbs, said, examples)
    if later := second(name):
        again = tomllib.loads((ROOT / "docs" / "protocols" / "methods.toml").read_text())
        own = {method: verb for method, verb in later.items() if table.verbs.get(method) != verb}
        gone = ", ".join(f"`{method}`" for method in table.verbs if method not in later)
        rows += [
            "## Version 2",
            "",
            "What is only there, or otherwise there. The rest is as above.",
        ]
        rows += [f"Not there: {gone}.", ""] if gone else [""]
        rows += _methods(own, again[f"{name}-2"], first_uses(name, SECOND), "###")
    rows += ["## What the server says by itself", ""]
    rows += [
        "Events, and requests to the client; with a line of a transcript where there is one.",
        "",
    ]
    for kind, line in told(name, table.verbs).items():
        rows += [f"### `{kind}`", "", *(["```text", line, "```", ""] if line else [])]
    return "\n".join(rows) + "\n"


def second(name: str) -> dict[str, Any]:
    """The methods of a dialect's second version; empty when it has none."""
    if name not in SECONDS:
        return {}
    module, table = SECONDS[name]
    return dict(getattr(import_module(f"dragoman.dialects.{name}.{module}"), table).verbs)


def _methods(verbs: Any, said: Any, examples: Any, head: str = "##") -> Iterator[str]:
    for method, verb in verbs.items():
        yield from (f"{head} `{method}`", "")
        if doc := said.get(method) or (verb.run.__doc__ or "").strip().partition("\n")[0]:
            yield from (doc, "")
        yield from _struct("Params", verb.takes)
        if method in examples:
            yield from ("", "```text", *examples[method], "```", "")


def told(name: str, verbs: Any) -> dict[str, str]:
    """Every kind of message that no request is answered by, with its first line in a transcript."""
    found: dict[str, str] = {}
    for path in sorted((TALKS / name).rglob("*.talk")):
        for line in path.read_text().splitlines():
            if line.startswith("S>") and (kind := kind_of(line[2:].strip())):
                found.setdefault(kind, line)
    for pattern, text in SPOKEN[name]:
        for module in sorted(_modules(name)):
            for groups in re.findall(pattern, module.read_text()):
                word = groups if isinstance(groups, str) else "".join(groups)
                found.setdefault(text.format(word), "")
    if name == "openclawos":
        from dragoman.engine.points import OBSERVABLE

        found |= {kind: found.get(kind, "") for kind in (f"hook:{one}" for one in OBSERVABLE)}
    return {kind: found[kind] for kind in sorted(found) if kind not in verbs}


def _modules(name: str) -> Iterator[Path]:
    """The code of a dialect; that of our own methods is carried by one of them."""
    from dragoman.dialects.descriptor import MAIN

    for folder in (name, *(["dragoman"] if name == MAIN else [])):
        yield from (SOURCE / "dialects" / folder).rglob("*.py")


def kind_of(text: str) -> str:
    """What a line of the server's is called; empty when it answers a request."""
    said = json.loads(text) if text.startswith("{") else None
    if not isinstance(said, dict):
        return ""
    method, params, result = (said.get(key) for key in ("method", "params", "result"))
    if isinstance(method, str):
        params = params if isinstance(params, dict) else {}
        update = params.get("update")
        kind = update.get("sessionUpdate") if isinstance(update, dict) else params.get("type")
        return f"{method} {kind}" if method == "session/update" and kind else method
    if isinstance(result, dict) and isinstance(result.get("event"), dict):
        return str(result["event"].get("type", ""))
    if "jsonrpc" in said or said.get("type") == "response":
        return ""
    return str(said.get("event") or said.get("type") or "")


def first_uses(name: str, only: re.Pattern[str] | None = None) -> dict[str, list[str]]:
    """The first request of each method in the transcripts, with what is said until the next."""
    found: dict[str, list[str]] = {}
    for path in sorted((TALKS / name).rglob("*.talk")):
        current: list[str] | None = None
        text = path.read_text()
        for line in text.splitlines() if only is None or only.search(text) else ():
            if line.startswith("C>"):
                method = _method(line[2:].strip())
                current = None
                if method and method not in found:
                    current = found[method] = []
            if current is not None and line[:2] in SIDES and len(current) < 4:
                current.append(line)
    return found


def _method(text: str) -> str:
    try:
        said = json.loads(text)
    except ValueError:
        return ""
    if not isinstance(said, dict):
        return ""
    method = said.get("method") or said.get("type")
    return method if isinstance(method, str) else ""


def transcripts(name: str) -> str:
    rows = [f"# Transcripts: {name}", ""]
    rows += ["Each is a test that runs on every transport of the dialect. `C>` is the client, `S>`"]
    rows += ["the server; `dragoman replay FILE` plays the server's part to a client of yours.", ""]
    for path in sorted((TALKS / name).rglob("*.talk")):
        text = path.read_text()
        first, _, rest_of_it = text.partition("\n")
        title = first.lstrip("# ").strip() if first.startswith("#") else path.stem
        where = path.relative_to(TALKS)
        rows += [f"## {title}", "", f"`{where}`", "", "```text", rest_of_it.strip("\n"), "```", ""]
    return "\n".join(rows) + "\n"


def events() -> str:
    """The facts about a session, as `dragoman/event`, REST and our Python client tell them."""
    from typing import get_args

    from dragoman.engine import events as known

    rows = ["# Events of a session", ""]
    rows += [
        "As our own protocol (`dragoman/event`), REST and the Python client tell them, by `type`."
    ]
    rows += [
        "Kept events have a number and are stored; passing ones are streamed and never stored."
    ]
    for title, union in (("Kept", known.Kept), ("Passing", known.Passing)):
        rows += ["", f"## {title}"]
        for kind in get_args(union):
            rows += ["", f"### `{kind.__struct_config__.tag}`", ""]
            doc = (kind.__doc__ or "").strip().partition("\n")[0]
            rows += [doc, ""] if doc and not doc.startswith(f"{kind.__name__}(") else []
            rows += _struct("Field", kind)
    return "\n".join(rows) + "\n"


def messages() -> str:
    """Why something could not be done: every text of the code, and its way out."""
    rows = ["# Messages", ""]
    rows += [
        "Every message that tells why something could not be done, and what to do about it, by the"
    ]
    rows += ["part of the program that says it. `…` stands for what differs."]
    found: dict[str, set[tuple[str, str]]] = {}
    trees = {path: ast.parse(path.read_text()) for path in sorted(SOURCE.rglob("*.py"))}
    faults = _faults(trees.values())
    for path, tree in trees.items():
        texts = {
            node.targets[0].id: node.value
            for node in tree.body
            if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name)
        }
        part = path.relative_to(SOURCE).parts[0].removesuffix(".py")
        for given in _told_in(tree, faults):
            # A kind of failure, a single word, is no way out.
            message, *others = (_text(one, texts) for one in given)
            hint = next((one for one in others if " " in one), "")
            if re.search(r"\w{3}.* ", message):
                found.setdefault(part, set()).add((message, hint))
    for part in sorted(found):
        rows += ["", f"## {part}", ""]
        for message, hint in sorted(found[part], key=lambda one: one[0].lower()):
            way_out = f"  \n  {_plain(hint)}" if hint else ""
            rows.append(f"- **{_plain(message)}**{way_out}")
    return "\n".join([*rows, *_wrong_values(trees)]) + "\n"


def _wrong_values(trees: dict[Path, ast.Module]) -> Iterator[str]:
    """What is said of settings: by each kind of key, and of names that lead nowhere."""
    from dragoman.settings import shape
    from dragoman.settings.explain import explain
    from dragoman.settings.load import Loaded
    from dragoman.settings.model import Settings

    keys: dict[str, list[str]] = {}
    for row in explain(Loaded(Settings(), "", "", {}, ())):
        kind = shape.key(shape.split(row.key)).kind
        # No kind takes both, but for those that take anything.
        said = shape.problem(kind, [[object]]) and shape.problem(kind, object())
        if said:
            keys.setdefault(said.partition(": ")[0], []).append(row.key)
    yield from ("", "## wrong values in settings", "")
    yield "After the file and the line, or the variable, and the key; behind it `(got …)`."
    yield ""
    for said, names in sorted(keys.items()):
        yield f"- **… {_plain(said)}**  "
        yield f"  {', '.join(f'`{name}`' for name in names)}"
    yield from ("", "## names and keys of settings that lead nowhere", "")
    found = {
        re.sub(r"(… ?){2,}", "… ", f"… {text}" if text.startswith(_RESTS) else text)
        for path, tree in trees.items()
        if path.parent.name == "settings"
        for text in _told_of_settings(tree)
        if re.search(r"\w{3}.* \w", text)
    }
    yield from (f"- **{_plain(text)}**" for text in sorted(found, key=str.lower))


def _told_of_settings(tree: ast.AST) -> Iterator[str]:
    """The texts that are gathered with a key, or of which a report about settings is made."""
    for node in ast.walk(tree):
        match node:
            case ast.Yield(value=ast.Tuple(elts=[_, ast.Constant() | ast.JoinedStr() as text])):
                yield _text(text, {})
            case ast.FunctionDef(name="_missing" | "told" | "__str__", body=body):
                for inner in (one for part in body for one in ast.walk(part)):
                    if isinstance(inner, ast.Return) and inner.value is not None:
                        yield _text(inner.value, {})
            case ast.Call(
                func=ast.Attribute(
                    attr="append", value=ast.Attribute(attr="problems" | "warnings")
                ),
                args=[text],
            ):
                yield _text(text, {})


def _told_in(tree: ast.AST, faults: set[str]) -> Iterator[list[ast.expr]]:
    """The texts with which faults are made, or anything is raised, or a fault tells of itself."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Raise):
            node = node.exc  # type: ignore[assignment]
        elif isinstance(node, ast.ClassDef) and _name(node.bases[0] if node.bases else node) in {
            *faults,
            "Exception",
        }:
            for inner in ast.walk(node):
                if isinstance(inner, ast.Return) and inner.value is not None:
                    yield [inner.value]
                elif isinstance(inner, ast.Call) and ast.unparse(inner.func) in (
                    "super().__init__",
                    "cls",
                ):
                    yield inner.args
            continue
        elif not (isinstance(node, ast.Call) and _name(node.func) in faults):
            continue
        if isinstance(node, ast.Call) and node.args:
            yield [*node.args, *(one.value for one in node.keywords if one.arg == "hint")]


def _faults(trees: Any) -> set[str]:
    """The names of every class that is a fault, and of a command line that is not understood."""
    above = {
        node.name: {_name(base) for base in node.bases}
        for tree in trees
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef)
    }
    found = {"Fault", "Usage"}
    while more := {name for name, bases in above.items() if bases & found} - found:
        found |= more
    return found


def _name(node: ast.AST) -> str:
    return str(getattr(node, "id", "") or getattr(node, "attr", ""))


def _text(node: ast.expr, texts: dict[str, ast.expr]) -> str:
    """A text as far as the code says it."""
    match node:
        case ast.Constant(value=str(text)):
            return text
        case ast.JoinedStr(values=values):
            return "".join(_text(one, texts) for one in values)
        case ast.BinOp(left=left, op=ast.Add(), right=right):
            return _text(left, texts) + _text(right, texts)
        case ast.Name(id=name) if name in texts and name.isupper():
            return _text(texts[name], {})
    return "…"


def _plain(text: str) -> str:
    """Text in which Markdown sees nothing of its own but code."""
    text = re.sub(r"\s+", " ", text).strip()
    parts = re.split(r"(`[^`]*`)", text)
    return "".join(
        part if part.startswith("`") else re.sub(r"([\\`*_\[\]<>{}#$|])", r"\\\1", part)
        for part in parts
    )


def python() -> str:
    import dragoman.apps
    import dragoman.client

    first, _, code = (dragoman.client.__doc__ or "").partition("\n\n")
    code, _, rest_of_it = code.partition("\n\n")
    rows = ["# Python", "", "## dragoman.client", "", first, "", "```python", code, "```", ""]
    rows += [rest_of_it, "", "```{eval-rst}"]
    for name in dragoman.client.__all__:
        rows += _auto("client", name)
    rows += ["```", "", "## dragoman.apps", "", "```{eval-rst}"]
    for name in dragoman.apps.__all__:
        rows += _auto("apps", name)
    return "\n".join([*rows, "```", ""])


def _auto(package: str, name: str) -> list[str]:
    found = getattr(import_module(f"dragoman.{package}"), name)
    kind = "autoclass" if isinstance(found, type) else "autofunction"
    return [
        "",
        f".. {kind}:: dragoman.{package}.{name}",
        *(["   :members:"] * (kind == "autoclass")),
    ]


def _struct(title: str, kind: Any) -> list[str]:
    """A struct's fields as a table."""
    if kind is None:
        return []
    if not (isinstance(kind, type) and issubclass(kind, msgspec.Struct)):
        return [f"{title}: `{_type(kind)}`", ""]
    rows = ["", f"| {title.lower()} | type | needed |", "|---|---|---|"]
    for field in msgspec.structs.fields(kind):
        needed = "yes" if field.required else ""
        rows.append(f"| `{field.encode_name}` | {_cell(_type(field.type))} | {needed} |")
    return [*rows, ""] if len(rows) > 3 else []


def _type(kind: Any) -> str:
    text = (
        getattr(kind, "__name__", "")
        if isinstance(kind, type) and not hasattr(kind, "__args__")
        else str(kind)
    )
    for long in ("typing.", "msgspec._core.", "collections.abc."):
        text = text.replace(long, "")
    words = []
    for word in text.replace("[", " [ ").replace("]", " ] ").replace(",", " , ").split():
        words.append(word.rpartition(".")[2] if word.startswith("dragoman.") else word)
    return " ".join(words).replace(" [ ", "[").replace(" ]", "]").replace(" ,", ",")


def _sentence(text: str) -> str:
    return text if text.endswith(".") else f"{text}."


if __name__ == "__main__":
    main(Path(sys.argv[1]))
