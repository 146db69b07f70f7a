"""What clients may send, and what they get: typed params and results.

A null member counts as absent everywhere, so every member has a default and the verbs check what
is required, in the order that the protocol gives.
"""

from typing import Any

import msgspec
from msgspec import UNSET, Raw, UnsetType

Texts = list[str] | None


class NoParams(msgspec.Struct, gc=False):
    pass


class Instructions(msgspec.Struct, frozen=True):
    """What a session is begun or continued with, by either interface."""

    query: str | None = None
    permission_prompt_tool: str | None = None
    max_turns: int | None = None
    system_prompt: str | None = None
    append_system_prompt: str | None = None
    allowed_tools: Texts = None
    disallowed_tools: Texts = None
    additional_directories: Texts = None
    custom_instructions: str | None = None
    permission_mode: str | None = None  # ours: default, plan, acceptEdits, bypassPermissions


class Beginning(Instructions, frozen=True):
    """What only a new session is told."""

    title: str | None = None
    agent: str | None = None  # ours: an alias of the configuration, hosted agents included
    model: str | None = None
    working_dir: str | None = None
    verbose: bool | None = None
    dangerously_skip_permissions: bool | None = None
    dangerously_skip_permissions_timeout: int | None = None  # milliseconds
    worktree: bool | None = None  # ours


class Launch(Beginning, frozen=True):
    mcp_config: dict[str, Any] | None = None


class Continue(Instructions, frozen=True):
    session_id: str | None = None
    mcp_config: str | None = None  # here it is JSON in a string


class OfSession(msgspec.Struct, gc=False):
    session_id: str | None = None


class Leaves(msgspec.Struct, gc=False):
    filter: str | None = None
    include_archived: bool | None = None
    archived_only: bool | None = None


class Conversation(OfSession, gc=False):
    claude_session_id: str | None = None


class Decision(msgspec.Struct, gc=False):
    """Both shapes: `call_id` with `type`, or `approval_id` alone."""

    call_id: str | None = None
    approval_id: str | None = None
    type: str | None = None
    decision: str | None = None
    comment: str | None = None
    # Ours: remember an approval, and name what was seen.
    always: bool | None = None
    scope: str | None = None
    lasts: str | None = None
    digest: str | None = None


class NewApproval(msgspec.Struct):
    run_id: str | None = None
    tool_name: str | None = None
    tool_input: Raw | UnsetType = UNSET  # null counts as given
    tool_use_id: str | None = None


class OfApproval(msgspec.Struct, gc=False):
    approval_id: str | None = None


class ChangeSettings(OfSession, gc=False):
    auto_accept_edits: bool | None = None
    dangerously_skip_permissions: bool | None = None
    dangerously_skip_permissions_timeout_ms: int | None = None
    permission_mode: str | None = None  # ours


class Title(OfSession, gc=False):
    title: str | None = None


class Recent(msgspec.Struct, gc=False):
    limit: int | None = None


class Archive(OfSession, gc=False):
    archived: bool | None = None


class BulkArchive(msgspec.Struct):
    session_ids: Texts = None
    archived: bool | None = None


class Subscribe(msgspec.Struct):
    event_types: Texts = None
    session_id: str | None = None
    run_id: str | None = None
    since: int | None = None  # ours: the `seq` of the last event that was seen


# --- results ---------------------------------------------------------------------------------


class Created(msgspec.Struct, frozen=True, omit_defaults=True):
    session_id: str
    run_id: str
    notice: str = ""  # ours: what was not possible as it was asked for


class Continued(msgspec.Struct, frozen=True):
    session_id: str
    run_id: str
    claude_session_id: str
    parent_session_id: str


class Interrupted(msgspec.Struct, frozen=True):
    success: bool
    session_id: str
    status: str


class Success(msgspec.Struct, frozen=True, omit_defaults=True):
    success: bool
    error: str = ""
    remembered: str = ""
    rule_id: str = ""
    failed_sessions: list[str] = []


class ApprovalId(msgspec.Struct, frozen=True):
    approval_id: str


class Outcome(msgspec.Struct, frozen=True, omit_defaults=True):
    """How a session went: the `result` of its row."""

    type: str
    subtype: str
    total_cost_usd: float
    is_error: bool
    duration_ms: int
    duration_api_ms: int
    num_turns: int
    result: str
    session_id: str
    error: str | UnsetType = UNSET


