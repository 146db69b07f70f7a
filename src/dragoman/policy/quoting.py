"""Where parentheses in a shell command end, with quotes respected."""


class Unreadable(Exception):
    """The command is too long, too deep or not well-formed."""


def arithmetic(text: str, start: int) -> int:
    """Where `$((...))` ends, 0 when it is a command substitution that begins with a subshell."""
    level = 0
    for at in range(start + 1, len(text)):
        if text[at] == "(":
            level += 1
        elif text[at] == ")":
            level -= 1
            if level == 1:
                return at + 2 if text[at + 1 : at + 2] == ")" else 0
    return 0


def matching(text: str, start: int) -> int:
    """The index of the parenthesis that closes the one at `start`, quotes respected."""
    level = 0
    at = start
    while at < len(text):
        char = text[at]
        if char == "\\":
            at += 1
        elif char == "'":
            at = text.find("'", at + 1)
            if at < 0:
                break
        elif char == '"':
            at = _after_double(text, at)
            if at < 0:
                break
        elif char == "(":
            level += 1
        elif char == ")":
            level -= 1
            if level == 0:
                return at
        elif char == "#" and text[at - 1] in " \t\n;(":
            end = text.find("\n", at)
            at = len(text) if end < 0 else end
        at += 1
    raise Unreadable("a parenthesis is not closed")


def _after_double(text: str, start: int) -> int:
    """The index of the quote that closes the one at `start`, or -1."""
    at = start + 1
    while at < len(text):
        if text[at] == "\\":
            at += 1
        elif text[at] == '"':
            return at
        elif text.startswith("$(", at):
            at = matching(text, at + 1)
        at += 1
    return -1
