"""What an agent may do by itself, what a human is asked about, and what is refused."""

import os
from collections.abc import Iterable, Sequence
from typing import Any

import msgspec

from dragoman.engine.content import ToolCall
from dragoman.engine.events import Mode
from dragoman.engine.faults import Fault, Refused
from dragoman.engine.ports import Judgement, ToolSpec

from .commands import Assessment, assess, matches
from .mentions import mentioned
from .paths import FORBIDDEN, Boundary
from .reading import Unknown, read

_LOOKING = frozenset({"read", "search", "think"})
_TALKING = frozenset({"ask_user", "plan"})  # they reach nothing but the human
_SHELL = frozenset({"bash", "shell"})
_TOUCHING = frozenset({"read", "search", "edit", "delete", "move"})
_CHANGING = frozenset({"edit", "delete", "move"})
_PATH_KEYS = frozenset(
    {"path", "paths", "file", "file_path", "filePath", "filename", "directory", "dir", "cwd"}
    | {"root", "source", "destination", "src", "dst", "from", "to", "target"}
    | {"old_path", "new_path"}
)
_COMMAND_KEYS = ("command", "cmd", "script")  # as the tool reads them
_REMEMBERED = 256
_READ_HINT = "Change the mode to supervised or full to let it act."


class Rules(msgspec.Struct, frozen=True):
    """One agent's policy as the configuration gives it."""

    auto_approve: tuple[str, ...] = ()  # tools that are not asked about; "*": all
    always_ask: tuple[str, ...] = ()  # tools that are asked about whatever else is said; "*": all
    allowed_commands: tuple[str, ...] = ()  # programs or whole lines, as globs, not asked about
    forbidden_commands: tuple[str, ...] = ()  # refused in every mode
    forbidden_paths: tuple[str, ...] = FORBIDDEN
    allowed_roots: tuple[str, ...] = ()
    workspace_only: bool = True  # off in mode full
    block_high_risk: bool = False  # refuse high-risk commands unless allowed by name


