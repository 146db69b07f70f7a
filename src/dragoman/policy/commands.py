"""How dangerous a shell command is: low, medium or high, by its worst part.

This guides questions to a human; it is no wall. A program that looks harmless can do harm, and what
holds whatever is typed is the sandbox.
"""

import fnmatch
import os
import re
from collections.abc import Iterable, Sequence
from typing import Literal

import msgspec

from .quoting import Unreadable
from .risks import (
    DANGEROUS,
    DANGEROUS_PREFIXES,
    GIT_SAFE,
    INTERPRETERS,
    LOADERS,
    SAFE,
    SHELLS,
    TELLTALES,
    WRAPPERS,
)
from .shell import MAX_DEPTH, Redirect, Simple, Word, read

Risk = Literal["low", "medium", "high"]
_RANK: dict[str, int] = {"low": 0, "medium": 1, "high": 2}
_BIN = frozenset(
    {"/bin", "/usr/bin", "/usr/local/bin", "/sbin", "/usr/sbin", "/usr/local/sbin"}
    | {"/opt/homebrew/bin"}
)
_QUIET = re.compile(r"/dev/(null|stdin|stdout|stderr|fd/\d+)$")
_GLOB = re.compile(r"[*?\[]")
_SED_RUNS = re.compile(r"(^|[;{}\n!$/\d])\s*e(\s|$)|[|/#,][gpiImM\d]*e[gpiImM\d]*\s*($|[;}\n])")
_SED_WRITES = re.compile(r"(^|[;{}\n!$/\d])\s*[wW]\s*\S|[|/#,][gpiImM\d]*w\s+\S")
_AWK_RUNS = re.compile(r"system\s*\(|\|\s*getline|\|\s*\"|\|&|@load")
_AWK_WRITES = re.compile(r"print[^\n;}]*>")


class Part(msgspec.Struct, frozen=True):
    """One program that the command runs."""

    name: str  # without its directory
    line: str  # all its words
    risk: Risk
    reason: str
    plain: bool  # called by its bare name, or from a directory of the system
    words: tuple[str, ...] = ()  # everything that may name a file


class Assessment(msgspec.Struct, frozen=True):
    """What is known about a whole command line."""

    risk: Risk
    reason: str
    parts: tuple[Part, ...]
    certain: bool = True  # False: some program's name is only known when it runs


def assess(command: str) -> Assessment:
    """The risk of a command line and the programs in it."""
    found = _Assessor()
    try:
        for simple in read(command):
            found.simple(simple, 0)
    except Unreadable as error:
        found.certain = False
        found.add("?", [], "high", f"The command cannot be read: {error}.")
    if not found.parts:
        found.add("", [], "low", "It does nothing.")
    if found.forks():
        found.add("?", [], "high", "A function starts itself again and again.")
    worst = max(found.parts, key=lambda part: _RANK[part.risk])
    return Assessment(worst.risk, worst.reason, tuple(found.parts), found.certain)


def matches(part: Part, patterns: Iterable[str], *, strict: bool) -> str:
    """The first pattern that names this program, or its whole line; empty when none does.

    `strict` (for lists that permit) wants the system's own program: `./git` is not `git`.
    """
    for pattern in patterns:
        if pattern == "*":
            return pattern
        if strict and not part.plain and not pattern.startswith((".", "/", "~")):
            continue
        if fnmatch.fnmatchcase(part.name, pattern) or fnmatch.fnmatchcase(part.line, pattern):
            return pattern
        if " " in pattern and fnmatch.fnmatchcase(f"{part.line} ", pattern):
            return pattern  # `git status *` is also plain `git status`
    return ""


