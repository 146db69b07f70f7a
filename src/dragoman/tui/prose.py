"""Markdown as rows of the screen."""

from collections.abc import Callable
from functools import cache
from typing import TYPE_CHECKING, Any

from rich.cells import cell_len
from rich.style import Style
from rich.text import Text

from .rows import BLANK, Row, beside, plain, safe, wrap

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.tree import SyntaxTreeNode

Colour = Callable[[str, str], list[Text]]
_BULLETS = "•◦▪"
_CODE = Style.parse("cyan")
_NARROWEST = 6  # columns of a table's cell


@cache
def _parser() -> "MarkdownIt":
    from markdown_it import MarkdownIt

    # What is nested deeper than the parser's own limit would not be shown at all.
    options = {"html": False, "maxNesting": 1_000}
    return MarkdownIt("commonmark", options).enable(["table", "strikethrough"])


def prepare() -> None:
    """Load what Markdown and code need, before somebody who types has to wait for it."""
    import markdown_it.tree
    import pygments.lexers

    _ = markdown_it.tree, pygments.lexers
    _parser()


def rows(text: str, width: int, opener: str = "", *, grows: bool = False) -> list[Row]:
    """The rows of one piece of Markdown; `opener` is the fence that it begins inside of.

    `grows`: more of it will come, and it will be drawn again.
    """
    text = safe(text)
    if opener:
        text = f"{opener}\n{text}"
    elif _simple(text):
        return wrap(Text(text.strip("\n")), width)
    from markdown_it.tree import SyntaxTreeNode

    try:
        tree = SyntaxTreeNode(_parser().parse(text))
        if grows and tree.children and tree.children[-1].type == "fence":
            *before, last = tree.children
            above = _many(before, width, 0)
            return above + [BLANK] * bool(above) + _fence(last, width, coloured_so_far)
        return _fitting(_many(tree.children, width, 0), width)
    except RecursionError:  # nested deeper than anybody can read
        return wrap(Text(text), width)


def _fitting(rows: list[Row], width: int) -> list[Row]:
    """Rows that lists in lists have pushed out of the screen are wrapped once more."""
    found: list[Row] = []
    for row in rows:
        if row.shown.cell_len <= width:
            found.append(row)
            continue
        first, *more = wrap(row.shown, width)
        found.append(Row(first.shown, row.copy, row.joins))
        found += (Row(one.shown, "", "") for one in more)
    return found


def _simple(text: str) -> bool:
    """One paragraph of plain words: most of what models write."""
    body = text.strip("\n")
    return (
        "\n" not in body
        and not any(mark in body for mark in "*_`[]<&\\|~!")
        and body[:1] not in ("#", "-", "+", ">", "=", " ")
        and not (body[:1].isdigit() and body.lstrip("0123456789")[:1] in (".", ")"))
    )


def _many(nodes: "list[SyntaxTreeNode]", width: int, depth: int, tight: bool = False) -> list[Row]:
    found: list[Row] = []
    for node in nodes:
        drawn = _one(node, width, depth)
        if found and drawn and not tight:
            found.append(BLANK)
        found += drawn
    return found


def _one(node: "SyntaxTreeNode", width: int, depth: int) -> list[Row]:
    kind = node.type
    if kind == "paragraph":
        return wrap(_inline(node), width)
    if kind == "heading":
        style = "bold underline" if node.tag == "h1" else "bold" if node.tag < "h4" else "italic"
        return wrap(_inline(node, style), width)
    if kind in ("fence", "code_block"):
        return _fence(node, width, highlighted)
    if kind in ("bullet_list", "ordered_list"):
        return _list(node, width, depth)
    if kind == "blockquote":
        inner = _many(node.children, width - 2, depth)
        bar = Text("▎ ", "dim")
        return beside(
            [row._replace(shown=_dimmed(row.shown)) for row in inner], bar, bar, ("> ",) * 2
        )
    if kind == "hr":
        return [Row(Text("─" * min(width, 40), "dim"), "---")]
    if kind == "table":
        return _table(node, width)
    if node.children:
        return _many(node.children, width, depth)
    return wrap(Text(node.content), width) if node.content else []


