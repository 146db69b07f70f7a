"""Reading a shell command: every simple command in it, however it is wrapped.

This is a reader for judging, not an interpreter. It follows POSIX sh quoting, lists, pipes,
subshells, substitutions, here-documents and redirections (and what bash adds that hides commands:
`$'...'`, `<(...)`, `[[`). What it cannot follow raises `Unreadable`; the caller assumes the worst.
"""

import re
from dataclasses import dataclass, field

from .quoting import Unreadable, arithmetic, matching

MAX_LENGTH = 65_536
MAX_DEPTH = 16
_OPERATORS = ("&&", "||", ";;&", ";;", ";&", "|&", ";", "|", "&", "(", ")", "\n")
_REDIRECT = re.compile(r"(\d*|\{\w+\})(<<<|<<-|<<|<>|<&|>&|&>>|&>|>>|>\||<|>)")
_ASSIGNMENT = re.compile(r"[A-Za-z_]\w*(\[[^]]*\])?\+?=")
_BLANK = " \t\r"
_ENDS_WORD = " \t\r\n;|&()<>"
_OPENERS = {"if", "then", "elif", "else", "while", "until", "do", "{", "!", "time", "coproc"}
_CLOSERS = {"fi", "done", "esac", "}"}
_ESCAPES = dict(zip("ntrabfve", "\n\t\r\a\b\f\v\x1b", strict=True))
_CODE_POINT = re.compile(r"x([0-9a-fA-F]{1,2})|u([0-9a-fA-F]{1,4})|U([0-9a-fA-F]{1,8})")


@dataclass(slots=True)
class Word:
    """One word after quote removal. `dynamic`: a part of it is only known when the shell runs."""

    text: str
    dynamic: bool = False
    quoted: bool = False


@dataclass(slots=True)
class Redirect:
    operator: str
    target: Word


@dataclass(slots=True)
class Simple:
    """One simple command: `VAR=x name args >file`."""

    words: list[Word] = field(default_factory=list)
    assignments: list[Word] = field(default_factory=list)
    redirects: list[Redirect] = field(default_factory=list)
    piped: bool = False  # its standard input is another command's output
    background: bool = False


def read(command: str, depth: int = 0) -> list[Simple]:
    """All simple commands of a command line, those in substitutions and subshells included."""
    if len(command) > MAX_LENGTH:
        raise Unreadable(f"it is longer than {MAX_LENGTH} characters")
    if depth > MAX_DEPTH:
        raise Unreadable("it is nested too deeply")
    if "\0" in command:
        raise Unreadable("it contains a NUL character")
    return _Reader(command, depth).all()


