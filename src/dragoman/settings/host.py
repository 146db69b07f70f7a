"""What belongs to the host: models, listening, the gateway, MCP, store, sandbox, log, limits."""

from __future__ import annotations  # read when a section is: most are never

from typing import Annotated, Literal

from . import kinds
from .kinds import (
    Filled,
    HookPoint,
    Limit,
    Port,
    Positive,
    Seconds,
    Section,
    StoreFile,
    Whole,
    Words,
    says,
)

ProviderKind = Literal[
    "anthropic",
    "openai",
    "openai-chat",
    "openai-responses",
    "google",
    "ollama",
    "demo",
    "scripted",
    "local",
    "longtail",
]


class Provider(Section, frozen=True):
    """`[providers.<name>]`: a way to models."""

    kind: Annotated[
        ProviderKind | None, says("Which protocol it speaks; not set: that of its name.")
    ] = None
    api_key: Annotated[str, says("The key; empty: the usual environment variable.")] = ""
    base_url: Annotated[str, says("The address; empty: the provider's own.")] = ""
    headers: Annotated[dict[str, str], says("Headers sent with every request.")] = {}
    model: Annotated[str, says("The model to use when an agent names only the provider.")] = ""
    connect_timeout_secs: Annotated[Seconds, says("How long connecting may take.")] = 10
    first_byte_timeout_secs: Annotated[
        Seconds | None, says("How long it may think before it answers; not set: read_timeout_secs.")
    ] = None
    read_timeout_secs: Annotated[Seconds, says("How long it may be silent.")] = 120
    silence_timeout_secs: Annotated[
        Seconds, says("How long it may give signs of life without saying anything.")
    ] = 600
    retries: Annotated[Whole, says("How often it is asked again after a failure.")] = 5


class Model(Section, frozen=True):
    """`[models."provider/id"]`: a model that the catalogue lacks or has wrong."""

    name: Annotated[str | None, says("What people call it.")] = None
    context_window: Annotated[Positive | None, says("Tokens it can read.")] = None
    max_output: Annotated[Positive | None, says("Tokens it can write in one answer.")] = None
    reasoning: Annotated[bool | None, says("It can think.")] = None
    vision: Annotated[bool | None, says("It can see images.")] = None
    price_input: Annotated[float | None, says("USD per million tokens read.")] = None
    price_output: Annotated[float | None, says("USD per million tokens written.")] = None
    price_cache_read: Annotated[float | None, says("USD per million cached tokens read.")] = None
    price_cache_write: Annotated[float | None, says("USD per million tokens cached.")] = None


class Listen(Section, frozen=True):
    """`[listen]`: the local endpoints."""

    native: Annotated[bool, says("Listen also where each protocol's own clients look.")] = False
    zeroclaw: Annotated[str, says("Path of the zeroclaw socket; empty: in the data directory.")] = (
        ""
    )
    humanlayer: Annotated[str, says("Path of the humanlayer socket.")] = ""
    openclawos: Annotated[str, says("Path of the openclawos socket.")] = ""
    acp: Annotated[str, says("Path of the ACP socket.")] = ""
    any: Annotated[str, says("Path of the socket that takes any protocol by its first line.")] = ""
    more: Annotated[
        dict[str, str], says("Paths of the sockets of dialects that packages bring, by name.")
    ] = {}


class Webhook(Section, frozen=True):
    """`[gateway.webhooks.<name>]`: an address that begins a turn."""

    agent: Annotated[str, says("The agent that gets it.")] = ""
    secret: Annotated[str, says("The key that senders sign with.")] = ""
    prompt: Annotated[str, says("What the agent is told; {body} is what came.")] = "{body}"
    session: Annotated[str, says("The session to use; empty: a new one each time.")] = ""
    cwd: Annotated[str, says("The working directory.")] = ""
    enabled: Annotated[bool, says("Take requests.")] = True


