"""What an agent may do by itself, what a human is asked about, and what is refused."""

import os
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from dragoman.engine.content import ToolCall
from dragoman.engine.events import Mode
from dragoman.engine.faults import Fault, Refused
from dragoman.engine.ports import Judgement, Reach, ToolSpec
from dragoman.holding import Holder

from . import caches
from .guarded import guarded
from .paths import FORBIDDEN, Boundary, within
from .repository import is_top, tame

if TYPE_CHECKING:
    from .commands import Assessment, ProgramRun

_LOOKING = frozenset({"read", "search", "think"})
# They reach nothing but the human, or a command that was allowed before.
_TALKING = frozenset(
    {"ask_user", "escalate_to_human", "plan", "propose_plan", "bash_output", "bash_kill"}
)
_SHELL = frozenset({"bash", "shell"})
_WRITING = frozenset({"write", "edit"})
_ASKING_HOSTS = frozenset({"web_fetch", "web_search"})  # each host is asked about
_TOUCHING = frozenset({"read", "search", "edit", "delete", "move"})
_CHANGING = frozenset({"edit", "delete", "move"})
_PATH_KEYS = frozenset(
    {"path", "paths", "file", "file_path", "filePath", "filename", "directory", "dir", "cwd"}
    | {"root", "source", "destination", "src", "dst", "from", "to", "target"}
    | {"old_path", "new_path"}
)
_COMMAND_KEYS = ("command", "cmd", "script")  # as the tool reads them
_REMEMBERED = 256
_SHIMS = frozenset({"shims", ".shims"})  # asdf, mise, pyenv, rbenv, nodenv, scoop
_MANAGERS = ("asdf", "mise", "rtx", "volta", "proto", "rustup", "jenv", "pkgx", "tea", "vfox")
# Programs that put files into folders and run nothing, so a list may well name them; and what git
# does without that. Others, such as make, run what a folder says in any case.
_LAYING = frozenset("cp mv ln install rsync tar gtar bsdtar unzip cpio patch dd tee git".split())
_STAYING = frozenset("add commit fetch push tag branch notes remote rm prune gc".split())
_BUILT_IN = frozenset("cd echo true false : test printf pwd type".split())
_READ_HINT = "Change the mode to supervised or full to let it act."