class _Assessor:
    def __init__(self) -> None:
        self.parts: list[Part] = []
        self.certain = True
        self.functions: set[str] = set()

    def add(
        self, name: str, words: Sequence[Word], risk: Risk, reason: str, plain: bool = True
    ) -> None:
        line = " ".join(word.text for word in words)
        self.parts.append(Part(name, line, risk, reason, plain, tuple(w.text for w in words)))

    def forks(self) -> bool:
        """A function that is piped into or put behind itself: the classic fork bomb."""
        return any([part.name for part in self.parts].count(name) >= 3 for name in self.functions)

    def simple(self, simple: Simple, depth: int) -> None:
        if depth > MAX_DEPTH:
            raise Unreadable("it is nested too deeply")
        for word in simple.assignments:
            self._assignment(word)
        for redirect in simple.redirects:
            self._redirect(redirect)
        if simple.background:
            self.add("&", [], "medium", "It goes on in the background.")
        if simple.words:
            stdin = simple.piped or any(r.operator.startswith("<") for r in simple.redirects)
            self._program(simple.words, stdin, depth)

    def _assignment(self, word: Word) -> None:
        name, _, value = word.text.partition("=")
        name = name.rstrip("+").partition("[")[0]
        hidden = name in LOADERS or name.startswith(("LD_", "DYLD_", "GIT_CONFIG"))
        risk: Risk = "high" if hidden else "low"
        reason = f"{name} changes which code runs." if hidden else ""
        self.parts.append(Part("=", word.text, risk, reason, True, (value,)))

    def _redirect(self, redirect: Redirect) -> None:
        operator, target = redirect.operator, redirect.target
        if operator in ("<<", "<<-", "<<<") or _QUIET.match(target.text):
            return
        if operator in (">&", "<&") and re.fullmatch(r"\d+-?|-", target.text):
            return
        risk: Risk = "low" if operator == "<" else "medium"
        reason = "" if operator == "<" else f"It writes to {target.text}."
        if target.text.startswith("/dev/"):
            risk, reason = "high", f"It opens {target.text}."
        name = "<" if operator == "<" else ">"
        self.parts.append(Part(name, f"{name} {target.text}", risk, reason, True, (target.text,)))

    def _program(self, words: list[Word], stdin: bool, depth: int) -> None:
        first = words[0]
        name = os.path.basename(first.text.rstrip("/")) or first.text
        computed = _GLOB.search(first.text) and first.text not in ("[", "[[")
        if first.dynamic or computed or (first.text.startswith("{") and "," in first.text):
            self.certain = False
            self.add(name, words, "high", "Which program it runs is only known when it runs.")
            return
        directory = os.path.dirname(first.text)
        plain = not directory or directory in _BIN
        risk, reason = _grade(name, words, plain)
        self.add(name, words, risk, reason, plain)
        if name == "function" and len(words) > 1:
            self.functions.add(words[1].text)
        self._inside(name, words, stdin, depth + 1)

    def _inside(self, name: str, words: list[Word], stdin: bool, depth: int) -> None:
        """What the program runs in turn."""
        if depth > MAX_DEPTH:
            raise Unreadable("it is nested too deeply")
        if name in SHELLS:
            self._shell(name, words, stdin, depth)
        elif name in ("eval", "trap", "watch"):
            code = words[1:2] if name == "trap" else words[1:]
            if name == "watch":
                code = _behind(words, *WRAPPERS["watch"])
            self._code(code, depth)
        elif name == "alias":
            for word in words[1:]:
                self._code([Word(word.text.partition("=")[2], word.dynamic)], depth)
        elif name in ("export", "readonly", "declare", "typeset", "local"):
            for word in words[1:]:
                if "=" in word.text:
                    self._assignment(word)
        elif name == "find":
            self._find(words, stdin, depth)
        elif name == "su" or (name == "runuser" and "-c" in [w.text for w in words]):
            texts = [word.text for word in words]
            at = next((i for i, t in enumerate(texts) if t in ("-c", "--command")), len(texts))
            self._code(words[at + 1 : at + 2], depth)
        elif name in WRAPPERS:
            inner = _behind(words, *WRAPPERS[name])
            if name == "env":
                inner = self._env(words, inner, depth)
            if name == "flock" and inner[:1] and inner[0].text == "-c":
                self._code(inner[1:2], depth)
            elif inner:
                self._program(inner, stdin or name == "xargs", depth)
        else:
            self._interpreter(name, words, stdin)

    def _shell(self, name: str, words: list[Word], stdin: bool, depth: int) -> None:
        at = 1
        runs_code = False
        while at < len(words) and words[at].text.startswith(("-", "+")):
            text = words[at].text
            if text in ("-o", "+o", "-O", "+O", "--rcfile", "--init-file"):
                at += 1
            elif not text.startswith("--") and "c" in text:
                runs_code = True
            at += 1
            if text == "--":
                break
        rest = words[at:]
        if runs_code:
            self._code(rest[:1], depth)
        elif rest:
            self.add(name, words, "medium", f"It runs the script {rest[0].text}.")
        elif stdin:
            self.certain = False
            self.add(name, words, "high", f"{name} runs whatever it is fed.")

    def _code(self, words: Sequence[Word], depth: int) -> None:
        if any(word.dynamic for word in words):
            self.certain = False
            self.add("?", words, "high", "It runs text that is only known when it runs.")
        for simple in read(" ".join(word.text for word in words), depth):
            self.simple(simple, depth)

    def _env(self, words: list[Word], inner: list[Word], depth: int) -> list[Word]:
        for at, word in enumerate(words[1:], 1):
            if word.text in ("-S", "--split-string"):
                self._code(words[at + 1 :], depth)
                return []
            if word.text.startswith(("-S", "--split-string=")):
                code = word.text.partition("=")[2] if word.text[1] == "-" else word.text[2:]
                self._code([Word(code, word.dynamic), *words[at + 1 :]], depth)
                return []
        while inner and "=" in inner[0].text and not inner[0].text.startswith("="):
            self._assignment(inner[0])
            inner = inner[1:]
        return inner

    def _find(self, words: list[Word], stdin: bool, depth: int) -> None:
        at = 1
        while at < len(words):
            if words[at].text in ("-exec", "-execdir", "-ok", "-okdir"):
                end = at + 1
                while end < len(words) and words[end].text not in (";", "+"):
                    end += 1
                if words[at + 1 : end]:
                    self._program(words[at + 1 : end], stdin, depth)
                at = end
            at += 1

    def _interpreter(self, name: str, words: list[Word], stdin: bool) -> None:
        family = re.sub(r"[\d.]+$", "", name)
        options = INTERPRETERS.get(name, INTERPRETERS.get(family))
        if options is None:
            return
        operands = [word.text for word in words[1:]]
        inline = any(
            text == option or (len(option) == 2 and re.match(rf"-\w*{option[1]}", text))
            for text in _leading_options(operands)
            for option in options
        )
        if inline:
            self.add(name, words, "high", f"It runs {name} code given on the command line.")
        elif stdin and all(text.startswith("-") for text in operands):
            self.certain = False
            self.add(name, words, "high", f"{name} runs whatever it is fed.")