class Callback(Section, frozen=True):
    """`[gateway.callbacks.<name>]`: an address that is told what happens."""

    url: Annotated[str, says("Where events are posted.")] = ""
    secret: Annotated[str, says("The key that we sign with.")] = ""
    events: Annotated[Words, says("Kinds of events, such as turn_ended; empty: all.")] = ()
    retries: Annotated[Whole, says("How often a failed post is tried again.")] = 6
    retry_factor: Annotated[Seconds, says("Scales the waits between tries: 1, 2, 4 … s.")] = 1
    timeout_secs: Annotated[Seconds, says("How long one post may take.")] = 10
    enabled: Annotated[bool, says("Post events.")] = True


class Gateway(Section, frozen=True):
    """`[gateway]`: HTTP, WebSocket and the dashboard."""

    enabled: Annotated[bool, says("Listen at all.")] = True
    host: Annotated[str, says("The address to listen on.")] = "127.0.0.1"
    port: Annotated[Port, says("The port to listen on; 0: any free one.")] = 42617
    tls_cert: Annotated[str, says("Path of a certificate; with tls_key it turns TLS on.")] = ""
    tls_key: Annotated[str, says("Path of the certificate's key.")] = ""
    tls_self_signed: Annotated[
        bool, says("Turn TLS on with a certificate that we make and keep in the data directory.")
    ] = False
    require_pairing: Annotated[bool, says("Let only clients in that have a token.")] = True
    allowed_origins: Annotated[Words, says("Web origins that may connect, beside our own.")] = ()
    path_prefix: Annotated[str, says("What comes before every path, behind a proxy.")] = ""
    webhooks: Annotated[dict[str, Webhook], says("Addresses that begin a turn, by name.")] = {}
    callbacks: Annotated[dict[str, Callback], says("Addresses that are told, by name.")] = {}


class McpServer(Section, frozen=True):
    """`[mcp.<name>]`: a server whose tools agents may use."""

    command: Annotated[str, says("The program, for a server on stdio.")] = ""
    args: Annotated[Words, says("Its arguments.")] = ()
    env: kinds.Environment = {}
    pass_env: kinds.PassEnv = ()
    trust_with_daemon: kinds.WithDaemon = False
    trust_outside_sandbox: kinds.OutsideSandbox = False
    sandbox_network: Annotated[bool, says("It may use the network.")] = True
    sandbox_writable: Annotated[
        Words, says("Files and folders that it may read and write beside its temporary folder.")
    ] = ()
    url: Annotated[str, says("The address, for a server on the network.")] = ""
    headers: Annotated[dict[str, str], says("Headers sent with every request.")] = {}
    transport: Annotated[
        Literal["auto", "stdio", "http", "sse"],
        says("How it is reached; auto: stdio with a command, http with an address."),
    ] = "auto"
    enabled: Annotated[bool, says("Use it.")] = True
    timeout_secs: Annotated[Seconds, says("How long one call may take.")] = 60
    oauth_client_id: Annotated[str, says("OAuth client, for a server that wants one.")] = ""
    oauth_client_secret: Annotated[str, says("The OAuth client's secret.")] = ""
    oauth_issuer: Annotated[str, says("The authorization server of the OAuth client.")] = ""


class Store(Section, frozen=True):
    """`[store]`: where sessions live."""

    path: Annotated[
        StoreFile,
        says(
            "The file of sessions; one not written from the root on, or from ~, lies in the data "
            "directory; empty: sessions.db there; :memory: for none."
        ),
    ] = ""
    synchronous: Annotated[
        Literal["normal", "full"],
        says("normal: safe when the program dies; full: also when the power fails."),
    ] = "normal"
    database: Annotated[
        str, says("A PostgreSQL address, postgresql://user:password@host/name, instead of a file.")
    ] = ""


class Fleet(Section, frozen=True):
    """`[fleet]`: several machines on one database."""

    database: Annotated[
        str, says("The PostgreSQL address that all nodes share; makes this daemon a node.")
    ] = ""
    bus: Annotated[
        str, says("A NATS address for passing text; not served yet: the database wakes nodes.")
    ] = ""
    node: Annotated[str, says("The name of this node; empty: the host name.")] = ""
    labels: Annotated[Words, says("What this node has, for agents that want it.")] = ()
    lease: Annotated[
        Seconds, says("How long a node that says nothing keeps its sessions, in seconds.")
    ] = 10.0
    shared_roots: Annotated[
        Words, says("Folders that every node sees; sessions elsewhere stay with their node.")
    ] = ()