class _Reader:
    def __init__(self, text: str, depth: int) -> None:
        self.text = text
        self.at = 0
        self.depth = depth
        self.found: list[Simple] = []
        self.current = Simple()
        self.heredocs: list[tuple[str, bool, bool]] = []  # delimiter, expands, strips tabs
        self.parens = 0
        self.cases = 0

    def all(self) -> list[Simple]:
        while self.at < len(self.text):
            self._one()
        self._close("")
        if self.parens:
            raise Unreadable("a parenthesis is not closed")
        return self.found

    def _one(self) -> None:
        text, at = self.text, self.at
        char = text[at]
        if char in _BLANK:
            self.at += 1
        elif text.startswith("\\\n", at):
            self.at += 2
        elif char == "#":
            end = text.find("\n", at)
            self.at = len(text) if end < 0 else end
        elif text.startswith(("<(", ">("), at):
            self._word()
        elif match := _REDIRECT.match(text, at):
            self._redirect(match)
        elif operator := next((o for o in _OPERATORS if text.startswith(o, at)), ""):
            self.at += len(operator)
            self._operator(operator)
        else:
            self._word()

    def _operator(self, operator: str) -> None:
        if operator == "(" and self.current.words:
            # `name()` defines a function: its body is read like everything else.
            rest = self.text[self.at :].lstrip(_BLANK)
            if not rest.startswith(")") or len(self.current.words) > 2:
                raise Unreadable("a parenthesis is where no parenthesis can be")
            self.at = self.text.index(")", self.at) + 1
            self.current.words.insert(0, Word("function"))
            self._close(operator)
            return
        if operator == "(":
            self.parens += 1
        elif operator == ")":
            if self.parens == 0 and self.cases == 0:
                raise Unreadable("a parenthesis is closed that was not opened")
            if self.parens:
                self.parens -= 1
            else:  # the pattern of a `case` branch is no command
                self.current = Simple()
        self._close(operator)
        if operator == "\n":
            for heredoc in self.heredocs:
                self._heredoc(*heredoc)
            self.heredocs.clear()

    def _close(self, operator: str) -> None:
        """End the current simple command."""
        simple = self.current
        simple.background = operator == "&"
        self.current = Simple(piped=operator in ("|", "|&"))
        if simple.words or simple.assignments or simple.redirects:
            self.found.append(simple)
        elif simple.piped and not self.current.piped and operator in ("(", "\n"):
            self.current.piped = True  # `a | ( b )`

    def _redirect(self, match: re.Match[str]) -> None:
        operator = match.group(2)
        self.at = match.end()
        while self.at < len(self.text) and self.text[self.at] in _BLANK:
            self.at += 1
        start = self.at
        target = self._scan()
        if self.at == start:
            raise Unreadable("a redirection has no target")
        if operator in ("<<", "<<-"):
            self.heredocs.append((target.text, not target.quoted, operator == "<<-"))
        self.current.redirects.append(Redirect(operator, target))

    def _heredoc(self, delimiter: str, expands: bool, strips: bool) -> None:
        start = self.at
        while True:
            if self.at >= len(self.text):
                end = len(self.text)
                break
            line_end = self.text.find("\n", self.at)
            line_end = len(self.text) if line_end < 0 else line_end
            line = self.text[self.at : line_end]
            if (line.lstrip("\t") if strips else line) == delimiter:
                end = self.at
                self.at = min(line_end + 1, len(self.text))
                break
            self.at = line_end + 1
        body = self.text[start:end]
        if expands and ("$(" in body or "`" in body):
            inner = _Reader(body, self.depth)
            inner.quoted_body()
            self.found.extend(inner.found)

    def quoted_body(self) -> None:
        """Read the text as the inside of double quotes, for its substitutions only."""
        while self.at < len(self.text):
            char = self.text[self.at]
            if char == "\\":
                self.at += 2
            elif char in "$`":
                self._expansion()
            else:
                self.at += 1

    def _word(self) -> None:
        start = self.at
        word = self._scan()
        if self.at == start:
            raise Unreadable(f"unexpected {self.text[start]!r}")
        words = self.current.words
        if not words and not word.quoted:
            if word.text in _OPENERS:
                if word.text == "time":
                    words.append(word)
                return
            if word.text in _CLOSERS:
                self.cases -= word.text == "esac" and self.cases > 0
                return
            if _ASSIGNMENT.match(self.text, start):
                self.current.assignments.append(word)
                return
        if [w.text for w in words[:1]] == ["case"] and word.text == "in" and not word.quoted:
            self.cases += 1
            self.current = Simple()
            return
        if words and words[0].text in ("for", "select") and word.text == "in":
            words[0] = Word("for")
        words.append(word)

    # --- one word ----------------------------------------------------------------------------

    def _scan(self) -> Word:
        out: list[str] = []
        word = Word("")
        text = self.text
        while self.at < len(text):
            char = text[self.at]
            if text.startswith(("<(", ">("), self.at):
                self.at += 1
                self._parenthesis()
                word.dynamic = True
            elif char in _ENDS_WORD:
                break
            elif char == "\\":
                if text.startswith("\\\n", self.at):
                    self.at += 2
                    continue
                out.append(text[self.at + 1 : self.at + 2])
                word.quoted = True
                self.at += 2
            elif char == "'":
                out.append(self._single())
                word.quoted = True
            elif char == '"':
                self._double(out, word)
            elif text.startswith("$'", self.at):
                self.at += 1
                out.append(self._ansi())
                word.quoted = True
            elif text.startswith('$"', self.at):
                self.at += 1
            elif char in "$`":
                out.append(self._expansion())
                word.dynamic = True
            else:
                out.append(char)
                self.at += 1
        word.text = "".join(out)
        return word

    def _single(self) -> str:
        end = self.text.find("'", self.at + 1)
        if end < 0:
            raise Unreadable("a quote is not closed")
        inside = self.text[self.at + 1 : end]
        self.at = end + 1
        return inside

    def _double(self, out: list[str], word: Word) -> None:
        word.quoted = True
        self.at += 1
        while self.at < len(self.text):
            char = self.text[self.at]
            if char == '"':
                self.at += 1
                return
            if char == "\\" and self.text[self.at + 1 : self.at + 2] in ("$", "`", '"', "\\", "\n"):
                out.append(self.text[self.at + 1].replace("\n", ""))
                self.at += 2
            elif char in "$`":
                out.append(self._expansion())
                word.dynamic = True
            else:
                out.append(char)
                self.at += 1
        raise Unreadable("a quote is not closed")

    def _ansi(self) -> str:
        """`$'...'`, in which \\x72\\x6d is `rm`."""
        out: list[str] = []
        self.at += 1
        while self.at < len(self.text):
            char = self.text[self.at]
            if char == "'":
                self.at += 1
                return "".join(out)
            if char != "\\":
                out.append(char)
                self.at += 1
                continue
            rest = self.text[self.at + 1 :]
            if match := _CODE_POINT.match(rest):
                number = int(match.group(match.lastindex or 1), 16)
                if number > 0x10FFFF:
                    raise Unreadable("an escape is no character")
                out.append(chr(number))
                self.at += 1 + match.end()
            elif match := re.match(r"[0-7]{1,3}", rest):
                out.append(chr(int(match.group(), 8)))
                self.at += 1 + match.end()
            elif match := re.match(r"c(.)", rest):
                self.at += 3
            else:
                out.append(_ESCAPES.get(rest[:1], rest[:1]))
                self.at += 2
        raise Unreadable("a quote is not closed")

    def _expansion(self) -> str:
        """`$x`, `${...}`, `$(...)`, `$((...))` or backticks; returns how it was written."""
        text, start = self.text, self.at
        if text[start] == "`":
            self.at += 1
            inner: list[str] = []
            while self.at < len(text) and text[self.at] != "`":
                if text[self.at] == "\\" and text[self.at + 1 : self.at + 2] in ("`", "\\", "$"):
                    self.at += 1
                inner.append(text[self.at : self.at + 1])
                self.at += 1
            if self.at >= len(text):
                raise Unreadable("a backtick is not closed")
            self.at += 1
            self.found.extend(read("".join(inner), self.depth + 1))
        elif text.startswith("$((", start) and (end := arithmetic(text, start)):
            inside = _Reader(text[start + 3 : end - 2], self.depth)
            inside.quoted_body()
            self.found.extend(inside.found)
            self.at = end
        elif text.startswith("$(", start):
            self.at += 1
            self._parenthesis()
        elif text.startswith("${", start):
            self._braces()
        elif match := re.match(r"\$(\w+|[@*#?$!-])", text[start:]):
            self.at += match.end()
        else:
            self.at += 1
        return text[start : self.at]

    def _braces(self) -> None:
        self.at += 2
        quoted = False
        while self.at < len(self.text):
            char = self.text[self.at]
            if char == "}" and not quoted:
                self.at += 1
                return
            if char == "\\":
                self.at += 2
            elif char == "'" and not quoted:
                self._single()
            elif char == '"':
                quoted = not quoted
                self.at += 1
            elif char in "$`":
                self._expansion()
            else:
                self.at += 1
        raise Unreadable("a brace is not closed")

    def _parenthesis(self) -> None:
        """`(...)` at the cursor: read what is inside and go behind it."""
        end = matching(self.text, self.at)
        self.found.extend(read(self.text[self.at + 1 : end], self.depth + 1))
        self.at = end + 1
