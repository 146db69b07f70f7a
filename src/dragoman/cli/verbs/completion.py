"""`dragoman completion bash|zsh|fish`: a completion script made from the table."""

from collections.abc import Iterator

from .. import say, table
from ..parse import Args, Command, Flag


def run(args: Args) -> int:
    """Print the script for one shell."""
    commands = table.commands()
    script = {"bash": bash, "zsh": zsh, "fish": fish}[args.shell](commands)
    say.out(script)
    return 0


def walk(commands: tuple[Command, ...]) -> Iterator[Command]:
    """Every command, each before its sub-commands."""
    for command in commands:
        yield command
        yield from walk(command.subs)


def _words(command: Command) -> list[str]:
    """What may follow a command's name."""
    words = [sub.name for sub in command.subs]
    for arg in command.args:
        words += arg.choices
    if command.default:
        default = command.sub(command.default)
        words += [f"--{flag.name}" for flag in default.flags] if default else []
    words += [f"--{flag.name}" for flag in command.all_flags()]
    return [*words, "--help"]


def _top(commands: tuple[Command, ...]) -> list[str]:
    return [*(command.name for command in commands), "help", "--help", "--version"]


def _places(commands: tuple[Command, ...], variable: str) -> Iterator[str]:
    """For each word of a command, where one is after it."""
    for command in walk(commands):
        above = f" {command.parent.full_name}" if command.parent else ""
        yield f'      "{above} {command.name}") {variable}=" {command.full_name}" ;;'


def _values(commands: tuple[Command, ...], one_of: str, path: str) -> Iterator[str]:
    """What may follow a flag, over all commands: one of some words, or a path."""
    flags = [flag for command in walk(commands) for flag in command.flags]
    for name, choices in {flag.name: flag.choices for flag in flags if flag.choices}.items():
        yield f"    --{name}) {one_of.format(' '.join(choices))}; return ;;"
    if paths := sorted({f"--{flag.name}" for flag in flags if _is_path(flag)}):
        yield f"    {'|'.join(paths)}) {path}; return ;;"


def _is_path(flag: Flag) -> bool:
    return flag.metavar in ("DIR", "FILE")


def bash(commands: tuple[Command, ...]) -> str:
    lines = [
        "# bash completion for dragoman",
        "_dragoman() {",
        '  local cur="${COMP_WORDS[COMP_CWORD]}" prev="${COMP_WORDS[COMP_CWORD-1]}"',
        '  local path="" word i',
        "  for ((i = 1; i < COMP_CWORD; i++)); do",
        '    word="${COMP_WORDS[i]}"',
        '    case "$path $word" in',
    ]
    lines += _places(commands, "path")
    lines += ["    esac", "  done", '  case "$prev" in']
    one_of = "COMPREPLY=($(compgen -W '{}' -- \"$cur\"))"
    lines += _values(commands, one_of, 'COMPREPLY=($(compgen -f -- "$cur"))')
    lines += ["  esac", "  local words", '  case "$path" in']
    lines.append(f"    \"\") words='{' '.join(_top(commands))}' ;;")
    for command in walk(commands):
        lines.append(f"    \" {command.full_name}\") words='{' '.join(_words(command))}' ;;")
    lines += [
        "  esac",
        '  COMPREPLY=($(compgen -W "$words" -- "$cur"))',
        "}",
        "complete -F _dragoman dragoman",
    ]
    return "\n".join(lines)


def zsh(commands: tuple[Command, ...]) -> str:
    lines = [
        "#compdef dragoman",
        "_dragoman() {",
        '  local at="" word i  # not `path`, which is $PATH in zsh',
        "  for ((i = 2; i < CURRENT; i++)); do",
        '    word="${words[i]}"',
        '    case "$at $word" in',
    ]
    lines += _places(commands, "at")
    lines += ["    esac", "  done", '  case "${words[CURRENT-1]}" in']
    lines += _values(commands, "compadd -- {}", "_files")
    lines += ["  esac", "  local -a found", '  case "$at" in']
    rows = [(one.name, one.help) for one in commands]
    rows += [("help", "help of a command"), ("--help", "help"), ("--version", "the version")]
    lines.append(f'    "") found=({_described(rows)}) ;;')
    for command in walk(commands):
        lines.append(f'    " {command.full_name}") found=({_described(_rows(command))}) ;;')
    lines += [
        "  esac",
        "  _describe dragoman found",
        "}",
        'if [ "$funcstack[1]" = "_dragoman" ]; then _dragoman "$@"; '
        "else compdef _dragoman dragoman; fi",
    ]
    return "\n".join(lines)


def _rows(command: Command) -> list[tuple[str, str]]:
    rows = [(sub.name, sub.help) for sub in command.subs]
    rows += [(choice, arg.help) for arg in command.args for choice in arg.choices]
    rows += [(f"--{flag.name}", flag.help) for flag in command.all_flags()]
    return [*rows, ("--help", "help")]


def _described(rows: list[tuple[str, str]]) -> str:
    return " ".join(_quoted(f"{name}:{text.replace(':', ' -')}") for name, text in rows)


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"


def fish(commands: tuple[Command, ...]) -> str:
    names = " ".join(command.name for command in commands)
    lines = [
        "# fish completion for dragoman",
        "complete -c dragoman -f",
        "complete -c dragoman -n __fish_use_subcommand -s V -l version -d 'the version'",
        "complete -c dragoman -s h -l help -d 'help'",
    ]
    for command in commands:
        lines.append(
            f"complete -c dragoman -n 'not __fish_seen_subcommand_from {names}' "
            f"-a {command.name} -d {_quoted(command.help)}"
        )
    for command in walk(commands):
        seen = " ".join(
            f"__fish_seen_subcommand_from {part};" for part in command.full_name.split()
        )
        condition = seen.rstrip(";").replace("; ", "; and ")
        subs = " ".join(sub.name for sub in command.subs)
        for sub in command.subs:
            lines.append(
                f"complete -c dragoman -n '{condition}; "
                f"and not __fish_seen_subcommand_from {subs}' "
                f"-a {sub.name} -d {_quoted(sub.help)}"
            )
        for arg in command.args:
            if arg.choices:
                lines.append(f"complete -c dragoman -n '{condition}' -a '{' '.join(arg.choices)}'")
        lines += (_fish_flag(flag, condition) for flag in command.flags)
    return "\n".join(lines)


def _fish_flag(flag: Flag, condition: str) -> str:
    line = f"complete -c dragoman -n '{condition}' -l {flag.name}"
    if flag.short:
        line += f" -s {flag.short}"
    if flag.takes_value:
        line += " -r"
        if _is_path(flag):
            line += " -F"
        if flag.choices:
            line += f" -a '{' '.join(flag.choices)}'"
    return f"{line} -d {_quoted(flag.help)}"
