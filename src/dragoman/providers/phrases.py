"""What the demo provider understands: plain English requests, as commands."""

import re
from typing import Any

import msgspec


class Command(msgspec.Struct, frozen=True):
    """One thing to do: `tool` with `args`, or, when `tool` is empty, the plain act `verb`."""

    verb: str
    tool: str = ""
    args: dict[str, Any] = {}
    text: str = ""
    number: int = 0


_QUOTED = r'"(?:[^"\\]|\\.)*"|“[^”]*”|`[^`]*`|\'(?:[^\'\\]|\\.)*\''
_WORD = rf"(?:{_QUOTED}|\S+?)"
_SPLIT = re.compile(
    rf"({_QUOTED})|[,;.]?\s+(?:and\s+)?(then|also)\s+|\s*[;.]\s+(?=then\b)", re.IGNORECASE
)
_POLITE = re.compile(
    r"^(?:(?:please|now|first|and|ok|okay|hey|then|also)\b[,:]?\s*"
    r"|(?:can|could|would|will) you (?:please )?|let'?s\s+|i want you to\s+)+",
    re.IGNORECASE,
)
_IN = r"(?:\s+(?:in|under|of|inside)\s+(?:the\s+)?(?:folder\s+|directory\s+)?(?P<path>{word}))?"


def _rule(pattern: str, mark: str = r"[.!?]?") -> re.Pattern[str]:
    """A whole part; `mark` is the punctuation at its end that does not belong to it."""
    filled = pattern.replace("{in}", _IN).replace("{word}", _WORD)
    return re.compile(filled + rf"\s*{mark}$", re.IGNORECASE | re.DOTALL)


_RUN = _rule(
    r"(?:run|execute|exec|bash|shell)\s+(?:the\s+)?(?:command\s+)?[:]?\s*(?P<command>.+?)",
    mark="",
)
_LIST = _rule(
    r"(?:list|ls|dir|what(?:'s| is| files are)|show)\b"
    r"(?:\s+(?:me|all|the|files?|directory|folder|contents?|here|everything|there))*{in}"
)
_LS = _rule(r"ls\s+(?P<path>{word})")
_READ = _rule(
    r"(?:read|open|cat|view|show(?:\s+me)?|print)\s+(?:the\s+)?(?:file\s+)?(?P<path>{word})"
    r"(?:\s+from\s+(?:line\s+)?(?P<offset>\d+))?(?:\s+(?:limit|for)\s+(?P<limit>\d+)(?:\s+lines)?)?"
)
_WRITE = _rule(
    r"(?:write|save|put)\s+(?P<text>.+?)\s+(?:to|into|in)\s+(?:the\s+)?(?:file\s+)?(?P<path>{word})"
)
_CREATE = _rule(
    r"(?:write|create|make)\s+(?:a\s+|the\s+)?(?:file\s+)?(?:named\s+|called\s+)?(?P<path>{word})\s+"
    r"(?:with|containing|saying)\s+(?:the\s+)?(?:text\s+|content\s+)?(?P<text>.+?)"
)
_EDIT = _rule(
    r"(?:edit|change|in)\s+(?:the\s+)?(?:file\s+)?(?P<path>{word})[:,]?\s+(?:and\s+|to\s+)?"
    r"(?:replace|replacing|change)\s+(?P<old>{word})\s+(?:with|by|to|into)\s+(?P<new>{word})"
)
_REPLACE = _rule(
    r"(?:replace|change)\s+(?P<old>{word})\s+(?:with|by|to)\s+(?P<new>{word})\s+in\s+"
    r"(?:the\s+)?(?:file\s+)?(?P<path>{word})"
)
_GREP = _rule(r"(?:search|grep|look)\s+(?:for\s+)?(?:the\s+word\s+)?(?P<pattern>{word}){in}")
_GLOB = _rule(
    r"(?:find|glob)\s+(?:all\s+|the\s+)*(?:files?\s+)?(?:named\s+|matching\s+|like\s+|called\s+)?"
    r"(?P<pattern>{word}){in}"
)
_PLAN = _rule(
    r"(?:(?:make|write|show)\s+(?:me\s+)?(?:a\s+)?)?plan\b\s*(?:for|to|of|:)?\s*(?P<text>.*?)"
)
_ASK = _rule(r"ask\s+(?:me|the user)\b\s*(?:about|for|:|,)?\s*(?P<text>.*?)")
_THINK = _rule(r"(?:think|reflect|reason)\b\s*(?:hard\s+)?(?:about|of|over|on|:)?\s*(?P<text>.*?)")
_COUNT = _rule(r"count\s*(?P<slow>slowly)?\s*(?:up\s+)?to\s+(?P<number>\d+)\s*(?P<late>slowly)?")
_FAIL = _rule(
    r"fail(?:\s+with)?(?:\s+an?)?(?:\s+(?P<kind>auth|rate_limit|overloaded|server|network"
    r"|bad_request|context_full|refused))?(?:\s+error)?"
)
_SAY = _rule(r"(?:say|echo|repeat)\s+(?:after me\s*:?\s*)?(?P<text>.+?)", mark="")
_LONG = _rule(r"long\s+(?P<number>\d+)")

