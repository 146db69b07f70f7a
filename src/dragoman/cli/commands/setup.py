"""Commands that set things up."""

from ..parse import Arg, Command, Flag
from .shared import COMMON, CONFIG_DIR, JSON, KINDS, counted

GROUP = "Set up"


def commands() -> tuple[Command, ...]:
    key = Arg("key", "dotted, such as acp.max_sessions")
    return (
        Command(
            "config",
            "read and change the configuration",
            example="dragoman config set agents.default.model anthropic/claude-sonnet-4-5",
            flags=COMMON,
            subs=(
                Command(
                    "get",
                    "the value of a key, or all that is set",
                    example="dragoman config get acp.max_sessions",
                    args=(Arg("key", "dotted; all when left out", optional=True),),
                    flags=(Flag("secrets", "show keys and tokens as they are", kind=bool),),
                ),
                Command(
                    "set",
                    "write a value to config.toml, comments and order are kept",
                    example="dragoman config set acp.max_sessions 5",
                    args=(
                        key,
                        Arg("value", "a string, number, true, false or a TOML list", empty=True),
                    ),
                ),
                Command(
                    "unset",
                    "take a key out of config.toml",
                    example="dragoman config unset acp.max_sessions",
                    args=(key,),
                ),
                Command(
                    "explain",
                    "what a key means, what is allowed, its value and where that comes from",
                    example="dragoman config explain gateway",
                    args=(Arg("key", "a key or a section; all when left out", optional=True),),
                ),
                Command(
                    "schema",
                    "the JSON Schema of config.toml",
                    example="dragoman config schema > dragoman.schema.json",
                ),
                Command(
                    "path",
                    "where config.toml is; with --json the data, too",
                    example="dragoman config path",
                ),
            ),
        ),
        Command(
            "login",
            "choose who answers, and keep the key for it",
            example="dragoman login anthropic",
            text=(
                "Asks in the terminal, or reads the key from standard input. It is kept in the\n"
                "platform's keyring, or in a file that only you can read. Ollama needs no key."
            ),
            args=(Arg("provider", "asked for when left out", optional=True),),
            flags=(CONFIG_DIR,),
        ),
        Command(
            "logout",
            "forget the key that login kept",
            runs="cli.verbs.login:log_out",
            args=(Arg("provider", "whose key; the one that is kept when left out", optional=True),),
            flags=(CONFIG_DIR,),
        ),
        Command(
            "self-test",
            "try everything once, here and without a network",
            text=(
                "Starts a daemon in a folder of its own with the embedded demo model, speaks\n"
                "every protocol to it, kills and restarts it, and removes the folder."
            ),
            flags=(JSON,),
        ),
        Command(
            "upgrade-check",
            "whether this version can take over the configuration and the store",
            text="Reads only. Exit code 1: something has to be done first, and it says what.",
            flags=COMMON,
        ),
        Command(
            "bug-report",
            "pack what others need to help you; shows it before it is written",
            example="dragoman bug-report --output report.txt",
            text=(
                "Versions, findings of doctor, the configuration and the newest log lines, with\n"
                "keys and tokens hidden; no prompts, no answers, no file contents. One text file."
            ),
            flags=(
                CONFIG_DIR,
                Flag("output", "where to write it", metavar="FILE", short="o"),
                Flag("yes", "write it without asking", kind=bool, short="y"),
                Flag("lines", "how many lines of the log", metavar="N", kind=counted, default=200),
            ),
        ),
        Command(
            "open",
            "open the dashboard in a browser, with a link that works once",
            text=(
                "The browser is let in without a code. With --print the link is only shown;\n"
                "whoever uses it first is let in, so it is nothing to pass around."
            ),
            flags=(*COMMON, Flag("print", "show the link, open nothing", kind=bool)),
        ),
        Command(
            "pair",
            "show a code that lets a browser or another machine in",
            flags=COMMON,
        ),
        Command(
            "store",
            "copy sessions between files and databases",
            example="dragoman store copy sessions.db postgresql://dragoman@db/dragoman",
            flags=COMMON,
            subs=(
                Command(
                    "copy",
                    "copy everything, also while a daemon writes to the first",
                    example="dragoman store copy sessions.db postgresql://dragoman@db/dragoman",
                    args=(
                        Arg("source", "a file, or a postgresql:// address"),
                        Arg("target", "a file, or a postgresql:// address"),
                    ),
                ),
            ),
        ),
        Command(
            "token",
            "list, make and revoke the gateway's tokens",
            example="dragoman token new --name laptop",
            default="list",
            flags=COMMON,
            subs=(
                Command("list", "tokens, without their secrets"),
                Command(
                    "new",
                    "make a token; it is shown once",
                    example="dragoman token new --name laptop",
                    flags=(Flag("name", "what it is for", metavar="NAME"),),
                ),
                Command(
                    "revoke",
                    "make a token worthless",
                    example="dragoman token revoke laptop",
                    args=(Arg("id", "the token's id, or its name"),),
                ),
            ),
        ),
        Command(
            "service",
            "start the daemon when you log in",
            example="dragoman service install",
            flags=COMMON,
            subs=(
                Command(
                    "install",
                    "write and start a systemd user unit or launchd file",
                ),
                Command("uninstall", "stop and remove it"),
                Command("status", "whether it runs"),
            ),
        ),
        Command(
            "completion",
            "print a completion script for your shell",
            example=(
                "dragoman completion bash > ~/.local/share/bash-completion/completions/dragoman"
            ),
            text=(
                "`completion values KIND` prints what the scripts ask for while you type: ids of\n"
                "sessions or of approvals that wait, names of agents, keys of the configuration."
            ),
            args=(
                Arg("shell", "whose script", choices=("bash", "zsh", "fish"), unlisted=("values",)),
                Arg("kind", "what `values` are to be printed", optional=True, unlisted=KINDS),
            ),
            flags=(CONFIG_DIR,),
        ),
    )
