"""Markdown as HTML: what it should be, and what hostile text must not become."""

import re
import time
from concurrent.futures import ThreadPoolExecutor
from html.parser import HTMLParser
from threading import Event, Thread, current_thread
from typing import Any

import pytest

from dragoman.markup.html import code, render

TAGS = set(
    "p br h2 h3 h4 h5 h6 ul ol li input table thead tbody tr th td pre code span a em strong s "
    "blockquote hr".split()
)
ATTRS = set(
    "class href target rel data-label tabindex checked disabled type aria-label start title".split()
)


class Strict(HTMLParser):
    """Raises at whatever must not be there."""

    def __init__(self) -> None:
        super().__init__()
        self.text = ""

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        assert tag in TAGS, tag
        for name, value in attrs:
            assert name in ATTRS, (tag, name)
            if name == "href":
                assert (value or "").lower().startswith(("http://", "https://", "mailto:")), value
            if tag == "input":
                assert name in ("class", "checked", "disabled", "type", "aria-label")

    def handle_data(self, data: str) -> None:
        self.text += data

    def handle_decl(self, decl: str) -> None:
        raise AssertionError(decl)

    def handle_comment(self, data: str) -> None:
        raise AssertionError(data)


def read(html: str) -> str:
    strict = Strict()
    strict.feed(html)
    strict.close()
    return strict.text


@pytest.mark.parametrize(
    ("text", "has"),
    [
        ("- a\n  - b\n    - c", r"<ul>\s*<li>a\s*<ul>\s*<li>b\s*<ul>\s*<li>c"),
        ("1. a\n   - b\n2. c", r"<ol>\s*<li>a\s*<ul>\s*<li>b</li>\s*</ul>\s*</li>\s*<li>c"),
        ("|a|b|\n|:-|-:|\n|1|`2`|", r'<th class="to-left">a</th>\s*<th class="to-right">b'),
        ("- [x] done\n- [ ] open", r'aria-label="done" checked.*aria-label="to do" disabled'),
        ("~~gone~~", "<s>gone</s>"),
        ("```python\nif x: pass\n```", '<span class="k">if</span>'),
        ("```\n<b>\n```", "<code>&lt;b&gt;"),
        ("```nonesuch\n<b>\n```", 'data-label="nonesuch".*&lt;b&gt;'),
        ("    four\n", "<code>four"),
        ("# one\n###### six\n## two", "<h2>one</h2>.*<h3>six</h3>.*<h3>two</h3>"),
        ("### three\n#### four\n### three", "<h2>three</h2>.*<h3>four</h3>.*<h2>three</h2>"),
        ("see http://a.org/x_y_z.", '<a href="http://a.org/x_y_z"[^>]*>http://a.org/x_y_z</a>.'),
        ("[a](https://b.org)", 'rel="noopener noreferrer"'),
        (
            "see README.md, a.py and b.sh",
            "<p>see README.md, a.py and b.sh</p>",
        ),
        ("write to me@host.org from 10.0.0.1", "<p>write to me@host.org from 10.0.0.1</p>"),
        ("one\ntwo", "one<br"),
        ("> > deep", r"<blockquote>\s*<blockquote>"),
        ("3. three", '<ol start="3">'),
        ("a<br>b", "a&lt;br&gt;b"),
        ("2 < 3 & 4 > 1", "2 &lt; 3 &amp; 4 &gt; 1"),
    ],
)
def test_it_is_read_as_it_is_meant(text: str, has: str) -> None:
    html = render(text)
    assert re.search(has, html, re.DOTALL), html
    read(html)


