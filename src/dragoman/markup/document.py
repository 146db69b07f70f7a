"""A session as one HTML file: no scripts, nothing fetched, everything that was said escaped."""

from collections.abc import Sequence
from html import escape
from typing import Any

from .story import Part, facts_of, story, title_of, utc

_STYLE = """
:root { color-scheme: light dark; --line: #8884; --soft: #8881; --bad: #c33; --user: #36c2; }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 50rem; margin: 2rem auto; padding: 0 1rem; }
h1 { font-size: 1.4rem; overflow-wrap: anywhere; }
table { border-collapse: collapse; margin-bottom: 2rem; font-size: .9rem; }
th { text-align: left; padding-right: 1rem; font-weight: 600; vertical-align: top; }
td { overflow-wrap: anywhere; }
section { margin: .8rem 0; padding: .5rem .9rem; border-left: 3px solid var(--line); }
.user { background: var(--user); }
.agent { border-color: transparent; padding-left: 0; }
.thought, .note { opacity: .75; font-size: .9rem; }
.bad { border-color: var(--bad); }
.asked { border-color: #c90; }
header { font-size: .8rem; font-weight: 600; display: flex; justify-content: space-between; }
time { font-weight: 400; opacity: .6; }
pre { white-space: pre-wrap; overflow-wrap: anywhere; font: .85rem/1.4 ui-monospace, monospace;
  background: var(--soft); padding: .5rem; margin: .3rem 0 0; }
p { white-space: pre-wrap; overflow-wrap: anywhere; margin: .2rem 0; }
summary { cursor: pointer; font-size: .9rem; }
.prose p { white-space: normal; } .prose table { font-size: inherit; margin: .5rem 0; }
.prose th, .prose td { border: 1px solid var(--line); padding: .2rem .6rem; }
.to-center { text-align: center; } .to-right { text-align: right; }
.task-list-item { list-style: none; }
.code .k, .code .kn, .code .kd, .code .kc { color: #94c; } .code .c1, .code .cm { opacity: .6; }
.code .s1, .code .s2, .code .sd { color: #393; } .code .mi, .code .mf { color: #a60; }
.code .nf, .code .nc { color: #37c; } .code .gd { color: #c33; } .code .gi { color: #393; }
"""
_FOLD_LINES = 12


def document(info: dict[str, Any], events: Sequence[dict[str, Any]]) -> str:
    """The whole document."""
    title = escape(title_of(info))
    rows = "".join(
        f"<tr><th>{escape(name)}</th><td>{escape(value)}</td></tr>"
        for name, value in facts_of(info)
    )
    body = "\n".join(_part(part) for part in story(events))
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta http-equiv="Content-Security-Policy" content="default-src \'none\'; '
        "style-src 'unsafe-inline'\">\n"
        f"<title>{title}</title>\n<style>{_STYLE}</style>\n</head>\n<body>\n<h1>{title}</h1>\n"
        f"<table>{rows}</table>\n{body}\n</body>\n</html>\n"
    )


def _part(part: Part) -> str:
    kind = f"{part.kind} bad" if part.bad else part.kind
    head = {"call": "Tool call: ", "result": "Result: "}.get(part.kind, "") + part.title
    header = f"<header>{escape(head)}<time>{utc(part.at)}</time></header>"
    return f'<section class="{kind}">{header}{_body(part)}</section>'


def _body(part: Part) -> str:
    if not part.text:
        return ""
    if not part.code and part.kind == "agent":
        from dragoman.markup.html import render

        return f'<div class="prose">{render(part.text.strip())}</div>'
    if not part.code:
        return f"<p>{escape(part.text.strip())}</p>"
    block = f"<pre>{escape(part.text.rstrip())}</pre>"
    lines = part.text.count("\n") + 1
    if lines <= _FOLD_LINES:
        return block
    return f"<details><summary>{lines} lines</summary>{block}</details>"
