"""Reading a shell command that is plain enough to be known.

Plain is what `bash` and `dash` read alike whatever is set: words of harmless characters, quotes
without expansion, `&&`, `||`, `;`, newlines, `|`, and redirections to a word. Two readers read it:
tree-sitter's bash grammar and a small one of our own that knows nothing else. Only what both read
as the same programs with the same words is known; everything else is `Unknown`, with the reason.
"""

import re
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

if TYPE_CHECKING:
    from tree_sitter import Node

LONGEST = 16_384
MOST = 64  # programs in one command
_BARE = re.compile(r"[A-Za-z0-9_./:=@%+,^*?~-]+")
_QUOTED = re.compile(r"'([^']*)'")
_DOUBLE = re.compile(r'"((?:[^"\\$`]|\\[A-Za-z0-9.|()+*?{}\[\]^-])*)"')
_REDIRECT = re.compile(r"([0-9]?)(>>|>\||>&|>|<&|<)[ \t]*")
_JOIN = re.compile(r"&&|\|\||;|\||\n")
_BLANK = re.compile(r"[ \t]+")
_DESCRIPTOR = re.compile(r"[0-2]")
_ASSIGNS = re.compile(r"[A-Za-z_][A-Za-z0-9_]*\+?=")
_HARMLESS = re.compile(r"[A-Za-z0-9_./]|--[a-z-]+=")  # how words with patterns may begin
_TILDE = re.compile(r"(?<![A-Za-z0-9])~")
_RESERVED = frozenset(
    "! { } [[ ]] if then elif else fi do done case esac while until for in function select time "
    "coproc".split()
)
_ENDS = ("", " ", "\t", "\n", ";", "|", "&", "<", ">")  # of a word
_MARKS = frozenset({"&&", "||", ";", "|", "\n", ">", ">>", ">|", ">&", "<", "<&"})


class Unknown(Exception):
    """The command is not plain. The text says why, as a sentence for a human."""


class Word(NamedTuple):
    """One word as the program gets it; with `glob`, the pattern that files are looked for with."""

    text: str
    glob: bool = False


class Redirect(NamedTuple):
    """One redirection: to or from a file, or of one descriptor to another."""

    operator: str
    target: str
    copies: bool = False  # 2>&1


class Simple(NamedTuple):
    """One program with its words."""

    words: tuple[Word, ...]
    redirects: tuple[Redirect, ...]
    joined: str  # what stands before it: "", "&&", "||", ";" (also a newline) or "|"

    @property
    def argv(self) -> tuple[str, ...]:
        return tuple(word.text for word in self.words)


def read(command: str) -> list[Simple]:
    """The programs that a command runs, in order. Raises Unknown."""
    if len(command) > LONGEST:
        raise Unknown(f"It is longer than {LONGEST} characters.")
    _characters(command)
    found = _Reader(command).all()
    if len(found) > MOST:
        raise Unknown(f"It runs more than {MOST} programs.")
    seen = _by_grammar(command)
    if seen != [(one.argv, one.redirects) for one in found]:
        raise Unknown("It can be read in more than one way.")
    return found


def _characters(command: str) -> None:
    for char in command:
        if " " <= char <= "~" or char in "\n\t":
            continue
        if char < " " or char == "\x7f":
            raise Unknown(f"It contains the control character {ord(char):#04x}.")
        if not char.isprintable():
            raise Unknown(f"It contains the invisible character U+{ord(char):04X}.")


