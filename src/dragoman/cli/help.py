"""Help texts, made from the table."""

from dragoman import TYPE_CHECKING

from .parse import Arg, Command, Flag

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

ABOUT = "dragoman: one local agent host that speaks every agent protocol"
_GAP = 2
_WIDTH = 100


def overview(commands: "Sequence[Command]") -> str:
    """The text of `dragoman --help`."""
    alone = "dragoman alone, in a terminal, is a conversation in the folder you are in"
    lines = [ABOUT, "", "Usage: dragoman COMMAND [ARGUMENTS]", f"       {alone}", ""]
    width = max(13, *(len(command.name) for command in commands)) + _GAP
    groups: dict[str, list[Command]] = {}
    for command in commands:
        groups.setdefault(command.group, []).append(command)
    for group, members in groups.items():
        lines.append(f"{group}:")
        lines += (f"  {one.name:<{width}}{one.help}" for one in members)
        lines.append("")
    lines += [
        "Flags:",
        f"  {'-h, --help':<{width}}this text; `dragoman COMMAND --help` for one command",
        f"  {'-V, --version':<{width}}the version",
        "",
        'Example: dragoman run "what is dragoman"',
    ]
    return "\n".join(lines)


def of(command: Command) -> str:
    """The text of `dragoman COMMAND --help`."""
    flags = command.all_flags()
    usage = f"dragoman {command.full_name}"
    if command.subs:
        names = "|".join(sub.name for sub in command.subs)
        usage += f" [{names}]" if len(names) < 70 else " [SUB-COMMAND]"
    else:
        usage += "".join(f" {arg.shown}" for arg in command.args)
    if flags:
        usage += " [FLAGS]"
    lines = [f"Usage: {usage}", "", _sentence(command.help)]
    if command.text:
        lines += ["", command.text]
    if command.subs:
        lines += ["", "Sub-commands:", *_pairs((sub.name, sub.help) for sub in command.subs)]
        if command.default:
            lines.append(f"  (without one: {command.default})")
    if command.args:
        lines += ["", "Arguments:", *_pairs(map(_arg_row, command.args))]
    lines += ["", "Flags:", *_pairs([*map(_flag_row, flags), ("-h, --help", "this text")])]
    lines += ["", f"Example: {command.example}"]
    return "\n".join(lines)


def _sentence(text: str) -> str:
    text = text[:1].upper() + text[1:]
    return text if text.endswith(".") else f"{text}."


def _arg_row(arg: Arg) -> tuple[str, str]:
    return arg.shown, arg.described


def _flag_row(flag: Flag) -> tuple[str, str]:
    names = f"-{flag.short}, --{flag.name}" if flag.short else f"--{flag.name}"
    if flag.takes_value:
        names += f" {flag.metavar}"
    extra = f" ({', '.join(flag.choices)})" if flag.choices else ""
    if flag.default not in (None, False, ""):
        extra += f" [default {flag.default}]"
    if flag.many:
        extra += " (may be repeated)"
    return names, flag.help + extra


def _pairs(rows: "Iterable[tuple[str, str]]") -> list[str]:
    rows = list(rows)
    width = min(max(len(left) for left, _ in rows) + _GAP, 34)
    lines = []
    for left, right in rows:
        first, *more = _wrap(right, _WIDTH - width - 2)
        if len(left) + 1 > width:
            lines.append(f"  {left}")
            left = ""
        lines.append(f"  {left:<{width}}{first}")
        lines += (f"  {'':<{width}}{line}" for line in more)
    return lines


def _wrap(text: str, width: int) -> list[str]:
    lines = [""]
    for word in text.split():
        if lines[-1] and len(lines[-1]) + 1 + len(word) > width:
            lines.append(word)
        else:
            lines[-1] = f"{lines[-1]} {word}".strip()
    return lines
