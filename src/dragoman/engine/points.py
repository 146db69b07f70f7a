"""The points of a session, and of the host, at which hooks are called."""

from typing import Literal, get_args

HookPoint = Literal[
    "message_sending",
    "tool_executing",
    "message_received",
    "agent_starting",
    "agent_completed",
    "tool_completed",
    "message_sent",
    "session_start",
    "session_end",
    "llm_input",
    "llm_output",
    "before_compaction",
    "after_compaction",
    "gateway_start",
    "gateway_stop",
]
OBSERVABLE: frozenset[str] = frozenset(get_args(HookPoint))
INTERCEPTABLE = frozenset({"message_sending", "tool_executing"})