class Sandbox(Section, frozen=True):
    """`[sandbox]`: what tools run in."""

    backend: Annotated[
        Literal["auto", "landlock", "bubblewrap", "none"], says("auto: the best this system has.")
    ] = "auto"
    network: Annotated[bool, says("Commands may use the network.")] = True
    trust_unix_sockets: Annotated[
        bool,
        says("Commands may talk to programs outside: an SSH agent, Docker, D-Bus, tmux."),
    ] = False


class Hook(Section, frozen=True, forbid_unknown_fields=True):
    """`[[hooks]]`: a command that runs at a point of a session."""

    on: Annotated[HookPoint, says("The point: tool_executing, tool_completed, agent_starting, …")]
    run: Annotated[Filled, says("The command; {path}, {tool}, {session} and others are filled in.")]
    tools: Annotated[Words, says("Only about calls of these tools; empty: of all.")] = ()
    agents: Annotated[Words, says("Only in sessions of these agents; empty: of all.")] = ()
    timeout_secs: Annotated[Limit, says("Seconds it may take, at most 600.")] = 60
    fail_closed: Annotated[
        bool, says("Block, where it may, when it cannot run, is ended or takes too long.")
    ] = True


class WebSearch(Section, frozen=True):
    """`[web_search]`: what the tool web_search asks; without a provider there is no such tool."""

    provider: Annotated[
        Literal["", "brave", "searxng", "model"],
        says("brave, searxng, or model: the model's own service (Anthropic, OpenAI)."),
    ] = ""
    api_key: Annotated[str, says("Brave's key; empty: $BRAVE_API_KEY.")] = ""
    base_url: Annotated[str, says("Where the SearXNG is.")] = ""


class Checkpoints(Section, frozen=True):
    """`[checkpoints]`: what was in files before a turn changed them, so that it can be undone."""

    enabled: Annotated[bool, says("Keep what turns change.")] = True
    max_bytes: Annotated[Positive, says("The most that is kept; the oldest goes first.")] = (
        536_870_912
    )
    max_file_bytes: Annotated[Positive, says("The largest file that is kept.")] = 4_194_304
    max_files: Annotated[Positive, says("Files of one folder that are looked at.")] = 20_000


class Telemetry(Section, frozen=True):
    """`[telemetry]`: traces and figures for OpenTelemetry (`pip install 'dragoman[telemetry]'`)."""

    enabled: Annotated[bool, says("Send traces and figures; off: nothing leaves.")] = False
    endpoint: Annotated[
        str, says("The collector's address for OTLP over HTTP; empty: OTEL_EXPORTER_OTLP_ENDPOINT.")
    ] = ""
    contents: Annotated[bool, says("Also what tools get, and texts of errors.")] = False


class Log(Section, frozen=True):
    """`[log]`"""

    level: Annotated[
        Literal["debug", "info", "warning", "error", "off"], says("The least that is written.")
    ] = "info"
    levels: Annotated[
        dict[str, Literal["debug", "info", "warning", "error", "off"]],
        says("Other levels for single parts: store, gateway, mcp, dialect.zeroclaw, ..."),
    ] = {}
    file: Annotated[
        str,
        says(
            "The file; one not written from the root on, or from ~, lies in the data directory; "
            "empty: daemon.log there."
        ),
    ] = ""
    json: Annotated[bool, says("One JSON object per line.")] = False
    max_bytes: Annotated[Whole, says("Size at which the file is turned over; 0: never.")] = (
        10_000_000
    )


class Limits(Section, frozen=True):
    """`[limits]`: bounds of the whole host."""

    max_sessions: Annotated[Positive, says("Sessions that may be live at once.")] = 10_000
    max_clients: Annotated[Positive, says("Connections that may be open at once.")] = 4096
    max_line_bytes: Annotated[Positive, says("The longest line of any protocol, in bytes.")] = (
        16_777_216
    )
    max_outbound_bytes: Annotated[
        Positive, says("What may wait for a client that does not read, in bytes.")
    ] = 16_777_216
    max_inbox: Annotated[
        Positive, says("What may wait in one session, whatever its protocol allows.")
    ] = 256
    max_approvals: Annotated[Positive, says("Open approvals of one session.")] = 1_024