def _fence(node: "SyntaxTreeNode", width: int, colour: "Colour") -> list[Row]:
    language = node.info.split()[0] if node.info.strip() else ""
    return code(node.content, language, width, colour)


def _dimmed(text: Text) -> Text:
    text = text.copy()
    text.stylize("italic")
    return text


def _list(node: "SyntaxTreeNode", width: int, depth: int) -> list[Row]:
    found: list[Row] = []
    start = node.attrs.get("start", 1)
    number = int(start) if isinstance(start, (int, str)) else 1
    ordered = node.type == "ordered_list"
    tight = all(
        child.hidden
        for item in node.children
        for child in item.children
        if child.type == "paragraph"
    )
    for item in node.children:
        mark = f"{number}. " if ordered else f"{_BULLETS[min(depth, 2)]} "
        if ordered:
            mark = mark.rjust(len(str(number + len(node.children) - 1)) + 2)
        inner = _many(item.children, width - len(mark), depth + (not ordered), tight) or [BLANK]
        if found and not tight:
            found.append(BLANK)
        copied = (mark if ordered else "- ", " " * len(mark))
        found += beside(inner, Text(mark, "cyan"), Text(" " * len(mark)), copied)
        number += 1
    return found


def _table(node: "SyntaxTreeNode", width: int) -> list[Row]:
    lines = [
        [(_inline(cell), str(cell.attrs.get("style", ""))) for cell in line.children]
        for part in node.children
        for line in part.children
    ]
    if not lines or not lines[0]:
        return []
    count = len(lines[0])
    widths = [
        max((cell_len(line[at][0].plain) for line in lines if at < len(line)), default=1)
        for at in range(count)
    ]
    widths = [max(1, one) for one in widths]
    room = width - 2 * (count - 1)
    while sum(widths) > room and max(widths) > _NARROWEST:
        widths[widths.index(max(widths))] -= 1
    found: list[Row] = []
    for at, line in enumerate(lines):
        found += _cells(line, widths, at == 0)
        if at == 0:
            found.append(
                Row(
                    Text("  ".join("─" * one for one in widths), "dim"),
                    "\t".join("---" for _ in widths),
                )
            )
    if sum(widths) + 2 * (count - 1) > width:  # still too wide: cut at the edge, copy has it all
        for row in found:
            row.shown.truncate(width, overflow="ellipsis")
    return found


def _cells(line: list[tuple[Text, str]], widths: list[int], head: bool) -> list[Row]:
    parts = [
        [row.shown for row in wrap(cell, room)]
        for (cell, _), room in zip(line, widths, strict=False)
    ]
    copied = "\t".join(cell.plain for cell, _ in line)
    found = []
    for at in range(max(len(part) for part in parts)):
        shown = Text(no_wrap=True)
        for column, part in enumerate(parts):
            text = part[at] if at < len(part) else Text("")
            gap = widths[column] - text.cell_len
            left = (
                gap
                if "right" in line[column][1]
                else gap // 2
                if "center" in line[column][1]
                else 0
            )
            if column:
                shown.append("  ")
            shown.append(" " * max(left, 0))
            shown.append_text(text)
            shown.append(" " * max(gap - left, 0))
        if head:
            shown.stylize("bold")
        found.append(Row(shown, copied) if at == 0 else Row(shown, "", ""))
    return found


def _inline(node: "SyntaxTreeNode", base: str = "") -> Text:
    found = Text(style=base)
    for child in node.children:
        if child.type == "inline":
            _append(found, child.children, "")
    return found


def _append(into: Text, nodes: "list[SyntaxTreeNode]", style: str) -> None:
    for node in nodes:
        kind = node.type
        if kind == "text":
            into.append(node.content, style or None)
        elif kind == "code_inline":
            into.append(node.content, _CODE if not style else f"{style} cyan")
        elif kind in ("softbreak", "hardbreak"):
            into.append("\n")
        elif kind in ("strong", "em", "s"):
            own = {"strong": "bold", "em": "italic", "s": "strike"}[kind]
            _append(into, node.children, f"{style} {own}".strip())
        elif kind == "link":
            _link(into, node, style)
        elif kind == "image":
            into.append(f"[{node.content or 'picture'}] {node.attrs.get('src', '')}", "underline")
        else:
            into.append(node.content, style or None)