class AutonomyPolicy:
    """The rules of one agent, applied to calls (`ports.Policy`)."""

    __slots__ = ("_boundaries", "home", "protected", "readable", "rules")

    def __init__(
        self,
        rules: Rules | None = None,
        *,
        protected: Iterable[str] = (),
        readable: Iterable[str] = (),
        home: str | None = None,
    ) -> None:
        """`protected`: our configuration and data; `readable`: roots for reading only."""
        self.rules = rules or Rules()
        self.protected = tuple(protected)
        self.readable = tuple(readable)
        self.home = home or os.path.expanduser("~")
        self._boundaries: dict[tuple[bool, str, tuple[str, ...]], Boundary] = {}

    def boundary(self, mode: Mode, cwd: str, roots: Sequence[str] = ()) -> Boundary:
        """The paths that a session in this mode may touch.

        It is kept, so that a working directory replaced by a link does not move the boundary.
        """
        only = self.rules.workspace_only and mode != "full"
        key = (only, cwd, tuple(roots))
        found = self._boundaries.get(key)
        if found is None:
            if len(self._boundaries) >= _REMEMBERED:
                self._boundaries.pop(next(iter(self._boundaries)))
            found = self._boundaries[key] = Boundary(
                cwd,
                (*roots, *self.rules.allowed_roots),
                self.rules.forbidden_paths,
                only,
                self.protected,
                self.readable,
                self.home,
            )
        return found

    def judge(
        self, call: ToolCall, spec: ToolSpec, *, mode: Mode, cwd: str, roots: Sequence[str]
    ) -> Judgement:
        """Allow, ask or deny one call."""
        names = {call.name, spec.name}
        if names & _SHELL:
            names |= _SHELL
        if names & _TALKING:
            return Judgement("allow")
        if mode == "readonly" and spec.kind not in _LOOKING:
            return Judgement(
                "deny", f"{spec.name} is not available in readonly mode. {_READ_HINT}", "medium"
            )
        args = call.args or {}
        boundary = self.boundary(mode, cwd, roots)
        if names & _SHELL:
            command = next((args[key] for key in _COMMAND_KEYS if args.get(key)), "")
            return self._shell(str(command), names, mode, boundary)
        if spec.kind in _TOUCHING:
            reason = _trespass(args, boundary, spec.kind in _CHANGING)
            if reason:
                return Judgement("deny", reason, "high")
        if mode == "full":
            return Judgement("allow")
        if mode == "supervised" and self._asks_always(names):
            return Judgement("ask", f"{spec.name} is in always_ask.", _risk_of(spec), firm=True)
        if spec.kind in _LOOKING or self._approves(names):
            return Judgement("allow")
        reason = f"{spec.name} needs your approval."
        files = _files(args, boundary) if spec.kind in _TOUCHING else ()
        access: Any = "write" if spec.kind in _CHANGING else "read"
        return Judgement("ask", reason, _risk_of(spec), files=files, access=access)

    def _asks_always(self, names: set[str]) -> bool:
        return "*" in self.rules.always_ask or not names.isdisjoint(self.rules.always_ask)

    def _approves(self, names: set[str]) -> bool:
        return "*" in self.rules.auto_approve or not names.isdisjoint(self.rules.auto_approve)

    def _shell(self, command: str, names: set[str], mode: Mode, boundary: Boundary) -> Judgement:
        rules = self.rules
        found = assess(command)
        for part in found.parts:
            pattern = matches(part, rules.forbidden_commands, strict=False)
            if pattern and part.name not in ("=", "<", ">", "&"):
                reason = f"The command {part.name} is forbidden ({pattern})."
                return Judgement("deny", reason, "high")
        listed = self._listed(found)
        if rules.block_high_risk and found.risk == "high" and not listed:
            return Judgement("deny", f"High-risk commands are blocked. {found.reason}", "high")
        outside = ""
        for path in mentioned(found.parts, boundary.cwd, self.home):
            reason, final = _objection(path, boundary)
            if reason and final:
                return Judgement("deny", f"The command names a path out of reach. {reason}", "high")
            outside = outside or reason
        if mode == "full":
            if not found.certain and rules.forbidden_commands:
                reason = f"Some commands are forbidden, and this one hides. {found.reason}"
                return Judgement("deny", reason, "high")
            return Judgement("allow", risk=found.risk)
        if self._asks_always(names):
            reason = found.reason or "bash is in always_ask."
            return Judgement("ask", reason, found.risk, firm=True)
        if outside:
            return Judgement("ask", outside, "high")
        if listed or (self._approves(names) and found.risk != "high"):
            return Judgement("allow", risk=found.risk)
        reason = found.reason or "Commands need your approval."
        return Judgement("ask", reason, found.risk, commands=argvs(command))

    def _listed(self, found: Assessment) -> bool:
        """Every program is in allowed_commands; one of high risk by its name, not by "*"."""
        if not self.rules.allowed_commands or not found.certain:
            return False
        for part in found.parts:
            if part.name in ("=", "<", ">", "&"):
                if part.risk == "high":
                    return False
                continue
            pattern = matches(part, self.rules.allowed_commands, strict=True)
            if not pattern or (pattern == "*" and part.risk == "high"):
                return False
        return True


def _risk_of(spec: ToolSpec) -> Any:
    if spec.kind in ("delete", "execute"):
        return "high"
    return "low" if spec.kind in _LOOKING else "medium"


def _trespass(args: dict[str, Any], boundary: Boundary, write: bool) -> str:
    """Why a path among the arguments may not be touched; empty when all may."""
    for key, value in args.items():
        if key not in _PATH_KEYS:
            continue
        for path in value if isinstance(value, list) else (value,):
            if not isinstance(path, str) or not path:
                continue  # the tool says what is wrong with it
            try:
                boundary.resolve(path, write)
            except Refused as fault:
                return str(fault)
            except Fault:
                continue
    return ""


def _files(args: dict[str, Any], boundary: Boundary) -> tuple[str, ...]:
    """The files among the arguments, canonical."""
    found: list[str] = []
    for key in _PATH_KEYS & args.keys():
        value = args[key]
        for path in value if isinstance(value, list) else (value,):
            if isinstance(path, str) and path:
                try:
                    found.append(boundary.resolve(path))
                except Fault:
                    return ()  # the tool says what is wrong with it
    return tuple(found)


def argvs(command: str) -> tuple[tuple[str, ...], ...]:
    """The words of every program of a plain command that writes nowhere by redirection."""
    try:
        found = read(command)
    except Unknown:
        return ()
    for simple in found:
        if any(word.glob for word in simple.words[:1]) or any(
            not one.copies and one.target != os.devnull for one in simple.redirects
        ):
            return ()
    return tuple(simple.argv for simple in found)


def _objection(path: str, boundary: Boundary) -> tuple[str, bool]:
    """What speaks against a path that a command names, and whether that is final."""
    try:
        return boundary.consider(path)[1:]
    except Refused as fault:
        return fault.hint, True
    except Fault as fault:
        return fault.message, False
