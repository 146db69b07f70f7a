"""Renders Markdown: tables, task lists, strike-through, highlighted code.

What a model writes is hostile: raw HTML stays text, links go to http, https and mail only, and
pictures become links, so that nothing is fetched by being shown.
"""

from collections.abc import Sequence
from html import escape
from threading import Lock, local
from typing import Any

_SAFE = ("http://", "https://", "mailto:")
_LARGE = 100_000  # characters of code that are highlighted; more is shown plain
_MOST = 1_000_000  # characters of one text that are read as Markdown; more is shown plain
# Texts are rendered in threads. A reader works its rules out when it first reads, so each thread
# has one of its own; Pygments' lexers do the same, and are everybody's.
_own = local()
_lexing = Lock()


def render(text: str) -> str:
    """A text as HTML."""
    if len(text) > _MOST:
        return f'<pre class="plain">{escape(text)}</pre>\n'
    if not hasattr(_own, "reader"):
        _own.reader = _reader()
    made: str = _own.reader.render(text)
    return made


def _reader() -> Any:
    from markdown_it import MarkdownIt
    from mdit_py_plugins.tasklists import tasklists_plugin

    found = MarkdownIt("commonmark", {"html": False, "linkify": True, "breaks": True})
    found.enable(["table", "strikethrough", "linkify"])
    # README.md and parser.py are files, not hosts in Moldova and Paraguay: only whole addresses.
    linkify: Any = found.linkify
    linkify.set({"fuzzy_link": False, "fuzzy_ip": False, "fuzzy_email": False})
    found.use(tasklists_plugin)
    found.validateLink = lambda url: url.strip().lower().startswith(_SAFE)  # type: ignore[method-assign]
    found.add_render_rule("link_open", _link_open)
    found.add_render_rule("image", _image)
    found.add_render_rule("fence", _fence)
    found.add_render_rule("code_block", _fence)
    found.add_render_rule("heading_open", _heading)
    found.add_render_rule("heading_close", _heading)
    for cell in ("th_open", "td_open"):
        found.add_render_rule(cell, _cell)
    found.add_render_rule("html_inline", _as_text)  # what plugins put there, and only theirs
    return found


def _link_open(self: Any, tokens: Sequence[Any], at: int, options: Any, env: Any) -> str:
    token = tokens[at]
    token.attrSet("target", "_blank")
    token.attrSet("rel", "noopener noreferrer")
    made: str = self.renderToken(tokens, at, options, env)
    return made


def _image(self: Any, tokens: Sequence[Any], at: int, options: Any, env: Any) -> str:
    token = tokens[at]
    shown = escape(token.content or str(token.attrs.get("src", "")))
    url = escape(str(token.attrs.get("src", "")))
    return f'<a href="{url}" target="_blank" rel="noopener noreferrer">{shown}</a>'


def _heading(self: Any, tokens: Sequence[Any], at: int, options: Any, env: Any) -> str:
    """The page has a heading of its own: those of a text stand below it, and skip no level."""
    token = tokens[at]
    above: list[int] = env.setdefault("headings", [])
    if token.nesting == 1:
        level = int(token.tag[1])
        while above and above[-1] >= level:
            above.pop()
        above.append(level)
    shown = min(6, 1 + len(above))
    return f"<h{shown}>" if token.nesting == 1 else f"</h{shown}>\n"


def _fence(self: Any, tokens: Sequence[Any], at: int, options: Any, env: Any) -> str:
    token = tokens[at]
    name = token.info.split()[0] if token.info.strip() else ""
    label = f' data-label="{escape(name)}"' if name else ""
    return f'<pre class="code"{label} tabindex="0"><code>{code(token.content, name)}</code></pre>\n'


def _cell(self: Any, tokens: Sequence[Any], at: int, options: Any, env: Any) -> str:
    """Where a column stands, by a class: styles inside of documents are forbidden."""
    token = tokens[at]
    side = str(token.attrs.pop("style", "")).partition(":")[2]
    if side in ("left", "center", "right"):
        token.attrSet("class", f"to-{side}")
    made: str = self.renderToken(tokens, at, options, env)
    return made


def _as_text(self: Any, tokens: Sequence[Any], at: int, options: Any, env: Any) -> str:
    content: str = tokens[at].content
    start = '<input class="task-list-item-checkbox"'
    if not content.startswith(start):
        return escape(content)
    said = "done" if "checked" in content else "to do"
    return content.replace(start, f'{start} aria-label="{said}"', 1)


def code(text: str, language: str) -> str:
    """Code with a class for each kind of word, or as it is when the language is unknown."""
    if not language or len(text) > _LARGE:
        return escape(text)
    from pygments import highlight
    from pygments.formatters.html import HtmlFormatter
    from pygments.lexers import get_lexer_by_name
    from pygments.util import ClassNotFound

    with _lexing:
        try:
            lexer = get_lexer_by_name(language, stripnl=False, ensurenl=False)
        except ClassNotFound:
            return escape(text)
        made: str = highlight(text, lexer, HtmlFormatter(nowrap=True))
    return made