def _link(into: Text, node: "SyntaxTreeNode", style: str) -> None:
    """The words of a link and where it leads: words alone could promise another place."""
    before = len(into)
    _append(into, node.children, f"{style} underline".strip())
    target = str(node.attrs.get("href", ""))
    if target and into.plain[before:] != target:
        into.append(f" ({target})", "dim")


def code(text: str, language: str, width: int, colour: "Colour | None" = None) -> list[Row]:
    """A code block: indented, coloured, its lines wrapped; the copy is the code."""
    if language in ("diff", "patch"):
        lines = [_diff_line(line) for line in text.rstrip("\n").split("\n")]
    else:
        lines = (colour or highlighted)(text.rstrip("\n"), language)
    found: list[Row] = []
    for line in lines:
        found += wrap(line, width - 2)
    return beside(found, Text("  "), Text("  ")) if found else [plain("")]


def _diff_line(line: str) -> Text:
    style = {"+": "green", "-": "red", "@": "cyan"}.get(line[:1], "")
    return Text(line, "bold" if line.startswith(("+++", "---")) else style)


def highlighted(text: str, language: str) -> list[Text]:
    """The lines of a text in the colours of its language."""
    lexer = _lexer(language)
    if lexer is None or len(text) > 64_000:
        return [Text(line) for line in text.split("\n")]
    return _coloured(lexer, text)[0]


def _coloured(lexer: Any, text: str) -> tuple[list[Text], int]:
    """The lines, and how many of them end outside of anything that goes over several lines."""
    from pygments.token import Text as Blank

    found = [Text()]
    settled = 0
    for kind, value in lexer.get_tokens(text):
        style = _colour(kind)
        first, *more = value.split("\n")
        found[-1].append(first, style or None)
        if more and kind in Blank:
            settled = len(found)
        for part in more:
            found.append(Text(part, style))
    wanted = text.count("\n") + 1
    return found[:wanted], min(settled, wanted - 1)


class _SoFar:
    """The code that is being written now: lines that were coloured are not coloured again.

    Like `highlighted`, for a text that grows: only its new end is looked at. A language with
    sections of other ones may be coloured wrongly until the whole is drawn.
    """

    def __init__(self) -> None:
        self.language = ""
        self.text = ""  # of the lines that stand, each with its end
        self.lines: list[Text] = []

    def coloured(self, text: str, language: str) -> list[Text]:
        lexer = _lexer(language)
        if lexer is None:
            return highlighted(text, language)
        if language != self.language or not text.startswith(self.text):
            self.language, self.text, self.lines = language, "", []
        rest = text[len(self.text) :]
        fresh, settled = _coloured(lexer, rest)
        for line in fresh[:settled]:
            end = rest.index("\n") + 1
            self.text, rest = self.text + rest[:end], rest[end:]
            self.lines.append(line)
        return self.lines + fresh[settled:]


coloured_so_far = _SoFar().coloured


@cache
def _lexer(language: str) -> Any:
    if not language:
        return None
    from pygments.lexers import get_lexer_by_name
    from pygments.util import ClassNotFound

    try:
        return get_lexer_by_name(language, stripnl=False, ensurenl=False)
    except ClassNotFound:
        return None


@cache
def _colour(kind: Any) -> str:
    from pygments.token import Comment, Keyword, Name, Number, Operator, String

    for token, style in (
        (Comment, "dim italic"),
        (Keyword, "magenta"),
        (Operator.Word, "magenta"),
        (String, "green"),
        (Number, "cyan"),
        (Name.Function, "blue"),
        (Name.Class, "bold blue"),
        (Name.Decorator, "yellow"),
        (Name.Tag, "blue"),
        (Name.Builtin, "cyan"),
    ):
        if kind in token:
            return style
    return ""
