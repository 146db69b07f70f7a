"""What clients send, typed as far as this protocol and its older dialect agree.

Both spellings of a session's id are taken everywhere. Unknown members are ignored, and `_meta` is
never looked at for anything that is a parameter.
"""

from typing import Any

import msgspec

from dragoman.engine.faults import BadInput


class Settings(msgspec.Struct, frozen=True):
    """What the configuration says about this dialect (`[acp]`)."""

    default_agent: str = ""
    max_sessions: int = 10
    session_timeout_secs: float = 3600
    error_codes: str = "zeroclaw"
    version_2: bool = True


def whole_path(path: str, what: str) -> str:
    """A path as it is, unless no file could have it. Raises BadInput."""
    if "\0" in path:
        raise BadInput(f"Parameter '{what}' holds a NUL character", "Give a path without it.")
    return path


def named(name: str) -> Any:
    """A member that may be missing, by its name on the wire."""
    return msgspec.field(default=None, name=name)


class ForSession(msgspec.Struct):
    """Parameters that name a session."""

    camel: Any = named("sessionId")
    snake: Any = named("session_id")

    @property
    def session_id(self) -> str:
        """The id. Raises BadInput when there is none."""
        found = self.camel if self.camel is not None else self.snake
        if found is None:
            raise BadInput("Missing required parameter: sessionId")
        if not isinstance(found, str) or not found:
            raise BadInput("Parameter 'sessionId' must be a non-empty string")
        return found


class Initialize(msgspec.Struct, rename="camel"):
    protocol_version: Any = None
    client_capabilities: Any = None
    client_info: Any = None
    capabilities: Any = None  # version 2
    info: Any = None

    @property
    def asked(self) -> Any:
        """What the client says it can do, in either version's word."""
        return self.client_capabilities if self.capabilities is None else self.capabilities


class Connection(msgspec.Struct):
    """The name under which a client of our own comes again."""

    name: str = ""
    places: bool = False  # it wants to know how far it has come


class Authenticate(msgspec.Struct, rename="camel"):
    method_id: Any = None


class NewSession(msgspec.Struct):
    cwd: Any = None
    workspace_dir: Any = named("workspaceDir")
    workspace_dir_snake: Any = named("workspace_dir")
    agent_alias: Any = named("agentAlias")
    agent_alias_snake: Any = named("agent_alias")
    agent: Any = None
    servers: Any = named("mcpServers")
    directories: Any = named("additionalDirectories")
    meta: Any = named("_meta")

    @property
    def alias(self) -> str:
        """The agent that is asked for; the first spelling that is there decides."""
        for given in (self.agent_alias, self.agent_alias_snake, self.agent):
            if given is not None:
                return given.strip() if isinstance(given, str) else ""
        return ""

    @property
    def directory(self) -> str:
        for given in (self.cwd, self.workspace_dir, self.workspace_dir_snake):
            if given is not None:
                if not isinstance(given, str) or not given:
                    raise BadInput("Parameter 'cwd' must be a path", "Give an absolute path.")
                return whole_path(given, "cwd")
        return ""


class OldSession(ForSession):
    """Parameters of session/load, session/resume and session/fork."""

    cwd: Any = None
    servers: Any = named("mcpServers")
    directories: Any = named("additionalDirectories")
    replay: Any = named("replayFrom")  # version 2
    meta: Any = named("_meta")


class ListSessions(msgspec.Struct):
    cwd: str | None = None
    cursor: str | None = None
    archived: str | None = None


class Prompt(ForSession):
    prompt: msgspec.Raw = msgspec.Raw()


class SetMode(ForSession):
    mode: Any = named("modeId")
    mode_snake: Any = named("mode_id")


class SetOption(ForSession):
    option: Any = named("configId")
    type: Any = None
    value: Any = None


class SetTitle(ForSession):
    title: Any = None


class CancelCall(ForSession):
    call: Any = named("toolCallId")


class CancelTerminal(ForSession):
    terminal: Any = named("terminalId")


class Nothing(msgspec.Struct):
    """A method without parameters of its own."""


class CancelRequest(msgspec.Struct, rename="camel"):
    request_id: Any = msgspec.UNSET


class Told(ForSession):
    """An event that a client puts into a session (`session/update`, `session/event`)."""

    type: Any = None
    update: Any = None


class ClientSide(msgspec.Struct, frozen=True):
    """What a client can do for us, as it said in `initialize`."""

    read_files: bool = False
    write_files: bool = False
    terminals: bool = False
    forms: bool = False
    notices: bool = False
    compaction: bool = False
    urls: bool = False
    booleans: bool = False
    plans: bool = False
    subagents: bool = False


def client_side(given: object) -> ClientSide:
    """Read `clientCapabilities`; what is not understood counts as not offered."""
    top = given if isinstance(given, dict) else {}
    files = table_of(top.get("fs"))
    asking = table_of(top.get("elicitation"))
    session = table_of(top.get("session"))
    return ClientSide(
        read_files=files.get("readTextFile") is True,
        write_files=files.get("writeTextFile") is True,
        terminals=top.get("terminal") is True,
        forms=isinstance(asking.get("form"), dict),
        notices=isinstance(session.get("notices"), dict),
        compaction=isinstance(session.get("compaction"), dict),
        urls=isinstance(asking.get("url"), dict),
        booleans=isinstance(table_of(session.get("configOptions")).get("boolean"), dict),
        plans=isinstance(top.get("plan"), dict),
        subagents=isinstance(top.get("subagents"), dict),
    )


def table_of(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}
