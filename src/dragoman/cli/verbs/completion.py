"""`dragoman completion bash|zsh|fish`: a completion script made from the table.

`completion values KIND` is what the scripts call for ids and names that only the host knows.
"""

from collections.abc import Iterable, Iterator

from dragoman.engine.faults import Fault

from .. import say, table
from ..commands.shared import KINDS
from ..parse import Arg, Args, Command, Flag, Usage

_MOST = 100  # values that are offered
_FILES = "files"
_APPROVALS = ("approve", "deny", "approvals show")
_PLACES = ("file", "folder", "source", "target")


def run(args: Args) -> int:
    """Print the script for one shell, or values of one kind."""
    if args.shell == "values":
        if args.kind not in KINDS:
            raise Usage(f"values of which kind? One of: {', '.join(KINDS)}", args.command)
        for value, text in _known(args):
            say.out(f"{value}\t{' '.join(say.clean(text).split())[:60]}")
        return 0
    if args.kind:
        raise Usage(f"unexpected argument {args.kind!r}", args.command)
    commands = table.commands()
    script = {"bash": bash, "zsh": zsh, "fish": fish}[args.shell](commands)
    say.out(script)
    return 0


def _known(args: Args) -> Iterator[tuple[str, str]]:
    """The values of a kind, each with a word about it; none where they cannot be had."""
    from .. import reach
    from ..screen import called

    try:
        if args.kind == "key":
            yield from _keys(args)
        elif args.kind == "session":
            found = reach.call(args, "sessions", limit=_MOST)["sessions"]
            yield from ((row["id"], called(row) or row["status"]) for row in found)
        elif args.kind == "approval":
            found = reach.call(args, "approvals", pending=True)["approvals"]
            yield from ((row["ask"]["id"], row["ask"]["title"]) for row in found[:_MOST])
        else:
            found = reach.call(args, "agents")["agents"]
            yield from ((row["alias"], row.get("model") or "") for row in found)
    except Fault:
        return  # somebody types: a message would be in his way


def _keys(args: Args) -> Iterator[tuple[str, str]]:
    """Keys as they are typed: with the names that the configuration has, and no `<name>`."""
    from dragoman.settings.explain import explain
    from dragoman.settings.load import load_or_defaults

    from ..places import find

    loaded = load_or_defaults(find(args.config_dir).config_file)
    rows = explain(loaded)
    if not loaded.settings.agents:
        rows += explain(loaded, "agents.default")
    yield from ((row.key, row.doc) for row in rows if "<name>" not in row.key)


def _kind_of(command: Command, arg: Arg) -> str:
    """What an argument can be completed with, beside its choices."""
    if arg.name in _PLACES:
        return _FILES
    if arg.name == "id":
        return "approval" if command.full_name in _APPROVALS else ""
    return arg.name if arg.name in KINDS else ""


def _kinds(command: Command) -> Iterator[tuple[int, str]]:
    """The arguments that something is known of: how many are before each, and its kind."""
    for place, arg in enumerate(command.args):
        if kind := _kind_of(command, arg):
            yield place, kind


def _taken(flag: Flag) -> str:
    """The same of what follows a flag."""
    if flag.metavar in ("DIR", "FILE", "PATH"):
        return _FILES
    return flag.name if flag.name in KINDS and flag.takes_value else ""


def _asking(kind: str) -> str:
    """The command that prints the values of a kind."""
    return f"command dragoman completion values {kind} 2>/dev/null"


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


def _before_values(commands: tuple[Command, ...]) -> list[str]:
    """The flags, as they are typed, whose next word is their value."""
    flags = [flag for command in walk(commands) for flag in command.flags if flag.takes_value]
    return sorted({f"--{f.name}" for f in flags} | {f"-{f.short}" for f in flags if f.short})


def _places(commands: tuple[Command, ...], variable: str) -> Iterator[str]:
    """For each word of a line, where one is after it: the command, and in `n` its arguments so far.

    Flags are none, nor are their values.
    """
    for command in walk(commands):
        above = f" {command.parent.full_name}" if command.parent else ""
        yield f'      "{above} {command.name}") {variable}=" {command.full_name}" n=0 ;;'
    skipped = "|".join(f'*" {flag}"' for flag in _before_values(commands))
    yield f"      {skipped}) ((i += 1)) ;;"
    yield '      *" -"*) ;;'
    yield "      *) ((n += 1)) ;;"


def _values(
    commands: tuple[Command, ...], one_of: str, path: str, asked: str, none: str
) -> Iterator[str]:
    """What may follow a flag: one of some words, a path, what the host knows, or anything."""
    flags = {flag.name: flag for command in walk(commands) for flag in command.flags}
    free = {flag.name: flag for flag in flags.values() if flag.takes_value}
    for name in [name for name, flag in free.items() if flag.choices]:
        yield f"    --{name}) {one_of.format(' '.join(free.pop(name).choices))}; return ;;"
    for kind in (_FILES, *KINDS):
        found = sorted(f"--{name}" for name, flag in free.items() if _taken(flag) == kind)
        if found:
            done = path if kind == _FILES else asked.format(_asking(kind))
            yield f"    {'|'.join(found)}) {done}; return ;;"
    found = sorted(f"--{name}" for name, flag in free.items() if not _taken(flag))
    yield f"    {'|'.join(found)}) {none} ;;"