class _Reader:
    """Our own reader: everything that it has no rule for is unknown."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.at = 0
        self.found: list[Simple] = []
        self.words: list[Word] = []
        self.redirects: list[Redirect] = []
        self.joined = ""

    def all(self) -> list[Simple]:
        while self.at < len(self.text):
            if self._take(_BLANK):
                continue
            if join := self._take(_JOIN):
                self._join(join.group())
            elif redirect := self._take(_REDIRECT):
                self._redirect(redirect)
            else:
                if self.redirects:
                    raise Unknown("Words follow a redirection.")
                self.words.append(self._word())
        self._end()
        if self.joined in ("&&", "||", "|"):
            raise Unknown("It ends in the middle.")
        return self.found

    def _take(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        match = pattern.match(self.text, self.at)
        if match:
            self.at = match.end()
        return match

    def _join(self, mark: str) -> None:
        mark = ";" if mark == "\n" else mark
        if self.words:
            self._end()
            self.joined = mark
        elif mark != ";" or self.redirects or self.text[self.at - 1] == ";":
            raise Unknown("A program is missing.")

    def _end(self) -> None:
        if not self.words:
            if self.redirects:
                raise Unknown("A redirection stands alone.")
            return
        first = self.words[0]
        if first.glob:
            raise Unknown("Which program it runs depends on the files here.")
        self.found.append(Simple(tuple(self.words), tuple(self.redirects), self.joined))
        self.words, self.redirects, self.joined = [], [], ""

    def _redirect(self, match: re.Match[str]) -> None:
        if not self.words:
            raise Unknown("A redirection stands before its program.")
        operator = match.group(2)
        if operator in (">&", "<&"):
            copied = self._take(_DESCRIPTOR)
            after = self.text[self.at : self.at + 1]
            if not copied or (after and after not in " \t\n;|"):
                raise Unknown("A redirection goes to no plain place.")
            self.redirects.append(Redirect(operator, copied.group(), True))
            return
        word = self._word()
        if word.glob or not word.text:
            raise Unknown("A redirection goes to no plain place.")
        self.redirects.append(Redirect(operator, word.text))

    def _word(self) -> Word:
        start = self.at
        pieces: list[str] = []
        glob = False
        bare = True
        while self.at < len(self.text):
            if match := self._take(_BARE):
                piece = match.group()
                glob = glob or "*" in piece or "?" in piece
                if _TILDE.search(piece):
                    raise Unknown("It contains ~, which the shell replaces.")
            elif match := self._take(_QUOTED) or self._take(_DOUBLE):
                bare = False
                piece = match.group(1)
                if "\\" in piece and match.group()[0] == '"' and not piece.isascii():
                    raise Unknown("A backslash follows letters that are not ASCII.")
            else:
                break
            pieces.append(piece)
        if self.at == start or self.text[self.at : self.at + 1] not in _ENDS:
            self._strange()
        text = "".join(pieces)
        if text.isdigit() and self.text[self.at : self.at + 1] in ("<", ">"):
            raise Unknown("A number touches a redirection.")
        if glob and not (bare and _HARMLESS.match(text)):
            raise Unknown("It contains a pattern for file names that may match an option.")
        if not self.words and not self.redirects:
            if bare and text in _RESERVED:
                raise Unknown(f"It uses `{text}` of the shell's own language.")
            if _ASSIGNS.match(text):
                raise Unknown("It sets a variable.")
        return Word(text, glob)

    def _strange(self) -> NoReturn:
        char = self.text[self.at : self.at + 1]
        why = {
            "$": "It contains $, which the shell replaces.",
            "`": "It contains a command substitution.",
            "'": "A quote is not closed.",
            '"': 'It contains $, ` or \\ between double quotes, or " is not closed.',
            "\\": "It contains a backslash outside of quotes.",
            "&": "It leaves something in the background, or sends errors along.",
            "(": "It contains a parenthesis outside of quotes.",
            ")": "It contains a parenthesis outside of quotes.",
            "#": "It contains # outside of quotes.",
            "[": "It contains [ outside of quotes.",
            "{": "It contains a brace outside of quotes.",
            "}": "It contains a brace outside of quotes.",
            "<": "It contains a here-document or a process substitution.",
            ">": "It contains a process substitution.",
            "": "It ends in the middle.",
        }
        raise Unknown(why.get(char, f"It contains {char!r} outside of quotes."))


_parser: Any = None


def _by_grammar(command: str) -> list[tuple[tuple[str, ...], tuple[Redirect, ...]]]:
    """The same by tree-sitter's bash grammar. Raises Unknown."""
    global _parser
    if _parser is None:
        import tree_sitter
        import tree_sitter_bash

        _parser = tree_sitter.Parser(tree_sitter.Language(tree_sitter_bash.language()))
    root = _parser.parse(command.encode()).root_node
    if root.has_error:
        raise Unknown("The shell's grammar does not know it.")
    seen = _Seen(command.encode())
    seen.node(root)
    return [(tuple(words), tuple(redirects)) for words, redirects in seen.found]


class _Seen:
    """What a syntax tree says that is run."""

    def __init__(self, source: bytes) -> None:
        self.source = source
        self.found: list[tuple[list[str], list[Redirect]]] = []

    def node(self, node: "Node") -> None:
        kind = node.type
        if kind == "command":
            self.found.append(([], []))
            for child in node.children:
                if child.type == "file_redirect":
                    raise Unknown("A redirection stands before its program.")
                inner = child.children[0] if child.type == "command_name" else child
                self.found[-1][0].append(self._text(inner))
        elif kind == "redirected_statement":
            for child in node.children:
                if child.type == "file_redirect":
                    if not self.found:
                        raise Unknown("A redirection stands alone.")
                    self.found[-1][1].append(self._redirect(child))
                else:
                    self.node(child)
        elif kind in ("program", "list", "pipeline"):
            for child in node.children:
                self.node(child)
        elif kind not in _MARKS:
            raise Unknown(f"It uses {kind.replace('_', ' ')}.")

    def _raw(self, node: "Node") -> str:
        return self.source[node.start_byte : node.end_byte].decode()

    def _text(self, node: "Node") -> str:
        kind = node.type
        if kind in ("word", "number") and not node.children:
            return self._raw(node)
        if kind == "raw_string":
            return self._raw(node)[1:-1]
        if kind == "string":
            if any(child.type not in ('"', "string_content") for child in node.children):
                raise Unknown("Something between double quotes is replaced by the shell.")
            return self._raw(node)[1:-1]
        if kind == "concatenation":
            return "".join(self._text(child) for child in node.children)
        raise Unknown(f"It uses {kind.replace('_', ' ')}.")

    def _redirect(self, node: "Node") -> Redirect:
        parts = [child for child in node.children if child.type != "file_descriptor"]
        if len(parts) != 2 or parts[0].type not in _MARKS:
            raise Unknown("A redirection goes to no plain place.")
        operator = parts[0].type
        return Redirect(operator, self._text(parts[1]), operator in (">&", "<&"))