WAYS = [
    "<script>alert(1)</script>", "<img src=x onerror=alert(1)>", "<svg/onload=alert(1)>",
    "<iframe src=javascript:alert(1)>", "<a href=javascript:alert(1)>x</a>", "<body onload=x>",
    "<style>*{display:none}</style>", "<link rel=stylesheet href=//e>", "<base href=//e>",
    "<meta http-equiv=refresh content=0>", "<form action=//e><input name=q>", "<object data=x>",
    "<embed src=x>", "<math><mtext></math>", "<!-- x -->", "<!DOCTYPE x>", "<![CDATA[x]]>",
    "<?php x ?>", "[x](javascript:alert(1))", "[x](JaVaScRiPt:alert(1))",
    "[x]( javascript:alert(1))",
    "[x](java\tscript:alert(1))", "[x](data:text/html,<script>alert(1)</script>)",
    "[x](vbscript:x)", "[x](file:///etc/passwd)", "[x](&#106;avascript:alert(1))",
    "[x](javascript&colon;alert(1))", "![x](http://e/t.png)", "![x](javascript:alert(1))",
    "![x](data:image/svg+xml,<svg onload=alert(1)>)", '![x](http://e/"onerror="alert(1))',
    '[x](http://e "onclick=alert(1)")', "[x](http://e '\" onmouseover=alert(1) x=\"')",
    "<http://e\" onclick=alert(1)>", "<javascript:alert(1)>", "[x]: javascript:alert(1)\n\n[x]",
    "`<script>`", "```\"><script>alert(1)</script>\nx\n```", "```html\n<script>x</script>\n```",
    "``` onclick=alert(1)\nx\n```", "|<script>|\n|-|\n|<img onerror=x>|", "# <script>",
    "- [x] <script>alert(1)</script>", '- [ ] <input onfocus=alert(1) autofocus>',
    '<input class="task-list-item-checkbox" onfocus=alert(1)>', "\x00<script>\x00", "<scr\x00ipt>",
    "<script\n>alert(1)</script\n>", "<<script>script>", "&lt;script&gt;", "&#60;script&#62;",
    "\u202e<script>", "<ſcript>", "http://e/<script>", "mailto:x@e\"><script>",
    "[![x](javascript:x)](javascript:y)", "***<script>***", "<a\nhref='x'\n>",
    "<details open ontoggle=x>",
    "<template><script>", "<noscript><p title='</noscript><img src=x onerror=x>'>", "\\<script>",
    "<x-element onpointerenter=x>", "[a](<javascript:alert(1)>)", "[a](//e.org)",
    "[a](/api/config)",
]  # fmt: skip


@pytest.mark.parametrize("text", WAYS)
def test_what_is_hostile_stays_text(text: str) -> None:
    assert len(WAYS) >= 60
    for way in (text, f"> {text}", f"- {text}", f"para\n{text}\npara", f"**{text}**"):
        read(render(way))


@pytest.mark.parametrize(
    "text",
    ["[" * 5_000, "*a " * 5_000, "> " * 2_000 + "x", "`" * 5_000, "- " * 2_000, "_" * 5_000,
     "![" * 3_000, "<" * 5_000, "|a" * 1_000 + "\n" + "|-" * 1_000, "```py\n" + "x" * 50_000],
)  # fmt: skip
def test_long_odd_text_is_read_in_time(text: str) -> None:
    began = time.process_time()
    read(render(text))
    assert time.process_time() - began < 5


def test_what_is_too_long_is_shown_plain() -> None:
    html = render("*a* " * 300_000)
    assert html.startswith('<pre class="plain">') and "<em>" not in html
    assert code("x = 1\n" * 20_000, "python") == "x = 1\n" * 20_000


def test_a_text_is_read_while_another_thread_begins_to(monkeypatch: pytest.MonkeyPatch) -> None:
    from markdown_it.ruler import Ruler

    begun, over, usual = Event(), Event(), Ruler.__compile__
    first: list[Thread] = []

    def slowly(self: Any) -> None:
        """As the library does it: an empty table of rules first, which is filled afterwards."""
        first.append(current_thread())
        if first[0] is current_thread() and not begun.is_set():
            self.__cache__ = {}
            begun.set()
            assert over.wait(60)
        usual(self)

    monkeypatch.setattr(Ruler, "__compile__", slowly)
    with ThreadPoolExecutor(2) as threads:
        slow = threads.submit(render, "a *word*")
        assert begun.wait(60)
        try:
            quick = threads.submit(render, "- a *word*").result(60)
        finally:
            over.set()
        assert "<li>a <em>word</em></li>" in quick
        assert "<em>word</em>" in slow.result(60)


def test_code_is_coloured_by_one_thread_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    import pygments

    inside: list[Thread] = []
    together: list[int] = []
    usual = pygments.highlight

    def counted(*args: Any) -> str:
        inside.append(current_thread())
        made: str = usual(*args)
        together.append(len(inside))
        inside.remove(current_thread())
        return made

    monkeypatch.setattr(pygments, "highlight", counted)
    text = "x = f'{1}' + 'a'\n" * 1_000
    with ThreadPoolExecutor(4) as threads:
        assert len(set(threads.map(code, [text] * 8, ["python"] * 8))) == 1
    assert together == [1] * 8