COUNT_LIMIT = 10_000
LONG_LIMIT = 1_000_000
_LINE_LIMIT = 4_000  # longer lines are no commands; it also bounds the matching
_DEFAULT_PLAN = ("look at what is there", "make the change", "check the result")


def parse(text: str) -> list[list[Command]]:
    """The commands of a message in steps: "then" begins a step, "also" joins one.

    Lines without any command are left out; inside a line that has one, a part that is none
    becomes the verb "unknown".
    """
    steps: list[list[Command]] = []
    for line in text.strip().splitlines():
        line = line.strip()
        if line.startswith("$"):
            steps.append([_bash(line[1:].strip())])
            continue
        if not line or len(line) > _LINE_LIMIT:
            continue
        found = [(joiner, _command(part)) for joiner, part in _parts(line)]
        if all(command.verb == "unknown" for _, command in found):
            continue
        for joiner, command in found:
            if joiner == "also" and steps:
                steps[-1].append(command)
            else:
                steps.append([command])
    return steps


def _parts(line: str) -> list[tuple[str, str]]:
    found: list[tuple[str, str]] = []
    start, joiner = 0, "then"
    for match in _SPLIT.finditer(line):
        if match.group(1):
            continue  # quoted: the joiner inside belongs to the text
        found.append((joiner, line[start : match.start()]))
        start, joiner = match.end(), (match.group(2) or "then").lower()
    found.append((joiner, line[start:]))
    return [(word, part.strip()) for word, part in found if part.strip()]


def _command(part: str) -> Command:
    text = _POLITE.sub("", part).strip()
    if text.startswith("$"):
        return _bash(text[1:].strip())
    for rule, build in _RULES:
        match = rule.match(text)
        if match:
            return build(match)
    return Command("unknown", text=text)


def _bash(command: str) -> Command:
    return Command("run", "bash", {"command": command})


def _run(match: re.Match[str]) -> Command:
    return _bash(unquote(match["command"], escapes=False))


def _list(match: re.Match[str]) -> Command:
    return Command("list", "ls", {"path": unquote(match["path"] or ".")})


def _read(match: re.Match[str]) -> Command:
    args: dict[str, Any] = {"path": unquote(match["path"])}
    for key in ("offset", "limit"):
        if match[key]:
            args[key] = int(match[key])
    return Command("read", "read", args)


def _write(match: re.Match[str]) -> Command:
    content = unquote(match["text"])
    return Command("write", "write", {"path": unquote(match["path"]), "content": content})


def _edit(match: re.Match[str]) -> Command:
    edit = {"oldText": unquote(match["old"]), "newText": unquote(match["new"])}
    return Command("edit", "edit", {"path": unquote(match["path"]), "edits": [edit]})


def _search(match: re.Match[str], verb: str, tool: str) -> Command:
    args = {"pattern": unquote(match["pattern"], escapes=False)}
    if match["path"]:
        args["path"] = unquote(match["path"])
    return Command(verb, tool, args)


def _plan(match: re.Match[str]) -> Command:
    items = [item.strip() for item in re.split(r"[,;\n]|\band\b", match["text"]) if item.strip()]
    entries = [
        {"content": item, "priority": "medium", "status": "pending" if n else "in_progress"}
        for n, item in enumerate(items or _DEFAULT_PLAN)
    ]
    return Command("plan", "plan", {"entries": entries})


def _ask(match: re.Match[str]) -> Command:
    question, _, listed = match["text"].partition(":")
    choices = [unquote(word.strip()) for word in re.split(r",|\bor\b", listed) if word.strip()]
    question = unquote(question.strip()) or "What shall I do next"
    args: dict[str, Any] = {"question": question.rstrip("?") + "?"}
    if choices:
        args["choices"] = choices
    return Command("ask", "ask_user", args)


def _count(match: re.Match[str]) -> Command:
    verb = "count slowly" if match["slow"] or match["late"] else "count"
    return Command(verb, number=min(int(match["number"]), COUNT_LIMIT))


def _long(match: re.Match[str]) -> Command:
    return Command("long", number=min(int(match["number"]), LONG_LIMIT))


def unquote(text: str, *, escapes: bool = True) -> str:
    """The text without its quotes; in double quotes \\n and \\t mean what they do in code."""
    text = text.strip()
    if len(text) >= 2 and (text[0], text[-1]) in (('"', '"'), ("'", "'"), ("`", "`"), ("“", "”")):
        inner = text[1:-1]
        if escapes and text[0] == '"':
            inner = re.sub(r"\\(.)", lambda m: {"n": "\n", "t": "\t"}.get(m[1], m[1]), inner)
        return inner
    return text


_RULES = (
    (_RUN, _run),
    (_COUNT, _count),
    (_LONG, _long),
    (_FAIL, lambda m: Command("fail", text=(m["kind"] or "server").lower())),
    (_SAY, lambda m: Command("say", text=unquote(m["text"]))),
    (_THINK, lambda m: Command("think", text=unquote(m["text"]) or "nothing in particular")),
    (_ASK, _ask),
    (_EDIT, _edit),
    (_REPLACE, _edit),
    (_LIST, _list),
    (_LS, _list),
    (_CREATE, _write),
    (_WRITE, _write),
    (_PLAN, _plan),
    (_READ, _read),
    (_GREP, lambda m: _search(m, "search", "grep")),
    (_GLOB, lambda m: _search(m, "find", "glob")),
)
