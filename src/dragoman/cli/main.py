"""The command `dragoman`: finds the verb, imports its module, runs it.

Exit codes: 0 done, 1 could not be done (one sentence on stderr says why), 2 the command line was
wrong, 130 interrupted. A verb may define more; its help says so.
"""

import sys

from dragoman import TYPE_CHECKING

from . import table
from .parse import Command, Usage, parse, suggest

if TYPE_CHECKING:
    from collections.abc import Sequence

OK = 0
FAILED = 1
WRONG_USAGE = 2
INTERRUPTED = 130
_SIGNALLED = 128
_EVERYWHERE = {"--config-dir": True, "--json": False}  # whether a value follows
_START = ": dragoman daemon --background"
_SEE = {
    "unknown_session": "See: dragoman sessions",
    "unknown_approval": "See: dragoman approvals --all",
}
_SHARE = "Start the daemon before the editor: `dragoman acp` then shares its sessions with it."


def script() -> int:
    """The installed command: `main`, and an end without taking the interpreter apart.

    That takes 2 of 13 ms (decision 0073). It is left out only where nobody can have asked for
    anything to be done at exit.
    """
    _may_use_what_is_made()
    try:
        code = main()
    finally:  # also where a signal ends us
        closed = not _flushed()  # of Python's own last try the exit code would be 120
    if closed or "atexit" in sys.modules or sys.flags.inspect:
        return code
    import os

    os._exit(code)


def _flushed() -> bool:
    """Write what is left, or give it up; False: somebody closed a stream."""
    try:
        _discard()
    except ValueError:
        return False
    return True


def _may_use_what_is_made() -> None:
    """No umask takes our own rights to our files: what we made we could not open again."""
    import os

    os.umask(os.umask(0o077) & 0o077)


def main(argv: "Sequence[str] | None" = None) -> int:
    """Run one command line; returns the exit code."""
    words = list(sys.argv[1:] if argv is None else argv)
    if None in (sys.stdin, sys.stdout, sys.stderr):
        _fill_streams()
    if sys.stdout.errors in ("strict", "surrogateescape"):  # what cannot be shown is marked
        sys.stdout.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]
    code = OK
    try:
        code = _dispatched(words)
        sys.stdout.flush()
        return code
    except Usage as problem:
        return _say_usage(problem)
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        _discard()
        return 141  # the reader of our output went away (`| head`): leave quietly, as others do
    except OSError as problem:
        if problem.errno in _SPENT:
            return _say(f"The system gives no more: {problem.strerror}.")
        if problem.filename is not None:
            return _say_place(problem)
        if problem.errno == _ABSENT and _is_gone():
            return _say("The folder that you are in is gone. Go to one that is there: cd ~")
        if problem.errno not in _UNWRITABLE:
            raise
        _discard()
        if code > _SIGNALLED:  # whoever ended us took the terminal along
            return code
        return _say(f"The output cannot be written: {problem.strerror}.")


def _say(sentence: str) -> int:
    print(f"dragoman: {sentence}", file=sys.stderr)
    return FAILED


def _is_gone() -> bool:
    """Whether the folder that we were started in was removed."""
    import os

    try:
        os.getcwd()
    except FileNotFoundError:
        return True
    return False


def _dispatched(words: list[str]) -> int:
    """Run a line; one that is not understood may be of an earlier version."""
    if _opens_terminal(words):
        words = ["terminal", *words]
    words = _command_first(words)
    try:
        return _dispatch(words)
    except Usage:
        from .retired import renew

        known = renew(words)
        if known is None:
            raise
    return _dispatch(known)


def _dispatch(words: list[str]) -> int:
    if not words and _is_prompted():
        raise Usage("a prompt on standard input is for another command: dragoman run")
    name = words[0] if words else "--help"
    if name in ("-V", "--version"):
        from dragoman import __version__

        print(f"dragoman {__version__}")
        return OK
    if name in ("-h", "--help", "help"):
        return _help(words[1 + _common_flags(words[1:]) :])
    command = table.find(name)
    if command is None:
        names = [one.name for one in table.commands()]
        from . import elsewhere

        if not name.startswith("-"):
            raise Usage(f"unknown command {name!r}{elsewhere.hint(name) or suggest(name, names)}")
        hint = elsewhere.hint(name) or suggest(name, [*_EVERYWHERE, "--help", "--version"])
        if name.lstrip("-") in names:
            hint = f"; did you mean the command {name.lstrip('-')}?"
        raise Usage(f"unknown flag {name}{hint or ' (flags of a command stand after its name)'}")
    rest = words[1:]
    if _wants_help(rest) or _asks_in_words(command, rest):
        path = [word for word in rest if not word.startswith("-") and word != "help"]
        return _help([name, *path])
    if command.raw:
        return _run(command, rest)
    args = parse(command, rest)
    return _run(command, args)


_PATIENCE = 1.0  # seconds for the first byte of a standard input that may be nobody's
_TERMINAL = tuple(
    "-c --continue -r --resume --agent --cwd --model --mode --worktree --plain --vi --light "
    "--dark".split()
)


def _opens_terminal(words: list[str]) -> bool:
    """`dragoman` alone, with a flag of the terminal's own, or with a sentence.

    Where nobody sits at a terminal, the name alone prints help as ever.
    """
    at = _common_flags(words)
    first = words[at] if at < len(words) else ""
    if not first:
        return "--json" not in words and at == len(words) and _at_terminal()
    return first.partition("=")[0] in _TERMINAL or " " in first.strip()