class Rules(msgspec.Struct, frozen=True):
    """One agent's policy as the configuration gives it."""

    auto_approve: tuple[str, ...] = ()  # tools that are not asked about; "*": all
    always_ask: tuple[str, ...] = ()  # tools that are asked about whatever else is said; "*": all
    allowed_commands: tuple[str, ...] = ()  # first words of commands that are not asked about
    forbidden_commands: tuple[str, ...] = ()  # first words of what is refused in every mode
    forbidden_paths: tuple[str, ...] = FORBIDDEN
    allowed_roots: tuple[str, ...] = ()
    workspace_only: bool = True  # off in mode full
    block_high_risk: bool = False  # refuse high-risk commands unless allowed by name
    reads_outside: bool = False  # reading outside of the boundary is not asked about
    sealed_paths: tuple[str, ...] = ()  # never written, in no mode
    legible_paths: tuple[str, ...] = ()  # what commands may read and run without a question
    writable_paths: tuple[str, ...] = ()  # what commands may write without a question


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
        self._boundaries: dict[tuple[Any, ...], Boundary] = {}

    def boundary(
        self, mode: Mode, cwd: str, roots: Sequence[str] = (), reach: Sequence[Reach] = ()
    ) -> Boundary:
        """The paths that a session in this mode may touch; `reach`: with what was agreed to.

        It is kept, so that a working directory replaced by a link does not move the boundary.
        Programs among caches come while it is.
        """
        only = self.rules.workspace_only and mode != "full"
        guards = mode != "full"
        key = (only, guards, cwd, tuple(roots))
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
                sealed=self.rules.sealed_paths,
                legible=self.rules.legible_paths,
                writable=self.rules.writable_paths,
                reads_outside=self.rules.reads_outside,
                guards=guards,
            )
        found = self._boundaries[key] = found.sealing(caches.programs(self.home))
        return found.wider(reach) if reach else found

    def judge(
        self,
        call: ToolCall,
        spec: ToolSpec,
        *,
        mode: Mode,
        cwd: str,
        roots: Sequence[str],
        plan: str = "",
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
        if mode == "plan" and spec.kind not in _LOOKING and spec.name not in _ASKING_HOSTS:
            if spec.name in _WRITING and _only(plan, args, boundary):
                return Judgement("allow", files=(plan,))
            why = f"In plan mode nothing is written but {plan or 'the plan'}, and nothing is run."
            return Judgement("deny", f"{why} When the plan is ready, call propose_plan.", "medium")
        if names & _SHELL:
            command = next((args[key] for key in _COMMAND_KEYS if args.get(key)), "")
            return self._shell(str(command), names, mode, boundary)
        if spec.name == "web_fetch" and mode != "full":
            host = _host(args.get("url"))
            if not self._approves(names) or self._asks_always(names):
                about = ((host,),) if host else ()
                return Judgement("ask", f"It asks {host or 'the network'}.", "medium", (), about)
        touched = _Touched()
        if spec.kind in _TOUCHING:
            touched = _touched(args, boundary, spec.kind in _CHANGING)
            if touched.denied:
                return Judgement("deny", touched.denied, "high")
            if touched.outside and mode == "readonly":
                return Judgement("deny", touched.outside, "high")
        if mode == "full":
            return Judgement("allow")
        risk: Any = "high" if touched.asked else _risk_of(spec)
        access: Any = "write" if spec.kind in _CHANGING else "read"
        firm = mode != "readonly" and self._asks_always(names)
        if not firm and not touched.asked and (spec.kind in _LOOKING or self._approves(names)):
            return Judgement("allow")
        usual = "is in always_ask." if firm else "needs your approval."
        return Judgement(
            "ask",
            touched.asked or f"{spec.name} {usual}",
            risk,
            tuple(touched.reach),
            files=tuple(touched.files),
            access=access,
            # What makes other programs run is asked about each time, whatever was remembered.
            firm=firm or bool(touched.guarded),
        )

    def _asks_always(self, names: set[str]) -> bool:
        return "*" in self.rules.always_ask or not names.isdisjoint(self.rules.always_ask)

    def _approves(self, names: set[str]) -> bool:
        return "*" in self.rules.auto_approve or not names.isdisjoint(self.rules.auto_approve)

    def _shell(self, command: str, names: set[str], mode: Mode, boundary: Boundary) -> Judgement:
        # The grammar of shells: milliseconds that no session needs before its first command.
        from .commands import assess, forbids
        from .mentions import mentioned

        rules = self.rules
        found = self._known(assess(command), boundary)
        for part in found.parts:
            if pattern := forbids(part, rules.forbidden_commands):
                reason = f"The command {part.name} is forbidden ({pattern})."
                return Judgement("deny", reason, "high")
        listed = self._listed(found)
        if rules.block_high_risk and found.risk == "high" and not listed:
            return Judgement("deny", f"High-risk commands are blocked. {found.reason}", "high")
        touched = _Touched()
        for one in mentioned(found, command, boundary.cwd, self.home):
            if one.program:
                touched.run(one.path, boundary)
            else:
                touched.add(one.path, one.write, boundary, command=True, may=one.may)
        if touched.denied:
            reason = f"The command names a path out of reach. {touched.denied}"
            return Judgement("deny", reason, "high")
        hidden = found.kind == "unknown" and bool(rules.forbidden_commands)
        if mode == "full":
            if hidden:
                reason = f"Some commands are forbidden, and this one hides. {found.reason}"
                return Judgement("deny", reason, "high")
            return Judgement("allow", risk=found.risk)
        # A rule about first words is for commands that are known and write no file by redirection.
        # Programs that only start others count too: `env git add` does not begin with `git add`.
        known = found.kind != "unknown" and not found.writes
        words = tuple(part.argv for part in found.parts) if known else ()
        asked = touched.asked or (found.reason if found.kind == "unknown" else "")
        # A file may be written as by the tool `write`.
        approved = listed and (not found.writes or self._approves({"write", "edit"}))
        approved = approved or self._approves(names & _SHELL) and found.risk != "high"
        risk = "high" if asked else found.risk
        firm = self._asks_always(names) or bool(touched.guarded)
        if not asked and approved and not firm:
            return Judgement("allow", risk=risk)
        reason = asked or found.reason
        if not reason:
            reason = "bash is in always_ask." if approved else "Commands need your approval."
        return Judgement("ask", reason, risk, tuple(touched.reach), words, firm=firm)

    def _known(self, found: "Assessment", boundary: Boundary) -> "Assessment":
        """The same with what only the place can tell: whose program it is, what git is told."""
        from .mentions import folders

        lays = "What it writes" if found.writes else ""
        for part in found.parts:
            why = ""
            if part.plain and "/" not in part.argv[0] and _replaced(part.name, boundary):
                why = f"{part.name} would be a program of the working directory."
            elif lays and part.plain and _looked_for_here(part, boundary):
                why = f"{lays} may put a program of the name {part.name} where it is looked for."
            elif part.name == "git" and part.kind == "low":
                places = folders(found, boundary.cwd, self.home)
                if not all(map(tame, places)):
                    why = "The configuration of this repository may make git run something."
                elif lays and not all(map(is_top, places)):
                    why = f"{lays} may make this folder a repository that has git run something."
            if why:
                return msgspec.structs.replace(found, kind="unknown", reason=why)
            if part.name in _LAYING and part.kind != "low":
                idle = part.name == "git" and part.argv[1:2] and part.argv[1] in _STAYING
                lays = lays if idle else part.name
        asks = (part.name for part in found.parts if _asks_folder(part))
        if found.kind == "low" and (name := next(asks, "")):
            why = f"{name} stands for another program, which files of this folder choose."
            return msgspec.structs.replace(found, kind="medium", reason=why)
        return found

    def _listed(self, found: "Assessment") -> bool:
        """Every program is in allowed_commands; one of high risk by its name, not by "*"."""
        if not self.rules.allowed_commands or found.kind == "unknown":
            return False
        return all(self._lists(part) for part in found.parts if not part.passes)

    def _lists(self, part: "ProgramRun") -> bool:
        from .commands import matches

        if part.name == "cd":
            return True  # it goes somewhere; what happens there is judged by itself
        pattern = matches(part, self.rules.allowed_commands, strict=True)
        return bool(pattern) and not (pattern == "*" and part.kind == "high")


def _replaced(name: str, boundary: Boundary) -> bool:
    """Whether a bare name would find a program that the agent itself may have written."""
    from .programs import STARTS

    names = {name, STARTS.get(name, name)}
    for folder in os.environ.get("PATH", "").split(os.pathsep):
        if os.path.isabs(folder) and any(within(folder, root) for root in boundary.roots):
            if any(os.path.lexists(os.path.join(folder, one)) for one in names):
                return True
    return False


def _looked_for_here(part: "ProgramRun", boundary: Boundary) -> bool:
    """Whether a bare name is looked for in a folder that commands write."""
    if part.name in _BUILT_IN or "/" in part.argv[0]:
        return False
    folders = os.environ.get("PATH", "").split(os.pathsep)
    return any(os.path.isabs(one) and within(one, root) for one in folders
               for root in boundary.roots)  # fmt: skip


def _asks_folder(part: "ProgramRun") -> bool:
    """Whether a program is one of a version manager's: the folder says which one it starts."""
    from .programs import VERSIONS

    if part.name not in VERSIONS or "/" in part.argv[0]:
        return False
    for folder in os.environ.get("PATH", "").split(os.pathsep):
        place = os.path.join(folder, part.name)
        if os.path.isabs(folder) and os.path.exists(place):
            behind = os.path.basename(os.path.realpath(place))
            return os.path.basename(folder) in _SHIMS or behind.startswith(_MANAGERS)
    return False


def _risk_of(spec: ToolSpec) -> Any:
    if spec.kind in ("delete", "execute"):
        return "high"
    return "low" if spec.kind in _LOOKING else "medium"


def _host(url: object) -> str:
    """The host that an address names, as rules know it."""
    from urllib.parse import urlsplit

    try:
        return (urlsplit(str(url)).hostname or "").rstrip(".").lower()
    except ValueError:
        return ""


class _Touched(Holder):
    """What speaks against the paths of a call, and what it needs outside of the boundary."""

    denied: str = ""
    outside: str = ""
    guarded: str = ""
    files: list[str] = []  # inside of the boundary
    reach: list[Reach] = []

    @property
    def asked(self) -> str:
        return self.outside or self.guarded

    def add(
        self,
        path: str,
        write: bool,
        boundary: Boundary,
        command: bool = False,
        may: bool = False,
    ) -> None:
        """`may`: nobody knows whether it is written; what is only legible then stays so."""
        considered = self._considered(path, write, boundary, command)
        if considered is None:
            return
        real, reason, final = considered
        if reason and final:
            self.denied = self.denied or reason
        elif reason:
            folder = real if os.path.isdir(real) else os.path.dirname(real)
            verb = "writing" if write else "reading and writing" if may else "reading"
            self.outside = self.outside or f"{reason} Allow {verb} {folder}?"
            changes = write or may
            self.reach.append(Reach(folder if changes else real, changes, folder))
        elif (write or may) and guarded(real, boundary.roots):
            what = "may write" if command else "writes"
            why = "which can make other programs run something"
            self.guarded = self.guarded or f"It {what} {real}, {why}."
            if command:  # what was agreed to is neither locked nor undone
                self.reach.append(Reach(real, True, real))
        if not reason:
            self.files.append(real)

    def run(self, path: str, boundary: Boundary) -> None:
        """A program that is called by its path."""
        considered = self._considered(path, False, boundary, command=True)
        if considered is None:
            return
        real, reason, final = considered
        if not reason or boundary.runs(path):  # running a program is not reaching outside
            return
        if final:
            self.denied = self.denied or reason
        else:
            folder = os.path.dirname(real)
            self.outside = self.outside or f"{reason} Allow running it?"
            self.reach.append(Reach(real, False, folder))

    def _considered(
        self, path: str, write: bool, boundary: Boundary, command: bool
    ) -> tuple[str, str, bool] | None:
        """What the boundary says of a path; None when it does not even get to that."""
        try:
            found = boundary.consider(path, write, command=command)
            if not found[1] and not command:
                boundary.resolve(path, write)
        except Refused as fault:
            self.denied = self.denied or fault.hint
            return None
        except Fault as fault:
            if command:
                self.outside = self.outside or fault.message
            return None  # the tool says what is wrong with it
        return found


def _only(path: str, args: dict[str, Any], boundary: Boundary) -> bool:
    """Whether a call writes this one file, and no link leads elsewhere."""
    named = [args[key] for key in args if key in _PATH_KEYS]
    if not path or len(named) != 1 or not isinstance(named[0], str):
        return False
    try:
        return boundary.resolve(named[0], write=True) == path
    except Fault:
        return False


def _touched(args: dict[str, Any], boundary: Boundary, write: bool) -> _Touched:
    """What a tool's arguments name."""
    found = _Touched()
    for key, value in args.items():
        if key not in _PATH_KEYS:
            continue
        for path in value if isinstance(value, list) else (value,):
            if isinstance(path, str) and path:
                found.add(path, write, boundary)
    return found
