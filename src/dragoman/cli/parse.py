"""A small table-driven argument parser.

It exists because importing the standard one costs more than all of `dragoman --help` may take.
Nothing but `sys` and `os` may be imported at the top of this module, of `table` and of `main`.
"""

from dragoman import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from typing import Any


class Usage(Exception):
    """The command line cannot be understood; `command` is where its help can be read."""

    def __init__(self, message: str, command: "Command | None" = None) -> None:
        super().__init__(message)
        self.message = message
        self.command = command


class Flag:
    """`--name VALUE`, or a switch when `kind` is bool."""

    def __init__(
        self,
        name: str,
        help: str,
        *,
        kind: "Callable[[str], object]" = str,
        metavar: str = "",
        short: str = "",
        choices: "Sequence[str]" = (),
        default: object = None,
        many: bool = False,
    ) -> None:
        self.name = name
        self.help = help
        self.kind = kind
        self.metavar = metavar or ("N" if kind in (int, float) else name.upper().replace("-", "_"))
        self.short = short
        self.choices = tuple(choices)
        self.default = False if kind is bool and default is None else default
        self.many = many

    @property
    def key(self) -> str:
        return self.name.replace("-", "_")

    @property
    def takes_value(self) -> bool:
        return self.kind is not bool


class Arg:
    """A positional argument."""

    def __init__(
        self,
        name: str,
        help: str,
        *,
        optional: bool = False,
        many: bool = False,
        choices: "Sequence[str]" = (),
        unlisted: "Sequence[str]" = (),
        empty: bool = False,
    ) -> None:
        """`unlisted` are words that programs of ours give, and that people are not offered.

        One that is needed and has no text is taken for one that is missing, unless `empty` allows
        it: it comes from a variable that was not set.
        """
        self.name = name
        self.help = help
        self.optional = optional
        self.many = many
        self.choices = tuple(choices)
        self.unlisted = tuple(unlisted)
        self.empty = empty or optional

    @property
    def key(self) -> str:
        return self.name.replace("-", "_")

    @property
    def shown(self) -> str:
        word = self.name.upper().replace("_", "-")
        word = f"{word}..." if self.many else word
        return f"[{word}]" if self.optional else word

    @property
    def described(self) -> str:
        return self.help + (f" ({', '.join(self.choices)})" if self.choices else "")


class Command:
    """One command: its flags and arguments, or its sub-commands."""

    def __init__(
        self,
        name: str,
        help: str,
        *,
        example: str = "",
        flags: "Sequence[Flag]" = (),
        args: "Sequence[Arg]" = (),
        subs: "Sequence[Command]" = (),
        default: str = "",
        text: str = "",
        raw: bool = False,
        runs: str = "",
    ) -> None:
        self.name = name
        self.help = help
        self._example = example
        self.flags = tuple(flags)
        self.args = tuple(args)
        self.subs = tuple(subs)
        self.default = default  # the sub-command that runs when none is named
        self.group = ""  # which the table sets: that of its module
        self.text = text
        self.raw = raw  # the verb reads its own arguments; the table is for help and completion
        self.runs = runs or f"cli.verbs.{name.replace('-', '_')}:run"  # module:function
        self.parent: Command | None = None
        for sub in self.subs:
            sub.parent = self

    @property
    def full_name(self) -> str:
        return f"{self.parent.full_name} {self.name}" if self.parent else self.name

    @property
    def example(self) -> str:
        """A line that can be typed; the name alone where none was given."""
        return self._example or f"dragoman {self.full_name}"

    def sub(self, name: str) -> "Command | None":
        return next((one for one in self.subs if one.name == name), None)

    def all_flags(self) -> tuple[Flag, ...]:
        """This command's flags and those it has from its parents, nearest first."""
        above = self.parent.all_flags() if self.parent else ()
        own = {flag.name for flag in self.flags}
        return self.flags + tuple(flag for flag in above if flag.name not in own)


class Args:
    """What was parsed: one attribute per flag and argument, `command` and `path` of the verb."""

    def __init__(self, command: Command, values: dict[str, object]) -> None:
        self.command = command
        self.path = tuple(command.full_name.split())
        self.values = values

    def __getattr__(self, name: str) -> "Any":
        try:
            return self.__dict__["values"][name]
        except KeyError:
            raise AttributeError(name) from None

    @property
    def verb(self) -> str:
        return self.path[0]

    @property
    def sub(self) -> str:
        return self.path[1] if len(self.path) > 1 else ""


def parse(command: Command, words: "Sequence[str]") -> Args:
    """Read the words after `command`'s name. Raises Usage."""
    command, words = _descend(command, list(words))
    flags = command.all_flags()
    by_name = {f"--{flag.name}": flag for flag in flags}
    by_name.update((f"-{flag.short}", flag) for flag in flags if flag.short)
    values: dict[str, object] = {flag.key: ([] if flag.many else flag.default) for flag in flags}
    loose: list[str] = []
    rest = iter(words)
    for word in rest:
        if word == "--":
            loose.extend(rest)
        elif _is_flag(word) and not _is_number(word):
            _take_flag(command, by_name, word, rest, values)
        else:
            loose.append(word)
    _place(command, loose, values)
    return Args(command, values)


