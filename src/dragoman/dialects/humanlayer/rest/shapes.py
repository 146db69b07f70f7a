"""Bodies, queries and answers of the REST interface."""

import msgspec
from msgspec import Raw

from ..shapes import Beginning, Instructions, Texts


class Session(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """A session. What is not known is left out."""

    id: str
    run_id: str
    status: str
    query: str
    summary: str
    title: str
    created_at: str
    last_activity_at: str
    claude_session_id: str | None = None
    parent_session_id: str | None = None
    model: str | None = None
    model_id: str | None = None
    working_dir: str | None = None
    additional_directories: list[str] | None = None
    completed_at: str | None = None
    error_message: str | None = None
    cost_usd: float | None = None
    input_tokens: int | None = None
    output_tokens: int | None = None
    cache_creation_input_tokens: int | None = None
    cache_read_input_tokens: int | None = None
    effective_context_tokens: int | None = None
    context_limit: int | None = None
    duration_ms: int | None = None
    auto_accept_edits: bool | None = None
    dangerously_skip_permissions: bool | None = None
    dangerously_skip_permissions_expires_at: str | None = None
    permission_mode: str | None = None  # ours
    archived: bool | None = None
    editor_state: str | None = None
    proxy_enabled: bool | None = None


class McpServer(msgspec.Struct, frozen=True, omit_defaults=True):
    type: str | None = None
    command: str | None = None
    args: Texts = None
    env: dict[str, str] | None = None
    url: str | None = None
    headers: dict[str, str] | None = None


class McpConfig(msgspec.Struct, frozen=True):
    mcpServers: dict[str, McpServer] | None = None


class CreateSession(Beginning, frozen=True):  # a draft may have no query yet
    mcp_config: McpConfig | None = None
    create_directory_if_not_exists: bool | None = None
    createDirectoryIfNotExists: bool | None = None  # as the launch of a draft spells it
    auto_accept_edits: bool | None = None
    draft: bool | None = None
    editor_state: str | None = None
    proxy_enabled: bool | None = None


class ContinueSession(Instructions, frozen=True):
    mcp_config: McpConfig | None = None


class UpdateSession(msgspec.Struct, frozen=True):
    """Only what is given changes."""

    title: str | None = None
    archived: bool | None = None
    auto_accept_edits: bool | None = None
    dangerously_skip_permissions: bool | None = None
    dangerously_skip_permissions_timeout_ms: int | None = None
    permission_mode: str | None = None  # ours
    model: str | None = None
    model_id: str | None = None
    additional_directories: Texts = None
    editor_state: str | None = None
    status: str | None = None  # "discarded" or "draft", of a draft
    working_dir: str | None = None
    proxy_enabled: bool | None = None


class LaunchDraft(msgspec.Struct, frozen=True):
    prompt: str | None = None
    query: str | None = None
    createDirectoryIfNotExists: bool | None = None
    create_directory_if_not_exists: bool | None = None  # as a launch spells it


class SessionIds(msgspec.Struct, frozen=True):
    session_ids: Texts = None


class ListQuery(msgspec.Struct, frozen=True):
    leavesOnly: bool = True
    leafOnly: bool | None = None  # an older name of it
    filter: str | None = None
    includeArchived: bool = False
    archivedOnly: bool = False


class SearchQuery(msgspec.Struct, frozen=True):
    query: str = ""
    limit: int = 20


class PathsQuery(msgspec.Struct, frozen=True):
    limit: int = 20


class Counts(msgspec.Struct, frozen=True):
    normal: int
    archived: int
    draft: int


class SessionsAnswer(msgspec.Struct, frozen=True, omit_defaults=True):
    data: list[Session]
    counts: Counts | None = None


class Outcome(msgspec.Struct, frozen=True, omit_defaults=True):
    success: bool
    failed_sessions: list[str] = []
    error: str = ""


# --- approvals ---


class ApprovalsQuery(msgspec.Struct, frozen=True):
    sessionId: str | None = None


class CreateApproval(msgspec.Struct, frozen=True):
    run_id: str
    tool_name: str
    tool_input: Raw
    tool_use_id: str | None = None


class Decide(msgspec.Struct, frozen=True):
    decision: str
    comment: str | None = None


# --- the host ---


class EventsQuery(msgspec.Struct, frozen=True):
    eventTypes: list[str] = []
    sessionId: str | None = None
    runId: str | None = None


class Program(msgspec.Struct, frozen=True, omit_defaults=True):
    available: bool
    path: str | None = None
    error: str | None = None


class Dependencies(msgspec.Struct, frozen=True):
    claude: Program


class Health(msgspec.Struct, frozen=True):
    status: str
    version: str
    dependencies: Dependencies


class DebugInfo(msgspec.Struct, frozen=True):
    path: str
    size: int
    table_count: int
    stats: dict[str, int]
    cli_command: str
    last_modified: str


class Config(msgspec.Struct, frozen=True):
    claude_path: str
    claude_available: bool
    claude_detected_path: str = ""


class UpdateConfig(msgspec.Struct, frozen=True):
    claude_path: str | None = None


class KeyState(msgspec.Struct, frozen=True):
    api_key_configured: bool


class ConfigStatus(msgspec.Struct, frozen=True):
    openrouter: KeyState
    baseten: KeyState
    z_ai: KeyState


class UserSettings(msgspec.Struct, frozen=True):
    advanced_providers: bool
    created_at: str
    updated_at: str
    opt_in_telemetry: bool = False


class UpdateUserSettings(msgspec.Struct, frozen=True):
    advanced_providers: bool | None = None
    opt_in_telemetry: bool | None = None


# --- files, commands, agents ---


class CommandsQuery(msgspec.Struct, frozen=True):
    working_dir: str = ""
    query: str = ""


class SlashCommand(msgspec.Struct, frozen=True):
    name: str
    source: str
    description: str = ""


class FuzzySearch(msgspec.Struct, frozen=True):
    query: str
    paths: list[str]
    limit: int = 50
    filesOnly: bool = True
    respectGitignore: bool = True


class FoundFile(msgspec.Struct, frozen=True):
    path: str
    displayPath: str
    score: int
    matchedIndexes: list[int]
    isDirectory: bool


class SearchFigures(msgspec.Struct, frozen=True):
    totalScanned: int
    totalMatched: int
    durationMs: int


class FuzzyAnswer(msgspec.Struct, frozen=True):
    results: list[FoundFile]
    metadata: SearchFigures


class OnePath(msgspec.Struct, frozen=True):
    path: str


class DirectoryState(msgspec.Struct, frozen=True, omit_defaults=True):
    exists: bool
    isDirectory: bool
    canCreate: bool
    expandedPath: str
    error: str = ""


class MadeDirectory(msgspec.Struct, frozen=True):
    success: bool
    path: str


class Discover(msgspec.Struct, frozen=True):
    working_dir: str = ""


class FoundAgent(msgspec.Struct, frozen=True):
    name: str
    mentionText: str
    source: str
    description: str = ""


class AgentsAnswer(msgspec.Struct, frozen=True):
    agents: list[FoundAgent]
