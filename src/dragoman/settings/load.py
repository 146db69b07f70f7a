"""Puts the configuration together: flags before environment before file before defaults."""

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from dragoman.engine.faults import BadInput

from . import places
from .model import Settings

if TYPE_CHECKING:
    from .shape import Path

OURS = "DRAGOMAN_"
THEIRS = "ZEROCLAW_"  # honoured where ours is not set


class BadSettings(BadInput):
    """The configuration cannot be used; `problems` has one sentence for each reason.

    `warnings` are what else was strange, told with them: a misspelt key is often the reason.
    """

    def __init__(self, problems: list[str], hint: str = "", warnings: Sequence[str] = ()) -> None:
        super().__init__("\n".join([*problems, *(f"warning: {one}" for one in warnings)]), hint)
        self.problems = problems
        self.warnings = tuple(warnings)


class Source(msgspec.Struct, frozen=True):
    """Where a value comes from."""

    kind: str  # file, env, flag
    where: str  # file:line, name of the variable, name of the flag


class Loaded(msgspec.Struct, frozen=True):
    """The configuration, where its values come from, and what was strange about it."""

    settings: Settings
    path: str
    text: str
    sources: "dict[Path, Source]"
    warnings: tuple[str, ...]


def load(
    path: str = "",
    env: Mapping[str, str] | None = None,
    flags: Mapping[str, Any] | None = None,
) -> Loaded:
    """Read the file (none when it does not exist), the environment and flags by dotted key.

    Flags that are None count as not given. Raises BadSettings.
    """
    env = os.environ if env is None else env
    text = read_text(path)
    named = [name for name in env if "__" in name and name.startswith((OURS, THEIRS))]
    given = {name: value for name, value in (flags or {}).items() if value is not None}
    if not (text or named or given):
        return Loaded(Settings(), path, "", {}, ())  # the usual case, kept free of imports
    return _Loading(path, text).run(env, sorted(named), given)


def load_or_defaults(path: str, *about: str) -> Loaded:
    """What was loaded, or what holds without a file that cannot be read.

    For whoever needs little of it, and has said what is wrong. Raises BadSettings where the file
    speaks of one of those words: what it means is not known.
    """
    try:
        return load(path)
    except BadSettings as bad:
        try:
            text = read_text(path)
        except BadSettings:
            text = ""
        if any(word in text for word in about):
            raise
        try:
            return load()
        except BadSettings:  # the environment is wrong
            raise bad from None


def read_text(path: str) -> str:
    """The file's text; empty when there is no file. Raises BadSettings."""
    if not path:
        return ""
    try:
        with open(path, encoding="utf-8", opener=places.readable) as file:
            return file.read().removeprefix("\ufeff")  # some editors mark the encoding by it
    except FileNotFoundError:
        if os.path.islink(path):
            raise BadSettings(
                [f"{path} leads to {os.readlink(path)}, which is not there."],
                "Put that file back, or remove the link.",
            ) from None
        return ""
    except UnicodeDecodeError as problem:
        raise BadSettings(
            [f"{path} is not UTF-8 text (byte {problem.start})."], "Save it as UTF-8."
        ) from None
    except OSError as problem:
        from dragoman.standing import in_place_of_file

        said = f"{path} cannot be read: {problem.strerror}", "Repair its permissions"
        what, mend = in_place_of_file(path) or said
        raise BadSettings(
            [f"{what}."], f"{mend}, or choose another directory with --config-dir."
        ) from None


