"""What single protocols can be told: `[acp]`, `[zeroclaw]`, `[humanlayer]`, `[openclawos]`."""

from __future__ import annotations  # read when a section is: most are never

from typing import Annotated, Any, Literal

from . import kinds
from .kinds import Positive, Seconds, Section, Whole, Words, says


class Acp(Section, frozen=True):
    """`[acp]`"""

    default_agent: Annotated[
        str, says("The agent of a session that names none, when there are several; empty: default.")
    ] = ""
    max_sessions: Annotated[Positive, says("How many sessions may be open at once.")] = 10
    session_timeout_secs: Annotated[
        Seconds, says("Seconds without activity after which a session may be dropped; 0: never.")
    ] = 3600
    error_codes: Annotated[
        Literal["zeroclaw", "acp"],
        says("Numbers of errors: zeroclaw (-32000 not found) or acp (-32002 not found)."),
    ] = "zeroclaw"
    version_2: Annotated[
        bool, says("Speak the draft of version 2 with clients that ask for it.")
    ] = True


class Zeroclaw(Section, frozen=True):
    """`[zeroclaw]`"""

    server_version: Annotated[str, says("The version told to clients; empty: our own.")] = ""
    max_sessions: Annotated[Positive, says("How many sessions may be open at once.")] = 1024
    queue: Annotated[Whole, says("How many prompts may wait behind a running turn.")] = 32
    queue_wait_secs: Annotated[Seconds, says("How long a prompt may wait there.")] = 30
    approval_timeout_secs: Annotated[
        Seconds, says("Seconds after which an unanswered approval is denied; 0: the agent's.")
    ] = 0


class Humanlayer(Section, frozen=True):
    """`[humanlayer]`"""

    max_message_bytes: Annotated[Positive, says("The longest line, in bytes.")] = 10_485_760
    heartbeat_secs: Annotated[Seconds, says("Seconds of silence before a heartbeat.")] = 30
    version: Annotated[str, says("The version told to clients.")] = "0.1.0"
    http_port: Annotated[
        Positive,
        says("The port of its REST interface, when it is set or addresses are native."),
    ] = 7777


class App(Section, frozen=True):
    """`[openclawos.apps.<id>]`: an app that we start and watch over."""

    command: Annotated[str, says("The program; without one the app is started elsewhere.")] = ""
    args: Annotated[Words, says("Its arguments.")] = ()
    env: kinds.Environment = {}
    pass_env: kinds.PassEnv = ()
    cwd: Annotated[str, says("Its working directory.")] = ""
    enabled: Annotated[bool, says("Start it with the daemon.")] = True
    config: Annotated[dict[str, Any], says("What the app is told: a free table.")] = {}
    folder: Annotated[str, says("Where its manifest is; `dragoman apps add` writes it.")] = ""
    granted: Annotated[
        dict[str, Words] | None,
        says("What it may offer and hear, by kind; without it: all that it declares."),
    ] = None
    max_restarts: Annotated[Whole, says("How often it is started again after a failure.")] = 5
    restart_delay_secs: Annotated[Seconds, says("Wait before the first restart; it doubles.")] = 1
    stop_timeout_secs: Annotated[Seconds, says("How long it may take to stop when asked.")] = 5


class Openclawos(Section, frozen=True):
    """`[openclawos]`"""

    require_token: Annotated[bool, says("Every request must carry the app's token.")] = False
    hook_timeout_ms: Annotated[Positive, says("How long an app may take over a hook.")] = 5000
    hook_timeouts: Annotated[
        dict[str, Positive], says("The same for single hooks, in milliseconds.")
    ] = {}
    tool_executing_fail_closed: Annotated[
        bool, says("Refuse the tool call when its hook fails or is late.")
    ] = False
    invoke_timeout_ms: Annotated[
        Positive, says("How long an app may take over a tool, route or method it offers.")
    ] = 30_000
    heartbeat_timeout_secs: Annotated[
        Seconds, says("Seconds without a heartbeat after which an app counts as gone; 0: never.")
    ] = 90
    apps: Annotated[dict[str, App], says("Apps that we start, by id.")] = {}