def _common_flags(words: list[str]) -> int:
    """How many words at the beginning are flags that nearly every command has."""
    at = 0
    while at < len(words) and (name := words[at].partition("=")[0]) in _EVERYWHERE:
        at += 1 + (_EVERYWHERE[name] and "=" not in words[at])
    return at


def _at_terminal() -> bool:
    try:
        return bool(sys.stdin.isatty() and sys.stdout.isatty())
    except ValueError:  # closed
        return False


def _is_prompted() -> bool:
    """Whether something was piped in. Who holds a pipe open and is silent gives no prompt."""
    import io
    import os
    import select
    import stat

    try:
        mode = os.fstat(sys.stdin.fileno()).st_mode
        if not (stat.S_ISFIFO(mode) or stat.S_ISREG(mode)):
            return False
        came = select.select([sys.stdin], [], [], _PATIENCE)[0]
        pipe = sys.stdin.buffer
        return bool(came and isinstance(pipe, io.BufferedReader) and pipe.peek(1).strip())
    except (OSError, ValueError):  # closed, or no file
        return False


def _command_first(words: list[str]) -> list[str]:
    """Flags that nearly every command has may stand before its name: they are put behind it."""
    at = _common_flags(words)
    moved, rest = words[:at], words[at:]
    if moved and not rest:
        raise Usage(f"a command is missing after {' '.join(moved)}")
    return [*rest[:1], *moved, *rest[1:]]


def _asks_in_words(command: Command, rest: list[str]) -> bool:
    """`sessions help` asks for help, unless the word could mean something there."""
    loose = [word for word in rest if not word.startswith("-")]
    return loose[:1] == ["help"] and not command.raw and bool(command.subs or not command.args)


def _wants_help(words: list[str]) -> bool:
    for word in words:
        if word == "--":
            return False
        if word in ("-h", "--help"):
            return True
    return False


def _help(path: list[str]) -> int:
    from . import help

    if not path:
        print(help.overview(table.commands()))
        return OK
    command = table.find(path[0])
    if command is None:
        from . import elsewhere

        hint = elsewhere.hint(path[0]) or suggest(path[0], [one.name for one in table.commands()])
        raise Usage(f"unknown command {path[0]!r}{hint}")
    for name in path[1:]:
        deeper = command.sub(name)
        if deeper is None:
            break
        command = deeper
    print(help.of(command))
    return OK


def _run(command: Command, args: object) -> int:
    module, _, function = command.runs.partition(":")

    def run() -> int:
        # `importlib` would load itself and `warnings` first.
        verb = getattr(__import__(f"dragoman.{module}", fromlist=[function]), function)
        return int(verb(args))

    try:
        if module.startswith("cli.verbs."):
            return run()
        from .quiet import unhurt  # a whole program, which takes its time to load

        return unhurt(run)
    except (Usage, KeyboardInterrupt, BrokenPipeError):
        raise
    except Exception as problem:
        from dragoman.engine.faults import Fault

        if not isinstance(problem, Fault):
            raise
        if problem.code == "not_running":
            given = getattr(args, "config_dir", None)
            _warn_of_settings(given)
            if given and problem.hint.endswith(_START):
                from . import places

                problem.hint = f"Start it with: {places.next_line(args, 'daemon --background')}"  # type: ignore[arg-type]
        if not problem.hint:
            problem.hint = _SEE.get(problem.code, "")
        _say(f"{problem}")
        if problem.code == "in_use" and command.name not in ("daemon", "fleet", "store"):
            print(_SHARE, file=sys.stderr)
        return FAILED


def _warn_of_settings(config_dir: "str | None") -> None:
    """A configuration that cannot be read may be why nobody was found where we looked."""
    from dragoman.engine.faults import Fault
    from dragoman.settings.load import load

    from . import places, say

    try:
        load(places.find(config_dir).config_file)
    except Fault as fault:
        say.warn(f"{fault} The daemon was looked for where it is by default.")


def _say_place(problem: OSError) -> int:
    """A file or folder that cannot be had, which no verb has a better word for."""
    repair = "Make room there" if problem.errno in _FULL else "Repair its permissions"
    said = f"{problem.filename} cannot be used: {problem.strerror}", repair
    what, mend = _in_the_way(problem) or said
    return _say(
        f"{what}. {mend}, "
        "or choose folders of your own: HOME, DRAGOMAN_CONFIG_DIR, DRAGOMAN_DATA_DIR."
    )


def _in_the_way(problem: OSError) -> "tuple[str, str] | None":
    """What stands where we need a file or folder, and what to do about it."""
    from dragoman.standing import in_place_of_file, in_place_of_folder

    if problem.errno in _NO_FOLDER:
        return in_place_of_folder(str(problem.filename))
    return in_place_of_file(str(problem.filename)) if problem.errno in _NO_FILE else None


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


# Numbers as Linux has them.
_ABSENT = 2  # ENOENT
_SPENT = (11, 12, 23, 24)  # EAGAIN (of processes), ENOMEM, ENFILE, EMFILE
_NO_FOLDER = (17, 20)  # EEXIST (of one that is to be made), ENOTDIR
_NO_FILE = (_ABSENT, 21, 40)  # EISDIR, ELOOP
_FULL = (28, 122)  # ENOSPC, EDQUOT
_UNWRITABLE = (5, 9, 27, *_FULL)  # EIO, EBADF, EFBIG


def _discard() -> None:
    """Python flushes the streams once more at exit; give what cannot be written a place to go."""
    import os

    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            null = os.open(os.devnull, os.O_WRONLY)
            os.dup2(null, stream.fileno())
            os.close(null)
