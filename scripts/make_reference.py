"""Write the reference pages of the documentation from the code, into a folder.

    python scripts/make_reference.py FOLDER

Commands, configuration, the methods of each dialect with their transcripts, REST.
"""

import json
import sys
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
SIDES = {"C>": "client", "S>": "server"}


def main(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    pages = {"commands": commands(), "configuration": configuration(), "rest": rest()}
    pages["python"] = python()
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
    rows = [f"# {found.title}: methods", ""]
    rows += [f"Whole conversations: [transcripts]({name}-transcripts.md). What it is for:"]
    rows += [f"[{found.title}](../protocols/{name}.md).", ""]
    for method, verb in table.verbs.items():
        rows += [f"## `{method}`", ""]
        if doc := (verb.run.__doc__ or "").strip().partition("\n")[0]:
            rows += [doc, ""]
        rows += _struct("Params", verb.takes)
        if method in examples:
            rows += ["", "```text", *examples[method], "```", ""]
    return "\n".join(rows) + "\n"


def first_uses(name: str) -> dict[str, list[str]]:
    """The first request of each method in the transcripts, with what is said until the next."""
    found: dict[str, list[str]] = {}
    for path in sorted((TALKS / name).rglob("*.talk")):
        current: list[str] | None = None
        for line in path.read_text().splitlines():
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


def python() -> str:
    import dragoman.client

    first, _, code = (dragoman.client.__doc__ or "").partition("\n\n")
    code, _, rest_of_it = code.partition("\n\n")
    rows = ["# Python", "", "## dragoman.client", "", first, "", "```python", code, "```", ""]
    rows += [rest_of_it, "", "```{eval-rst}"]
    for name in ("connect", "HostClient", "Plain", "NotRunning", "ConnectionGone"):
        rows += _auto("client", name)
    rows += ["```", "", "## dragoman.apps", "", "```{eval-rst}"]
    for name in ("App", "Channel", "Message", "Block", "Invocation", "Request", "KernelError"):
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
