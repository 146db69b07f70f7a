"""The command `dragoman`: finds the verb, imports its module, runs it.

Exit codes: 0 done, 1 could not be done (one sentence on stderr says why), 2 the command line was
wrong, 130 interrupted. A verb may define more; its help says so.
"""

import sys

from . import help, table
from .parse import Command, Usage, parse, suggest

TYPE_CHECKING = False  # `collections.abc` is not loaded just for annotations
if TYPE_CHECKING:
    from collections.abc import Sequence

OK = 0
FAILED = 1
WRONG_USAGE = 2
INTERRUPTED = 130
_SHARE = "Start the daemon before the editor: `dragoman acp` then shares its sessions with it."


def main(argv: "Sequence[str] | None" = None) -> int:
    """Run one command line; returns the exit code."""
    words = list(sys.argv[1:] if argv is None else argv)
    if None in (sys.stdin, sys.stdout, sys.stderr):
        _fill_streams()
    try:
        return _dispatch(words)
    except Usage as problem:
        return _say_usage(problem)
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        return _reader_left()


def _dispatch(words: list[str]) -> int:
    commands = table.commands()
    name = words[0] if words else "--help"
    if name in ("-V", "--version"):
        from dragoman import __version__

        print(f"dragoman {__version__}")
        return OK
    if name in ("-h", "--help", "help"):
        return _help(commands, words[1:])
    command = next((one for one in commands if one.name == name), None)
    if command is None:
        kind = "flag" if name.startswith("-") else "command"
        raise Usage(f"unknown {kind} {name!r}{suggest(name, [one.name for one in commands])}")
    rest = words[1:]
    if _wants_help(rest):
        return _help(commands, [name, *(word for word in rest if not word.startswith("-"))])
    if command.raw:
        return _run(command, rest)
    args = parse(command, rest)
    return _run(command, args)


def _wants_help(words: list[str]) -> bool:
    for word in words:
        if word == "--":
            return False
        if word in ("-h", "--help"):
            return True
    return False


def _help(commands: "Sequence[Command]", path: list[str]) -> int:
    if not path:
        print(help.overview(commands))
        return OK
    command = next((one for one in commands if one.name == path[0]), None)
    if command is None:
        hint = suggest(path[0], [one.name for one in commands])
        raise Usage(f"unknown command {path[0]!r}{hint}")
    for name in path[1:]:
        deeper = command.sub(name)
        if deeper is None:
            break
        command = deeper
    print(help.of(command))
    return OK


def _run(command: Command, args: object) -> int:
    from importlib import import_module

    module = import_module(f"dragoman.cli.verbs.{table.module_of(command.name)}")
    try:
        return int(module.run(args))
    except (Usage, KeyboardInterrupt, BrokenPipeError):
        raise
    except Exception as problem:
        from dragoman.engine.faults import Fault

        if not isinstance(problem, Fault):
            raise
        print(f"dragoman: {problem}", file=sys.stderr)
        if problem.code == "in_use" and command.name != "daemon":
            print(_SHARE, file=sys.stderr)
        return FAILED


def _say_usage(problem: Usage) -> int:
    where = f" {problem.command.full_name}" if problem.command else ""
    print(f"dragoman: {problem.message}", file=sys.stderr)
    print(f"Try: dragoman{where} --help", file=sys.stderr)
    return WRONG_USAGE


def _fill_streams() -> None:
    """Give closed standard streams somewhere to go: the next file opened would be them."""
    import os

    for fd, name, mode in ((0, "stdin", "r"), (1, "stdout", "w"), (2, "stderr", "w")):
        if getattr(sys, name) is None:
            null = os.open(os.devnull, os.O_RDWR)
            if null != fd:
                os.dup2(null, fd)
                os.close(null)
            setattr(sys, name, os.fdopen(fd, mode, closefd=False))


def _reader_left() -> int:
    """The reader of our output went away (`| head`): leave quietly, as other programs do."""
    import os

    # Python flushes stdout once more at exit; give it somewhere to go.
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return 141
