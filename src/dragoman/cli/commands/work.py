"""Commands that get work done."""

from ..parse import Arg, Command, Flag
from .sessions import subs
from .shared import AGENT, APPROVE, COMMON, CONFIG_DIR, MODES

GROUP = "Work"


def commands() -> tuple[Command, ...]:
    return (
        Command(
            "run",
            "one turn in the terminal: streams the answer, asks for approvals here",
            group=GROUP,
            example='dragoman run "list the files here and tell me what this project is"',
            args=(Arg("prompt", "what the agent is to do", many=True, optional=True),),
            flags=(
                CONFIG_DIR,
                Flag("json", "print events as one JSON object per line", kind=bool),
                AGENT,
                Flag("cwd", "the working directory", metavar="DIR"),
                Flag("model", "use this model", metavar="REF"),
                Flag("mode", "how much the agent may do by itself", choices=MODES),
                Flag("session", "go on in this session (its id or beginning)", metavar="ID"),
                Flag("continue", "go on in the newest session of this directory", kind=bool),
                APPROVE,
                Flag("demo", "show one whole turn with the embedded model", kind=bool),
            ),
        ),
        Command(
            "sessions",
            "list, read, drive and export sessions",
            group=GROUP,
            example="dragoman sessions --json",
            default="list",
            flags=COMMON,
            subs=subs(),
        ),
    )
