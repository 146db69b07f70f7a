"""Commands that get work done."""

from ..parse import Arg, Command, Flag
from .sessions import subs
from .shared import AGENT, APPROVE, COMMON, CONFIG_DIR, NEW_SESSION, filled

GROUP = "Work"


def _cron() -> Command:
    job = Arg("id", "the schedule's id, enough of its beginning, or its name")
    return Command(
        "cron",
        "prompts that run by themselves: at a time, at intervals, by a cron expression",
        text=(
            "The daemon runs them, each in a session of its own that every client sees. A time\n"
            "that passed while no daemon ran is made up for; intervals go on from then."
        ),
        default="list",
        flags=COMMON,
        subs=(
            Command("list", "what is to run, and when", example="dragoman cron list --json"),
            Command(
                "add",
                "have a prompt run: one of --at, --every, --cron",
                example='dragoman cron add --cron "30 7 * * mon-fri" "what changed yesterday?"',
                args=(Arg("prompt", "what the agent is to do", many=True),),
                flags=(
                    Flag("at", "a time: 2026-01-31T12:00, 12:30, or: in 2h", metavar="TIME"),
                    Flag("every", "an interval: 90s, 15m, 1h30m, 2d", metavar="INTERVAL"),
                    Flag("cron", "five fields: minute hour day month weekday", metavar="EXPR"),
                    Flag("tz", "the time zone of --cron, such as Europe/Berlin", metavar="ZONE"),
                    Flag("name", "what to call it", metavar="NAME"),
                    AGENT,
                    Flag(
                        "cwd",
                        "the working directory (default: this one)",
                        metavar="DIR",
                        kind=filled,
                    ),
                    Flag(
                        "session", "go on with this session each time", metavar="ID", kind=filled
                    ),  # fmt: skip
                ),
            ),
            Command("remove", "forget one", example="dragoman cron remove job_9d41", args=(job,)),
            Command(
                "trigger",
                "run one now and show its answer",
                example="dragoman cron trigger job_9d41",
                args=(job,),
            ),
            Command(
                "runs",
                "when one ran, how that ended, and in which session",
                example="dragoman cron runs job_9d41",
                args=(job,),
                flags=(Flag("limit", "so many of them (default 20)", kind=int, metavar="N"),),
            ),
            Command("pause", "keep one, run it not", example="dragoman cron pause j", args=(job,)),
            Command("resume", "run it again", example="dragoman cron resume j", args=(job,)),
        ),
    )


def commands() -> tuple[Command, ...]:
    return (
        _cron(),
        Command(
            "terminal",
            "live in it: conversation, approvals, all sessions (also: dragoman alone)",
            example='dragoman terminal "what is this project?"',
            text=(
                "`dragoman` alone opens it in this folder, `dragoman -c` goes on with your\n"
                "newest session there, `dragoman -r` lets you pick one, a sentence is a prompt.\n"
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
                *NEW_SESSION,
                Flag("plain", "lines only, for screen readers and simple terminals", kind=bool),
                Flag("vi", "vi keys in the editor", kind=bool),
                Flag("light", "colours for a light background", kind=bool),
                Flag("dark", "colours for a dark background", kind=bool),
            ),
        ),
        Command(
            "run",
            "one turn in the terminal: streams the answer, asks for approvals here",
            runs="cli.run.terminal:main",
            text=(
                "With a prompt, standard input is given along as context: git diff | dragoman run\n"
                '"review this". Files that the prompt names with @ are given along, too.\n'
                "Exit code 3: the model refused, or its answer was cut."
            ),
            example='dragoman run "list the files here and tell me what this project is"',
            args=(Arg("prompt", "what the agent is to do", many=True, optional=True),),
            flags=(
                CONFIG_DIR,
                Flag("json", "print events as one JSON object per line", kind=bool),
                *NEW_SESSION,
                Flag(
                    "session",
                    "go on in this session (its id or beginning)",
                    metavar="ID",
                    kind=filled,
                ),  # fmt: skip
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
            example="dragoman sessions --json",
            default="list",
            flags=COMMON,
            subs=subs(),
        ),
    )
