"""Makes text that somebody must judge show all it holds.

A terminal obeys escape sequences, a browser reorders text after a bidirectional override, and both
show nothing for a zero-width character or a tag. What steers a screen, or looks like something
else, is written out here: `<ESC>`, `<CR>`, `<U+202E>`. Every surface that asks a human uses this
module; what runs, and raw inputs on a wire, keep every character.
"""

import re
from functools import cache

_NAMES = (
    "NUL SOH STX ETX EOT ENQ ACK BEL BS TAB LF VT FF CR SO SI DLE DC1 DC2 DC3 DC4 NAK SYN ETB CAN "
    "EM SUB ESC FS GS RS US"
).split()

# What has no shape of its own, or steers what comes after it.
_HIDDEN = (
    "\x00-\x08\x0b-\x1f\x7f-\x9f\xad"  # control characters, soft hyphen
    "\u0334-\u0338\u034f\u20d0-\u20f0"  # what is written over the character before, joiners
    "\u0600-\u0605\u061c\u06dd\u070f\u0890\u0891\u08e2"
    "\u115f\u1160\u17b4\u17b5\u180b-\u180f\u1cbb\u1cbc\u2800\u3164\uffa0"  # fillers, blanks
    "\xa0\u1680\u2000-\u200f\u2028-\u202f\u205f-\u206f\u3000"  # spaces, zero width, bidirectional
    "\ud800-\uf8ff\ufdd0-\ufdef"  # surrogates, private use
    "\ufe00-\ufe0f\ufeff\ufff0-\uffff"
    "\U000110bd\U000110cd\U00013430-\U0001345f\U0001bca0-\U0001bca3\U0001d159\U0001d173-\U0001d17a"
    "\U000e0000-\U0010ffff"  # tags, further selectors, private use
)
# What a shell would not take for what a reader takes it for.
_ALIKE = (
    "\u01c0-\u01c3\u02b9-\u02bf\u02c6-\u02d0\u037e\u0387\u0589\u05c0\u05c3\u05f3\u05f4\u066a"
    "\u06d4\u0701\u0702\u1427\u1735\u1801\u1803\u1806\u2010-\u2012\u2015-\u201f\u2023-\u2027"
    "\u2032-\u2037\u2039-\u203a\u2041\u2043\u2044\u204e\u204f\u2052\u2053\u2055\u2212\u2215-\u2219"
    "\u2223\u2225\u2227\u2236\u223c\u22c5\u2500\u2502\u2571\u2572\u2758\u276f\u27cb\u27cd\u29f5"
    "\u29f8\u29f9\u2a3e\u2cc6\u2e29\u30fb\u3033\u30ce\u31d3\u4e36\u4e3f\ua4ff\ua4fa\ua78c\ua789"
    "\ufe10-\ufe19\ufe4d-\ufe6f\uff01-\uff0f\uff1a-\uff20\uff3b-\uff40\uff5b-\uff65\uffe8"
)
# What steers a terminal, or turns the order of what is around it; all else is somebody's text.
_STEERING = (
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u2028-\u202e\u2066-\u206f\ufff0-\ufffb"
    "\ud800-\udfff\U000e0001]"
)
# Letters that are written from right to left. Signs and numbers between two of them, or after one,
# are drawn in that order, too, and `>` as `<`: a Latin word keeps what is behind it in its place.
_TURNING = "\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc\U00010800-\U00010fff\U0001e800-\U0001efff"
_TURNED = rf"(?<=[{_TURNING}])([^{_TURNING}A-Za-z\n]+)(?=([{_TURNING}])?)"
# What a program writes to colour its output, or to move about on a terminal that it takes it for.
_SEQUENCE = r"\x1b(?:\[[0-?]*[ -/]*[@-~]|\][^\x07\x1b]*(?:\x07|\x1b\\)|[@-Z\\^_])"
_WIDE = r" {64,}|(?: *\t){16,} *"
_EMPTY = r"\n(?:[ \t]*\n){12,}"


@cache
def _hiding(strict: bool) -> "re.Pattern[str]":
    """What is written out; such sets take a while to compile, and most text holds none of it."""
    return re.compile(f"[{_HIDDEN}{_ALIKE if strict else ''}]")


def visible(text: str, *, strict: bool = False) -> str:
    """The text with its lines and tabs, and everything else that hides written out.

    `strict` is for commands and the names of files: signs that look like a shell's are written out
    too, beside themselves, and right-to-left letters that would turn what follows. Long stretches
    of blanks, which push the rest out of sight, are counted.
    """
    if text.isascii() and text.isprintable():
        return re.sub(_WIDE, _spaces, text) if len(text) >= 64 else text
    shown = _hiding(strict).sub(_written, text)
    if strict and not text.isascii():
        shown = re.sub(_TURNED, _turned, shown)
    return re.sub(_EMPTY, _lines, re.sub(_WIDE, _spaces, shown))


def harmless(text: str) -> str:
    """The text of a model or a tool for a terminal, without the power to steer it.

    For reading, not for judging: spaces, joiners and signs of every language stay as they are, and
    a line end of two characters is a line end.
    """
    if text.isprintable():
        return text
    return re.sub(_STEERING, "\N{REPLACEMENT CHARACTER}", text.replace("\r\n", "\n"))


def unpainted(text: str) -> str:
    """Output without its colours, titles and cursors; of what overwrites a line, the last."""
    if text.isprintable():
        return text
    lines = re.sub(_SEQUENCE, "", text.replace("\r\n", "\n")).split("\n")
    return "\n".join(line.rstrip("\r").rpartition("\r")[2] for line in lines)


def on_a_line(text: str) -> str:
    """The same on one line: line feeds and tabs are written out as well."""
    return visible(text, strict=True).replace("\n", "<LF>").replace("\t", "<TAB>")


def brief(text: str, room: int) -> str:
    """The same in at most `room` characters, which say how many more there are."""
    shown = on_a_line(text)
    if len(shown) <= room:
        return shown
    # The count takes room as well: that of the largest it can be.
    kept = max(room - len(f"… ({many(len(shown), 'more character')})"), 0)
    return f"{shown[:kept]}… ({many(len(shown) - kept, 'more character')})"


def _written(match: "re.Match[str]") -> str:
    code = ord(match[0])
    if code < 0x20:
        return f"<{_NAMES[code]}>"
    if code == 0x7F:
        return "<DEL>"
    hidden = _hiding(False).match(match[0]) is not None
    return f"<U+{code:04X}>" if hidden else f"{match[0]}<U+{code:04X}>"


def _turned(match: "re.Match[str]") -> str:
    signs = match[2] is not None and re.search(r"[!-/:-@\[-`{-~]", match[1])
    return f"<RTL>{match[1]}" if signs or re.search("[0-9]", match[1]) else match[1]


def _spaces(match: "re.Match[str]") -> str:
    tabs = match[0].count("\t")
    return f" <{len(match[0])} {f'spaces, {tabs} of them tabs' if tabs else 'spaces'}> "


def _lines(match: "re.Match[str]") -> str:
    return f"\n<{match[0].count(chr(10)) - 1} empty lines>\n"


def many(count: int, noun: str, plural: str = "") -> str:
    """So many of something: "1 line", "1,200 lines", "2 processes" (whose plural is given)."""
    return f"{count:,} {noun if count == 1 else plural or f'{noun}s'}"


def noted(title: str, text: str) -> str:
    """A note in words; its title is left out where the text says it, too."""
    if not text or title.lower() in text.partition("\n")[0].lower():
        return text or title
    return f"{title}{' ' if title.endswith(('.', ':', '!', '?')) else ': '}{text}".strip()