def _descend(command: Command, words: list[str]) -> tuple[Command, list[str]]:
    while command.subs:
        # Flags of the parent may stand before the sub-command's name.
        at = _first_loose(command, words)
        name = words[at] if at is not None else command.default
        if not name:
            _refuse_unknown(command, words)
            names = ", ".join(sub.name for sub in command.subs)
            raise Usage(f"{command.full_name} needs one of: {names}", command)
        found = command.sub(name)
        if found is None:
            from .elsewhere import OURS

            theirs = f"{command.full_name} {name}" in OURS
            hint = "" if theirs else suggest(name, [sub.name for sub in command.subs])
            default = command.sub(command.default)
            if default and default.args and at is not None and not hint:
                return default, words
            hint = hint or _others(command, name)
            raise Usage(f"unknown sub-command {name!r} of {command.full_name}{hint}", command)
        if at is not None:
            del words[at]
        command = found
    return command, words


def _refuse_unknown(command: Command, words: list[str]) -> None:
    """Raise Usage for a flag that neither the command nor any of its sub-commands has."""
    flags = {flag for one in (command, *command.subs) for flag in one.all_flags()}
    known = [f"--{flag.name}" for flag in flags] + [f"-{flag.short}" for flag in flags]
    for word in words:
        name = word.partition("=")[0]
        if _is_flag(word) and name not in known:
            raise Usage(f"unknown flag {name}{suggest(name, sorted(known))}", command)


def _others(command: Command, name: str) -> str:
    """What there is instead of a sub-command that is not there, nor anything like it."""
    from .elsewhere import OURS
    from .table import find

    if ours := OURS.get(f"{command.full_name} {name}"):
        return f"; did you mean: {ours}"
    if find(name):
        return f"; did you mean the command {name}?"
    return f" (there are: {', '.join(sub.name for sub in command.subs)})"


def _first_loose(command: Command, words: list[str]) -> int | None:
    known = (command.sub(command.default) or command).all_flags()
    valued = {f"--{flag.name}" for flag in known if flag.takes_value}
    valued |= {f"-{flag.short}" for flag in known if flag.takes_value and flag.short}
    skip = False
    for at, word in enumerate(words):
        if skip:
            skip = False
        elif word == "--":
            return None
        elif _is_flag(word):
            skip = word in valued
        else:
            return at
    return None


def _take_flag(
    command: Command,
    by_name: dict[str, Flag],
    word: str,
    rest: "Iterator[str]",
    values: dict[str, object],
) -> None:
    name, equals, given = word.partition("=")
    flag = by_name.get(name)
    if flag is None:
        hint = suggest(name, list(by_name))
        if not hint and word[1] != "-" and any(arg.many for arg in command.args):
            line = f"dragoman {command.full_name} -- {word}"
            hint = f" (a text that begins with a dash goes after two: {line})"
        raise Usage(f"unknown flag {name}{hint}", command)
    if not flag.takes_value:
        if equals and given.lower() not in ("true", "false"):
            raise Usage(f"{name} is a switch and takes no value (got {given!r})", command)
        values[flag.key] = given.lower() != "false"
        return
    if not equals:
        try:
            given = next(rest)
        except StopIteration:
            raise Usage(f"{name} needs a value: {name} {flag.metavar}", command) from None
    value = _convert(command, flag, name, given)
    if flag.many:
        values[flag.key] = [*values[flag.key], value]  # type: ignore[misc]
    else:
        values[flag.key] = value


def _convert(command: Command, flag: Flag, name: str, given: str) -> object:
    _check_choice(command, flag, name, given)
    try:
        return flag.kind(given)
    except ValueError as problem:
        what = {int: "a whole number", float: "a number"}.get(flag.kind)  # type: ignore[call-overload]
        reason = f"must be {what} (got {given!r})" if what else str(problem)
        raise Usage(f"{name}: {reason}", command) from None


def _check_choice(command: Command, of: Flag | Arg, name: str, given: str) -> None:
    if of.choices and given not in of.choices:
        hint = suggest(given, of.choices)
        allowed = ", ".join(of.choices)
        raise Usage(f"{name} must be one of {allowed} (got {given!r}){hint}", command)


def _missing(command: Command, arg: Arg) -> Usage:
    return Usage(f"{command.full_name} needs {arg.shown}: {arg.described}", command)


def _place(command: Command, loose: list[str], values: dict[str, object]) -> None:
    for arg in command.args:
        if arg.many:
            if not (loose or arg.optional):
                raise _missing(command, arg)
            values[arg.key], loose = loose, []
        elif loose:
            given = loose.pop(0)
            if not (given or arg.empty):
                raise _missing(command, arg)
            if given not in arg.unlisted:
                _check_choice(command, arg, arg.shown, given)
            values[arg.key] = given
        elif arg.optional:
            values[arg.key] = None
        else:
            raise _missing(command, arg)
    if loose:
        raise Usage(f"unexpected argument {loose[0]!r}", command)


def _is_flag(word: str) -> bool:
    """Whether it stands where a flag may: a sentence that begins with a dash is none."""
    return word.startswith("-") and word != "-" and len(word.partition("=")[0].split()) == 1


def _is_number(word: str) -> bool:
    try:
        float(word)
    except ValueError:
        return False
    return True


def suggest(word: str, known: "Sequence[str]") -> str:
    """`; did you mean X?` for the nearest known word, or nothing.

    The dashes of flags are not compared: every flag has them, so they make none of them near.
    """
    from dragoman.settings.nearest import nearest

    bare = {one.lstrip("-"): one for one in known if not (len(one) == 2 and one[0] == "-")}
    cutoff = 0.75 if word.startswith("-") else 0.6  # a wrong flag is told, a far one would mislead
    near = nearest(word.lstrip("-"), list(bare), cutoff)
    return f"; did you mean {bare[near]}?" if near else ""
