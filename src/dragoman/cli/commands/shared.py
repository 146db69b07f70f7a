"""Flags that several commands have."""

from ..parse import Flag

MODES = ("readonly", "plan", "supervised", "full")
EFFORTS = ("off", "minimum", "low", "medium", "high", "xhigh", "max")

KINDS = ("session", "approval", "agent", "key")  # of values that completions look up


def filled(word: str) -> str:
    """A word that says something: an empty one comes from a variable that was not set."""
    if not word.strip():
        raise ValueError("must not be empty")
    return word


CONFIG_DIR = Flag(
    "config-dir", "directory of config.toml; data goes to its data/", metavar="DIR", kind=filled
)
JSON = Flag("json", "print JSON for programs", kind=bool)
AGENT = Flag("agent", "the agent to use", metavar="ALIAS")
COMMON = (CONFIG_DIR, JSON)
NEW_SESSION = (
    AGENT,
    Flag("cwd", "the working directory", metavar="DIR", kind=filled),
    Flag("model", "use this model", metavar="REF"),
    Flag("mode", "how much the agent may do by itself", choices=MODES),
    Flag("worktree", "work in a git worktree and a branch of its own", kind=bool),
)
STATUSES = (
    "idle",
    "starting",
    "running",
    "waiting_input",
    "interrupting",
    "interrupted",
    "completed",
    "failed",
)
APPROVE = Flag(
    "approve",
    "who answers approvals: you (ask), yes to all, or no to all",
    metavar="RULE",
    choices=("ask", "all", "none"),
)


def positive(word: str) -> int:
    """A whole number of at least 1."""
    return _number(word, 1)


def counted(word: str) -> int:
    """A whole number of at least 0."""
    return _number(word, 0)


def _number(word: str, least: int) -> int:
    try:
        number = int(word)
    except ValueError:
        number = least - 1
    if number < least:
        raise ValueError(f"must be a whole number of at least {least} (got {word!r})")
    return number