def _leading_options(operands: Sequence[str]) -> list[str]:
    """The options before a script's name (and a subcommand such as `deno eval`)."""
    taken: list[str] = []
    for text in operands:
        taken.append(text)
        if not text.startswith("-"):
            break
    return taken


def _behind(words: list[Word], valued: frozenset[str], operands: int) -> list[Word]:
    """What follows a wrapper's own options and operands."""
    at = 1
    while at < len(words) and words[at].text.startswith("-"):
        text = words[at].text
        at += 1
        if text == "--":
            break
        if text in valued:
            at += 1
    return words[at + operands :]


def _grade(name: str, words: Sequence[Word], plain: bool) -> tuple[Risk, str]:
    """The risk of one program with its options, without what it runs in turn."""
    if name in DANGEROUS or name.startswith(DANGEROUS_PREFIXES):
        return "high", f"{name} can do lasting harm."
    texts = [word.text for word in words[1:]]
    risk: Risk = "medium"
    reason = f"{name} may change something."
    if not plain:
        return "medium", f"It runs the program {words[0].text}."
    if name == "git":
        risk, reason = _git(texts)
    elif name in SAFE or (name in WRAPPERS and name not in DANGEROUS) or name in SHELLS:
        risk, reason = "low", ""
    if any(text in ("--version", "--help") for text in texts) and len(texts) == 1:
        return "low", ""
    for option, level, why in _telltales(name):
        if _RANK[level] > _RANK[risk] and any(_is_option(text, option) for text in texts):
            risk, reason = level, f"{name} {option} {why}."
    if name == "sed" and any(_SED_RUNS.search(text) for text in texts):
        return "high", "A sed script can run programs."
    if name == "sed" and risk == "low" and any(_SED_WRITES.search(text) for text in texts):
        return "medium", "A sed script can write files."
    if name in ("awk", "gawk", "mawk", "nawk"):
        if any(_AWK_RUNS.search(text) for text in texts):
            return "high", "An awk program can run programs."
        if risk == "low" and any(_AWK_WRITES.search(text) for text in texts):
            return "medium", "An awk program can write files."
    if name == "uniq" and len([t for t in texts if not t.startswith("-")]) > 1:
        return "medium", "uniq writes its second file."
    if name == "hostname" and any(not t.startswith("-") for t in texts):
        return "high", "It changes the name of the machine."
    return risk, reason


def _telltales(name: str) -> Iterable[tuple[str, Risk, str]]:
    name = {"gawk": "awk", "mawk": "awk", "nawk": "awk", "bsdtar": "tar"}.get(name, name)
    return TELLTALES.get(name, ())  # type: ignore[return-value]


def _is_option(text: str, option: str) -> bool:
    if text == option or text.startswith(option.rstrip("=") + "="):
        return True
    short = len(option) == 2 and option[0] == "-"
    return short and not text.startswith("--") and text.startswith("-") and option[1] in text[1:]


def _git(texts: Sequence[str]) -> tuple[Risk, str]:
    at = 0
    while at < len(texts) and texts[at].startswith("-"):
        at += 2 if texts[at] in ("-C", "-c", "--git-dir", "--work-tree", "--namespace") else 1
    verb = texts[at] if at < len(texts) else "help"
    rest = texts[at + 1 :]
    if verb in GIT_SAFE:
        return "low", ""
    listing = ("--list", "-l", "-v", "-vv", "-a", "-r", "--show-current", "list", "show", "--get")
    if verb in ("branch", "tag", "remote", "stash", "config") and (rest or verb != "stash"):
        if all(text in listing for text in rest[:1]) and not (verb == "config" and not rest):
            return "low", ""
    if verb == "clean" or (verb == "reset" and "--hard" in rest):
        return "high", f"git {verb} throws work away."
    if verb == "push" and any(text.startswith(("-f", "--force", "+", "--mirror")) for text in rest):
        return "high", "git push --force overwrites what others have."
    if verb == "config" and any("alias" in t or "command" in t.lower() for t in rest):
        return "high", "git config can set programs to run."
    return "medium", f"git {verb} changes the repository."
