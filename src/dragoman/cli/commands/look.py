"""Commands that show what goes on, and answer it."""

from ..parse import Arg, Command, Flag
from .shared import AGENT, COMMON, CONFIG_DIR, counted

GROUP = "Look and answer"


def commands() -> tuple[Command, ...]:
    ask = Arg("id", "the approval's id, or enough of its beginning")
    return (
        Command(
            "status",
            "what the running daemon does",
            example="dragoman status --json",
            flags=COMMON,
        ),
        Command(
            "dialects",
            "the protocols that are spoken: where, and what brings them",
            example="dragoman dialects --json",
            text=(
                "Packages bring more of them by an entry point of the group dragoman.dialects.\n"
                "Exit code 1: one of them cannot be used; the reason is on standard error."
            ),
            flags=COMMON,
        ),
        Command(
            "doctor",
            "check the installation; each row says how to repair it",
            example="dragoman doctor --attack",
            text=(
                "Exit code 0: all is well, 1: something needs repair. Nothing is changed.\n"
                "--attack tries every known way out of the sandbox, in a folder made for it,\n"
                "and says which are stopped on this machine."
            ),
            flags=(*COMMON, Flag("attack", "try to break out of the sandbox", kind=bool)),
        ),
        Command(
            "fleet",
            "the nodes that share a database, and where sessions go on",
            example="dragoman fleet --json",
            text="Asks the database that [fleet] database names; no daemon needs to run here.",
            default="list",
            flags=COMMON,
            subs=(
                Command("list", "nodes, sessions, lag, version", example="dragoman fleet"),
                Command(
                    "drain",
                    "have a node give its sessions away, each when its turn is over",
                    example="dragoman fleet drain laptop",
                    args=(Arg("node", "the node's name"),),
                    flags=(Flag("back", "take sessions again", kind=bool),),
                ),
                Command(
                    "move",
                    "have a session go on on another node",
                    example="dragoman fleet move 7c1d90b2 server",
                    args=(
                        Arg("session", "the session's id, or enough of its beginning"),
                        Arg("node", "the node's name"),
                    ),
                ),
                Command(
                    "grant",
                    "let a role of the database work with sessions, or only ask for it",
                    example="dragoman fleet grant front dragoman_front",
                    text=(
                        "host: reads and writes sessions. front: reads, and writes commands and\n"
                        "answers for hosts; a daemon with such a role runs nothing itself.\n"
                        "To be run with the role that owns the tables."
                    ),
                    args=(
                        Arg("kind", "what it may do", choices=("host", "front")),
                        Arg("role", "the role's name in the database"),
                    ),
                ),
            ),
        ),
        Command(
            "approvals",
            "questions that wait for an answer, and answers that are remembered",
            example="dragoman approvals --watch",
            text="The list says how much of a long question it leaves out; `show` prints it whole.",
            default="list",
            flags=(
                *COMMON,
                Flag("watch", "stay, show new ones, answer them here", kind=bool, short="w"),
                Flag("all", "the answered ones too", kind=bool),
            ),
            subs=(
                Command("list", "what waits"),
                Command(
                    "show",
                    "one question whole: the command, the difference, what can be remembered",
                    example="dragoman approvals show ask_9d41c0",
                    args=(ask,),
                ),
                Command(
                    "rules",
                    "answers that are remembered; `rules remove ID` withdraws one",
                    example="dragoman approvals rules remove rule_41c09d",
                    args=(
                        Arg("action", "what to do", optional=True, choices=("list", "remove")),
                        Arg("id", "the rule's id, or enough of its beginning", optional=True),
                    ),
                ),
            ),
        ),
        Command(
            "approve",
            "answer yes to an approval",
            example="dragoman approve ask_9d41c0",
            args=(ask,),
            flags=(
                *COMMON,
                Flag("always", "and remember it: this exact command, this file", kind=bool),
                Flag(
                    "scope",
                    "remember more: prefix, folder, tool (approvals show tells which)",
                    metavar="SCOPE",
                ),
                Flag("for", "how long it is remembered", choices=("session", "project", "agent")),
                Flag("digest", "what was seen; needed for a long question", metavar="DIGEST"),
                Flag("comment", "a word to the agent", metavar="TEXT"),
            ),
        ),
        Command(
            "deny",
            "answer no to an approval",
            runs="cli.verbs.approve:deny",
            example='dragoman deny ask_9d41c0 --reason "not on a Friday"',
            args=(ask,),
            flags=(*COMMON, Flag("reason", "told to the agent", metavar="TEXT")),
        ),
        Command(
            "agents",
            "the agents of the configuration",
            example="dragoman agents show --prompt",
            default="list",
            flags=COMMON,
            subs=(
                Command("list", "one row per agent"),
                Command(
                    "show",
                    "one agent, and what its model is told",
                    example="dragoman agents show --prompt",
                    args=(Arg("agent", "the agent; left out: the default", optional=True),),
                    flags=(Flag("prompt", "the system prompt as it is in this folder", kind=bool),),
                    text="With --json also the schemas of the tools.",
                ),
            ),
        ),
        Command(
            "models",
            "the models that can be used",
            example="dragoman models --provider anthropic",
            flags=(*COMMON, Flag("provider", "only this provider's", metavar="NAME")),
        ),
        Command(
            "logs",
            "the daemon's log",
            example="dragoman logs -f",
            flags=(
                CONFIG_DIR,
                Flag("follow", "go on with what comes", kind=bool, short="f"),
                Flag(
                    "lines",
                    "how many to begin with",
                    kind=counted,
                    metavar="N",
                    default=50,
                    short="n",
                ),
            ),
        ),
        Command(
            "tap",
            "watch the wire lines of all connections of a session",
            example="dragoman tap 5f3a9c1e",
            text="Secrets are hidden. A recording can be played to a client: dragoman replay FILE.",
            args=(Arg("session", "the session's id; all when left out", optional=True),),
            flags=(
                *COMMON,
                Flag("record", "also write the lines to this file, as JSON", metavar="FILE"),
                Flag("dialect", "only connections of this protocol", metavar="NAME"),
            ),
        ),
        Command(
            "replay",
            "play a recorded transcript as a server, to test a client",
            runs="stdio.replay:main",
            example="dragoman replay talk.ndjson --socket /tmp/replay.sock",
            text="FILE is a .talk file or a recording of `dragoman tap --record`. What the client\n"
            "says is compared with the transcript; differences are told on stderr.\n"
            "Exit code 1: the client left before its part was done, or, with --strict, differed.",
            args=(Arg("file", "the transcript"),),
            flags=(
                CONFIG_DIR,
                Flag("socket", "listen here instead of stdin and stdout", metavar="PATH"),
                Flag("connection", "which connection of the transcript to play", metavar="NAME"),
                Flag("strict", "stop at the first difference", kind=bool),
            ),
        ),
        Command(
            "apps",
            "apps of the kernel protocol: install, permit, watch and restart them",
            example="dragoman apps list",
            default="list",
            flags=COMMON,
            subs=(
                Command("list", "the apps and how they are"),
                Command(
                    "add",
                    "install the app of a folder: show what it asks for, and start it",
                    example="dragoman apps add ~/apps/irc",
                    args=(Arg("folder", "the folder with its openclawos.manifest.json"),),
                    flags=(
                        Flag("yes", "grant all that it asks for", kind=bool),
                        Flag("deny", "do not grant KIND:NAME", metavar="KIND:NAME", many=True),
                    ),
                ),
                Command(
                    "remove",
                    "stop an app and take it out of the configuration",
                    example="dragoman apps remove @me/irc",
                    args=(Arg("id", "the app's id"),),
                ),
                Command(
                    "logs",
                    "what an app printed",
                    example="dragoman apps logs @me/irc",
                    args=(Arg("id", "the app's id"),),
                    flags=(Flag("lines", "how many", metavar="N", kind=counted, default=50),),
                ),
                Command(
                    "restart",
                    "stop an app and start it anew",
                    example="dragoman apps restart @me/irc",
                    args=(Arg("id", "the app's id"),),
                ),
                Command(
                    "permissions",
                    "what an app asks for and may do; grant or deny parts of it",
                    example="dragoman apps permissions @me/irc --deny hook:llm_input",
                    args=(Arg("id", "the app's id"),),
                    flags=(
                        Flag("grant", "grant KIND:NAME", metavar="KIND:NAME", many=True),
                        Flag("deny", "take KIND:NAME away", metavar="KIND:NAME", many=True),
                    ),
                ),
            ),
        ),
        Command(
            "mcp",
            "the MCP servers of the configuration; signing in to one",
            example="dragoman mcp list",
            default="list",
            flags=COMMON,
            subs=(
                Command("list", "the servers"),
                Command(
                    "login",
                    "sign in to a server with a browser; the host uses and refreshes the token",
                    example="dragoman mcp login tracker",
                    args=(Arg("name", "the server's name"),),
                ),
            ),
        ),
        Command(
            "memory",
            "what agents remember across sessions",
            example="dragoman memory list",
            default="list",
            flags=COMMON,
            subs=(
                Command("list", "what is remembered", flags=(AGENT,)),
                Command(
                    "forget",
                    "remove one entry",
                    example="dragoman memory forget favourite_colour",
                    args=(Arg("id", "the entry's id, or its beginning"),),
                    flags=(AGENT,),
                ),
            ),
        ),
    )