def _looked_up(commands: Iterable[Command], asked: str, path: str) -> Iterator[str]:
    """What the host knows of a command's arguments, for each command that has some."""
    for command in walk(tuple(commands)):
        for place, kind in _kinds(command):
            done = path if kind == _FILES else asked.format(_asking(kind))
            yield f'    " {command.full_name} {place}") {done} ;;'


def bash(commands: tuple[Command, ...]) -> str:
    lines = [
        "# bash completion for dragoman",
        "_dragoman() {",
        '  local cur="${COMP_WORDS[COMP_CWORD]}" prev="${COMP_WORDS[COMP_CWORD-1]}"',
        '  local path="" word i n=0',
        "  for ((i = 1; i < COMP_CWORD; i++)); do",
        '    word="${COMP_WORDS[i]}"',
        '    case "$path $word" in',
    ]
    lines += _places(commands, "path")
    lines += ["    esac", "  done", '  case "$prev" in']
    one_of = "COMPREPLY=($(compgen -W '{}' -- \"$cur\"))"
    files = (
        "local IFS=$'\n'; COMPREPLY=($(compgen -f -- \"$cur\")); compopt -o filenames 2>/dev/null"
    )
    asked = 'COMPREPLY=($(compgen -W "$({} | cut -f1)" -- "$cur"))'
    lines += _values(commands, one_of, files, asked, "return")
    lines += ["  esac", "  local words", '  case "$path" in']
    lines.append(f"    \"\") words='{' '.join(_top(commands))}' ;;")
    for command in walk(commands):
        lines.append(f"    \" {command.full_name}\") words='{' '.join(_words(command))}' ;;")
    lines += [
        "  esac",
        '  COMPREPLY=($(compgen -W "$words" -- "$cur"))',
        "  [[ $cur == -* ]] && return",
        '  case "$path $n" in',
        *_looked_up(commands, asked.replace("=(", "+=(", 1), files),
        "  esac",
        "}",
        "complete -F _dragoman dragoman",
    ]
    return "\n".join(lines)


def zsh(commands: tuple[Command, ...]) -> str:
    lines = [
        "#compdef dragoman",
        "_dragoman() {",
        '  local at="" word i n=0  # not `path`, which is $PATH in zsh',
        "  for ((i = 2; i < CURRENT; i++)); do",
        '    word="${words[i]}"',
        '    case "$at $word" in',
    ]
    lines += _places(commands, "at")
    lines += ["    esac", "  done", '  case "${words[CURRENT-1]}" in']
    asked = (
        "local -a known shown; known=(${{(f)\"$({})\"}}); shown=(${{known//$'\\t'/ -- }}); "
        "compadd -l -d shown -- ${{known%%$'\\t'*}}"
    )
    lines += _values(commands, "compadd -- {}", "_files", asked, "_default; return")
    lines += ["  esac", "  local -a found", '  case "$at" in']
    rows = [(one.name, one.help) for one in commands]
    rows += [("help", "help of a command"), ("--help", "help"), ("--version", "the version")]
    lines.append(f'    "") found=({_described(rows)}) ;;')
    for command in walk(commands):
        lines.append(f'    " {command.full_name}") found=({_described(_rows(command))}) ;;')
    lines += [
        "  esac",
        "  _describe dragoman found",
        "  [[ ${words[CURRENT]} == -* ]] && return",
        '  case "$at $n" in',
        *_looked_up(commands, asked, "_files"),
        "  esac",
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
    # The first colon ends the name; those behind it are text.
    return " ".join(_quoted(f"{name}:{text}") for name, text in rows)


def _quoted(text: str) -> str:
    return "'" + text.replace("'", "'\\''") + "'"


def fish(commands: tuple[Command, ...]) -> str:
    names = " ".join(command.name for command in commands)
    lines = [
        "# fish completion for dragoman",
        "function __dragoman_words",  # of a command and its arguments: no flags, nor their values
        "  set -l n 0",
        "  set -l value no",
        "  for word in (commandline -opc)",
        "    test $value = yes; and set value no; and continue",
        "    switch $word",
        f"      case {' '.join(_before_values(commands))}",
        "        set value yes",
        "      case '-*'",
        "      case '*'",
        "        set n (math $n + 1)",
        "    end",
        "  end",
        "  test $n -eq $argv[1]",
        "end",
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
        for place, kind in _kinds(command):
            offered = "-F" if kind == _FILES else f"-a '({_asking(kind)})'"
            here = f"{condition}; and __dragoman_words {len(command.full_name.split()) + 1 + place}"
            lines.append(f"complete -c dragoman -n '{here}' {offered}")
        lines += (_fish_flag(flag, condition) for flag in command.flags)
    return "\n".join(lines)


def _fish_flag(flag: Flag, condition: str) -> str:
    line = f"complete -c dragoman -n '{condition}' -l {flag.name}"
    if flag.short:
        line += f" -s {flag.short}"
    if flag.takes_value:
        taken = _taken(flag)
        line += " -r -F" if taken == _FILES else " -x"
        if flag.choices:
            line += f" -a '{' '.join(flag.choices)}'"
        elif taken and taken != _FILES:
            line += f" -a '({_asking(taken)})'"
    return f"{line} -d {_quoted(flag.help)}"