class _Loading:
    """One load: collects values, their sources, warnings and problems."""

    def __init__(self, path: str, text: str) -> None:
        self.path = path
        self.text = text
        self.raw: dict[str, Any] = {}
        self.sources: dict[Path, Source] = {}
        self.warnings: list[str] = []
        self.problems: list[str] = []

    def run(self, env: Mapping[str, str], named: list[str], flags: dict[str, Any]) -> Loaded:
        from . import refer, shape

        if self.text:
            self.read_file()
        for name in sorted(named, key=lambda one: one.startswith(OURS)):  # ours is put over theirs
            self.put_env(name, env[name])
        for name, value in flags.items():
            key = shape.key(shape.split(name))
            self.put(key, value, Source("flag", f"--{key.path[-1].replace('_', '-')}"))
        if not self.problems:
            settings: Settings = shape.build(Settings, self.raw)
            for path, text in refer.problems(settings):
                self.problems.append(f"{self.where(path)}{text}")
            for path, text in refer.doubts(settings):
                self.warnings.append(f"{self.where(path)}{text}")
        if self.problems:
            raise BadSettings(self.problems, warnings=self.warnings)
        return Loaded(settings, self.path, self.text, self.sources, tuple(self.warnings))

    def where(self, path: "Path") -> str:
        """The line, variable or flag that a key, or what is below it, comes from."""
        from .lines import line_of, scan

        if path not in self.sources:
            parts = [one for at, one in self.sources.items() if at[: len(path)] == path]
            written = self.text and any(one.path[: len(path)] == path for one in scan(self.text))
            if parts and not written:  # the table is made of nothing else
                return f"{parts[-1].where}: "
        for length in range(len(path), 0, -1):
            if source := self.sources.get(path[:length]):
                return f"{source.where}: "
        if not self.text:
            return ""
        line = line_of(self.text, path)
        return f"{self.path}:{line}: " if line else f"{self.path}: "

    def read_file(self) -> None:
        from . import shape, toml

        try:
            self.raw = toml.parse(self.text)
        except toml.NotToml as problem:
            raise BadSettings([_syntax(self.path, str(problem))]) from None
        from .foreign import understood
        from .retired import take_over

        for path, told in (*understood(self.raw), *take_over(self.raw)):
            self.warnings.append(f"{self.where(path)}{shape.join(path)} {told}.")
        for finding in shape.check(self.raw):
            where = self.where(finding.path)
            if finding.fatal:
                value = shape.lookup(self.raw, finding.path)
                shown = _shown(shape.key(finding.path), value)
                self.problems.append(f"{where}{finding.text} (got {shown}).")
            else:
                self.warnings.append(f"{where}{_ended(finding.text)} It is ignored.")
        from .lines import scan

        for place in scan(self.text):
            if not place.table:
                self.sources[place.path] = Source("file", f"{self.path}:{place.line}")
        self.warn_if_open()

    def warn_if_open(self) -> None:
        from dragoman.observe.redact import is_secret

        try:
            found = os.stat(self.path)
        except OSError:
            return
        secret = next((path for path in self.sources if is_secret(path[-1])), None)
        if secret and os.name == "posix" and found.st_mode & 0o077:
            mend = f"Run: chmod 600 {self.path}"
            if os.geteuid() not in (0, found.st_uid):
                mend = f"It belongs to {_user(found.st_uid)}, who alone can close it."
            self.warnings.append(
                f"{self.path} holds a secret ({'.'.join(secret)}) and others can read it. {mend}"
            )

    def put_env(self, name: str, text: str) -> None:
        from . import shape

        prefix = OURS if name.startswith(OURS) else THEIRS
        try:
            key = _resolve(name[len(prefix) :])
        except shape.UnknownKey as unknown:
            said = f"{name} in the environment: {unknown.sentence}"
            if prefix == THEIRS:
                self.warnings.append(f"{said} It is ignored.")
            elif not self.put_retired(name, text):
                self.problems.append(said)
            return
        value = shape.read(key.kind, text)
        self.put(key, value, Source("env", name))

    def put_retired(self, name: str, text: str) -> bool:
        """A variable for a key of earlier versions: told, and read as what replaced it."""
        from . import retired, shape

        path = tuple(name[len(OURS) :].split("__"))
        one = retired.find(path)
        if one is None:
            return False
        told = one.told(path)
        self.warnings.append(f"{name} in the environment: {shape.join(path)} {told}.")
        if one.instead and not one.over():
            key = shape.key(one.heir(path))
            self.put(key, shape.read(key.kind, text), Source("env", name))
        return True

    def put(self, key: Any, value: Any, source: Source) -> None:
        from . import shape

        text = shape.problem(key.kind, value)
        if text:
            shown = _shown(key, value)
            name = shape.join(key.path)
            self.problems.append(f"{source.where}: {name} {text} (got {shown}).")
            return
        here = self.raw
        for part in key.path[:-1]:
            below = here.setdefault(part, {})
            if not isinstance(below, dict):
                return  # the file has no table there, which is a problem already told
            here = below
        here[key.path[-1]] = value
        self.sources[key.path] = source


def _user(uid: int) -> str:
    """A user by name, where the system knows one."""
    import pwd

    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"another user (uid {uid})"


def _resolve(tail: str) -> Any:
    """The key behind a variable's name; names in capitals are taken too. Raises UnknownKey."""
    from . import shape

    path = tuple(tail.split("__"))
    try:
        return shape.key(path)
    except shape.UnknownKey:
        lower = tuple(part.lower() for part in path)
        if lower == path:
            raise
        return shape.key(lower)


def _syntax(path: str, text: str) -> str:
    """`(at line 3, column 5)` of the reader's message becomes our file:line form."""
    import re

    found = re.search(r"\(at line (\d+), column (\d+)\)", text)
    if not found:
        return f"{path}: {text}."
    return f"{path}:{found[1]}: column {found[2]}: {text[: found.start()].strip()}."


def _ended(text: str) -> str:
    return text if text.endswith("?") else f"{text}."


def _shown(key: Any, value: Any) -> str:
    import json

    from .redact import misplaced

    text = json.dumps(misplaced(key, value), default=str, ensure_ascii=False)
    return text if len(text) <= 60 else f"{text[:60]}…"
