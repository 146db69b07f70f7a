"""Questions to humans: what is asked, how far an answer may reach, and who gave it."""

from typing import Any, Literal

import msgspec

AskKind = Literal["tool", "question"]
Verdict = Literal[
    "allow",
    "allow_always",
    "deny",
    "deny_always",
    "edit",  # the tool does not run; `text` becomes its result
    "answer",  # reply to a question, in `text`
    "cancelled",  # dismissed, or the turn was cancelled
    "expired",
]
ScopeKind = Literal["exact", "prefix", "file", "folder", "tool"]
Access = Literal["read", "write"]
Lasts = Literal["session", "project", "agent"]
LASTS: tuple[Lasts, ...] = ("session", "project", "agent")
LASTING: dict[Lasts, str] = {
    "session": "in this session",
    "project": "in this project",
    "agent": "by this agent, everywhere",
}


# The comment of a client that answers because nobody sits at it.
NOBODY = "nobody could be asked"


class Who(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """The client behind an act: its dialect, how it is connected, the name it gave, and the node
    of a fleet that it is connected to.
    """

    dialect: str
    peer: str = ""
    name: str = ""
    id: str = ""
    node: str = ""

    def __str__(self) -> str:
        name = self.name or self.peer or self.id
        said = f"{name} over {self.dialect}" if name else self.dialect
        return f"{said} on {self.node}" if self.node else said


class Scope(msgspec.Struct, frozen=True, omit_defaults=True):
    """How far an answer that is remembered reaches. `words` says it to a human."""

    id: str  # names it in an answer
    kind: ScopeKind
    words: str
    argv: tuple[str, ...] = ()  # prefix: the words that commands begin with
    path: str = ""  # file, folder: canonical
    access: Access = "write"  # file, folder
    lasts: tuple[Lasts, ...] = LASTS  # how long it can be remembered
    reach: tuple[tuple[str, Access], ...] = ()  # exact: what it needs outside


class Seen(msgspec.Struct, frozen=True, gc=False):
    """A file as it was when a question about it was made. No hash: there was none."""

    path: str
    hash: str = ""


class Change(msgspec.Struct, frozen=True, gc=False, omit_defaults=True):
    """What a call would do to one place of a file. `old` is None for a new file."""

    path: str
    old: str | None
    new: str
    line: int = 1  # of the file, where `old` begins
    note: str = ""  # what cannot be said by lines: a binary file, a link


class Ask(msgspec.Struct, frozen=True, omit_defaults=True):
    """A question to a human. Stored until somebody answers; the first answer wins.

    `args` are those that will run, `changes` the difference against the files as they are now, and
    `digest` stands for both: what runs has the same digest, or is asked about again.
    """

    id: str
    session: str
    kind: AskKind
    title: str
    at: int
    turn: str = ""
    call_id: str = ""
    tool: str = ""
    args: dict[str, Any] | None = None
    written: str = ""  # the arguments as a client wrote them (JSON), to be given back as they were
    summary: str = ""
    choices: tuple[str, ...] = ()
    risk: str = ""
    reason: str = ""
    expires_at: int | None = None
    # Asked by a client: no tool call of ours waits.
    external: bool = False
    cwd: str = ""
    changes: tuple[Change, ...] = ()
    digest: str = ""
    scopes: tuple[Scope, ...] = ()  # what can be remembered; the first when none is named
    firm: bool = False  # asked every time (always_ask): nothing can be remembered
    url: str = ""  # where the human is to go; the first choice says that they went
    of_call: str = ""  # the call on whose behalf it is asked, when it is not about that call


class AskReply(msgspec.Struct, frozen=True):
    """What somebody answers.

    An answer for always is remembered as far as `scope` says (one that the question offers; none:
    the narrowest) and as long as `lasts` says. `digest` is that of the question that was looked at.
    """

    ask_id: str
    verdict: Verdict
    by: Who | None
    comment: str = ""
    text: str = ""
    scope: str = ""
    lasts: str = ""
    digest: str = ""


class Rule(msgspec.Struct, frozen=True, omit_defaults=True):
    """A remembered answer. `words` says what it covers, `lasts` how long."""

    id: str
    kind: ScopeKind
    tool: str
    words: str
    lasts: Lasts
    agent: str
    session: str = ""  # when it lasts as long as the session
    project: str = ""  # the working directory, when it lasts with the project
    deny: bool = False
    argv: tuple[str, ...] = ()
    path: str = ""
    access: Access = "write"
    args: str = ""  # exact: the hash of the arguments
    reach: tuple[tuple[str, Access], ...] = ()  # exact: the places outside that were agreed to
    at: int = 0
    by: Who | None = None
    ask: str = ""  # the question that it answered

    @property
    def sentence(self) -> str:
        return f"{self.words} {LASTING[self.lasts]}"