class Row(msgspec.Struct, frozen=True):
    """A session as `listSessions` and `getSessionLeaves` show it."""

    id: str
    run_id: str
    claude_session_id: str | UnsetType
    parent_session_id: str | UnsetType
    status: str
    start_time: str
    end_time: str | UnsetType
    last_activity_at: str
    error: str | UnsetType
    query: str
    summary: str
    title: str
    model: str
    model_id: str
    working_dir: str
    result: Outcome | UnsetType
    auto_accept_edits: bool
    dangerously_skip_permissions: bool
    dangerously_skip_permissions_expires_at: str | UnsetType
    archived: bool
    permission_mode: str | UnsetType  # ours, and only when it is another than the usual one
    proxy_enabled: bool = False


class SessionState(msgspec.Struct, frozen=True):
    """A session as `getSessionState` shows it: some members are called otherwise than in a row."""

    id: str
    run_id: str
    claude_session_id: str | UnsetType
    parent_session_id: str | UnsetType
    status: str
    query: str
    summary: str
    title: str
    model: str
    model_id: str
    working_dir: str
    created_at: str
    last_activity_at: str
    completed_at: str | UnsetType
    error_message: str | UnsetType
    cost_usd: float | UnsetType
    total_tokens: int | UnsetType
    input_tokens: int | UnsetType
    output_tokens: int | UnsetType
    cache_creation_input_tokens: int | UnsetType
    cache_read_input_tokens: int | UnsetType
    effective_context_tokens: int | UnsetType
    context_limit: int
    duration_ms: int | UnsetType
    auto_accept_edits: bool
    dangerously_skip_permissions: bool
    dangerously_skip_permissions_expires_at: str | UnsetType
    archived: bool
    permission_mode: str | UnsetType  # ours


class Said(msgspec.Struct, omit_defaults=True):
    """One event of a conversation. Filled while the history is read, so not frozen."""

    id: int
    session_id: str
    claude_session_id: str
    sequence: int
    event_type: str
    created_at: str
    is_completed: bool  # only ever true of a tool call, once its result is there
    role: str = ""
    content: str = ""
    tool_id: str = ""
    tool_name: str = ""
    tool_input_json: str = ""
    tool_result_for_id: str = ""
    tool_result_content: str = ""
    approval_status: str = ""
    approval_id: str = ""
    cut: bool = False  # a message that was broken off


class Snapshot(msgspec.Struct, frozen=True):
    tool_id: str
    file_path: str
    content: str
    created_at: str


class RecentPath(msgspec.Struct, frozen=True):
    path: str
    last_used: str
    usage_count: int


class Option(msgspec.Struct, frozen=True):
    name: str
    title: str
    interactive: bool = False


class CallSpec(msgspec.Struct, frozen=True):
    fn: str
    kwargs: Any


class CallStatus(msgspec.Struct, frozen=True):
    requested_at: str
    responded_at: str | UnsetType = UNSET
    approved: bool | UnsetType = UNSET
    comment: str | UnsetType = UNSET


class FunctionCall(msgspec.Struct, frozen=True):
    run_id: str
    call_id: str
    spec: CallSpec
    status: CallStatus


class ContactSpec(msgspec.Struct, frozen=True):
    msg: str
    response_options: list[Option] | UnsetType = UNSET


class ContactStatus(msgspec.Struct, frozen=True):
    requested_at: str
    responded_at: str | UnsetType = UNSET
    response: str | UnsetType = UNSET


class HumanContact(msgspec.Struct, frozen=True):
    run_id: str
    call_id: str
    spec: ContactSpec
    status: ContactStatus


class OfferedScope(msgspec.Struct, frozen=True):
    """What an approval for always would cover; `id` names it in `sendDecision`."""

    id: str
    name: str
    lasts: tuple[str, ...]


class Approval(msgspec.Struct, frozen=True):
    """One record for both generations of clients: flat members and the nested ones."""

    id: str
    call_id: str
    run_id: str
    session_id: str
    tool_use_id: str | UnsetType
    status: str
    created_at: str
    responded_at: str | UnsetType
    tool_name: str
    tool_input: Any
    comment: str | UnsetType
    type: str
    function_call: FunctionCall | UnsetType = UNSET
    human_contact: HumanContact | UnsetType = UNSET
    # Ours: all that is asked as text that hides nothing, and what can be remembered.
    question: str | UnsetType = UNSET
    digest: str | UnsetType = UNSET
    scopes: list[OfferedScope] | UnsetType = UNSET
    responded_by: str | UnsetType = UNSET
    remembered: str | UnsetType = UNSET
