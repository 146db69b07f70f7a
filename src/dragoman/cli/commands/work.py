"""Commands that get work done."""

from ..parse import Arg, Command, Flag
from .sessions import subs
from .shared import AGENT, APPROVE, COMMON, CONFIG_DIR, MODES

GROUP = "Work"


def commands() -> tuple[Command, ...]:
    return (
        Command(
            "terminal",
            "live in it: conversation, approvals, all sessions (also: dragoman alone)",
            group=GROUP,
            example='dragoman terminal "what is this project?"',
            text=(
                "`dragoman` alone opens it in this folder, `dragoman -c` goes on with the newest\n"
                "session of the folder, `dragoman -r` lets you pick one, a sentence is a prompt.\n"
                "A daemon is started when none runs. /help inside tells the keys."
            ),
            args=(
                Arg(
                    "prompt",
                    "the first prompt, or with -r a session's id",
                    many=True,
                    optional=True,
                ),
            ),
            flags=(
                CONFIG_DIR,
                Flag(
                    "continue", "go on with the newest session of this folder", short="c", kind=bool
                ),
                Flag(
                    "resume",
                    "pick a session, or go on with the one that is named",
                    short="r",
                    kind=bool,
                ),
                AGENT,
                Flag("cwd", "the working directory", metavar="DIR"),
                Flag("model", "use this model", metavar="REF"),
                Flag("mode", "how much the agent may do by itself", choices=MODES),
                Flag("plain", "lines only, for screen readers and simple terminals", kind=bool),
                Flag("vi", "vi keys in the editor", kind=bool),
                Flag("light", "colours for a light background", kind=bool),
                Flag("dark", "colours for a dark background", kind=bool),
            ),
        ),
        Command(
            "run",
            "one turn in the terminal: streams the answer, asks for approvals here",
            group=GROUP,
            text=(
                "With a prompt, standard input is given along as context: git diff | dragoman run\n"
                '"review this". Files that the prompt names with @ are given along, too.'
            ),
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
                Flag(
                    "continue",
                    "go on in the newest session of this directory",
                    short="c",
                    kind=bool,
                ),
                Flag("image", "give a picture along", metavar="FILE", many=True),
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
