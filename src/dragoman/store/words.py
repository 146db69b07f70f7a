"""The words of what was said: which events have a text, and how a text to search for is read."""

import re
from collections.abc import Iterable

import msgspec

from dragoman.engine.ports import Entry

from .rules import MAX_TERMS

_WORD = re.compile(r"[^\W_]+")
UNLIKE = re.compile(r"[\W_]+")  # what stands between words
_LONGEST = 64  # letters of a word that count


class _Block(msgspec.Struct):
    type: str = ""
    text: str = ""


class _Said(msgspec.Struct):
    content: list[_Block] = []


class _Telling(msgspec.Struct):
    """What any event may hold of texts."""

    content: list[_Block] = []
    messages: list[_Said] = []
    title: str = ""


TELLING = frozenset({"opened", "seeded", "turn_began", "steered", "spoke", "renamed"})
_decode = msgspec.json.Decoder(_Telling).decode


def text_of(entries: Iterable[Entry]) -> str:
    """What people and models said in these entries, and the names that sessions were given."""
    found: list[str] = []
    for entry in entries:
        if entry.kind not in TELLING:
            continue
        try:
            told = _decode(entry.body)
        except (msgspec.DecodeError, UnicodeDecodeError):
            continue  # a damaged row has no words; whoever reads the session is told
        if told.title:
            found.append(told.title)
        for content in (told.content, *(said.content for said in told.messages)):
            found += [block.text for block in content if block.type == "text"]
    return "\n".join(found)


def terms(text: str) -> tuple[str, ...]:
    """The words to look for, as they are compared: no case, no accents."""
    return all_terms(text)[:MAX_TERMS]


def all_terms(text: str) -> tuple[str, ...]:
    """Every word of a text, once."""
    return tuple(dict.fromkeys(word[:_LONGEST] for word in _WORD.findall(plain(text))))


def plain(text: str) -> str:
    """A text without case and accents."""
    from unicodedata import combining, normalize

    apart = normalize("NFKD", text.lower())
    return "".join(letter for letter in apart if not combining(letter))


def has_terms(wanted: tuple[str, ...], text: str) -> bool:
    """Whether each is the beginning of a word of the text."""
    words = _WORD.findall(plain(text))
    return all(any(word.startswith(term) for word in words) for term in wanted)
