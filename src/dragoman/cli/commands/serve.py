"""Commands that serve a protocol."""

from ..parse import Arg, Command, Flag
from .shared import CONFIG_DIR, EFFORTS

GROUP = "Serve"


def commands() -> tuple[Command, ...]:
    return (
        Command(
            "daemon",
            "run the host: all socket protocols and the gateway, in the foreground",
            example="dragoman daemon --no-gateway",
            flags=(
                CONFIG_DIR,
                Flag("ephemeral", "leave when the last client has left", kind=bool),
                Flag("no-gateway", "do not listen for HTTP and WebSocket", kind=bool),
                Flag("native", "listen also where each protocol's own clients look", kind=bool),
                Flag("background", "come back when it is ready, and let it run", kind=bool),
            ),
        ),
        Command(
            "stop",
            "end the running daemon; what it does goes on when it is started again",
            flags=(CONFIG_DIR,),
        ),
        Command(
            "acp",
            "speak ACP on stdin and stdout, for editors",
            example="dragoman acp --max-sessions 4",
            text=(
                "Where a daemon runs, its sessions are used, so that other clients see them;\n"
                "with limits of its own, or --alone, the process has sessions of its own.\n"
                "With the word login it is `dragoman login`: editors open a terminal so."
            ),
            args=(Arg("login", "log in instead, in a terminal", optional=True),),
            flags=(
                CONFIG_DIR,
                Flag("alone", "do not join a running daemon", kind=bool),
                Flag("max-sessions", "how many sessions may be open", kind=int),
                Flag(
                    "session-timeout",
                    "seconds after which an idle session may be dropped",
                    kind=int,
                    metavar="SECS",
                ),
            ),
        ),
        Command(
            "rpc",
            "speak zot RPC on stdin and stdout, for scripts",
            raw=True,
            example='echo \'{"type":"prompt","message":"hello"}\' | dragoman rpc --provider demo',
            flags=(
                CONFIG_DIR,
                Flag("provider", "the provider to use", metavar="NAME"),
                Flag("model", "the model to use", metavar="ID"),
                Flag("cwd", "the working directory", metavar="DIR"),
                Flag("api-key", "the provider's key", metavar="KEY"),
                Flag("base-url", "the provider's address", metavar="URL"),
                Flag("system-prompt", "replaces the built-in system prompt", metavar="TEXT"),
                Flag(
                    "append-system-prompt", "added to the system prompt", metavar="TEXT", many=True
                ),
                Flag("reasoning", "how hard to think", metavar="LEVEL", choices=EFFORTS),
                Flag("max-steps", "model calls in one turn", kind=int),
                Flag("no-tools", "offer no tools to the model", kind=bool),
                Flag("tools", "offer only these tools, separated by commas", metavar="LIST"),
                Flag("agent", "the agent of the configuration to use", metavar="NAME"),
                Flag("temperature", "the model's temperature, 0 to 2", kind=float),
                Flag("session", "keep the session: its id, or new", metavar="ID"),
                Flag("supervised", "ask before tools act (approval_request)", kind=bool),
                Flag("no-context-files", "do not read AGENTS.md files", kind=bool),
                Flag("list-models", "show the models that can be used, and leave", kind=bool),
            ),
        ),
        Command(
            "speak",
            "speak any of the protocols on stdin and stdout",
            example="dragoman speak humanlayer",
            args=(Arg("dialect", "the protocol: one of `dragoman dialects`"),),
            flags=(CONFIG_DIR, Flag("memory", "keep nothing: sessions end with it", kind=bool)),
        ),
        Command(
            "acp-bridge",
            "join an ACP editor on stdin and stdout to the running daemon's gateway",
            runs="stdio.bridge:main",
            example="dragoman acp-bridge --config-dir ~/.config/dragoman",
            flags=(
                CONFIG_DIR,
                Flag("pair-code", "a code to pair with, when there is no token yet"),
                Flag("agent", "the agent of sessions that name none", metavar="ALIAS"),
            ),
        ),
    )
