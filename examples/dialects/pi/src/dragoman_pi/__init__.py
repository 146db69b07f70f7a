"""pi's RPC mode: commands, responses and events as JSON lines."""

from dragoman.dialects.descriptor import Dialect, has_type

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

# Commands that no other protocol has.
OWN = frozenset(
    "follow_up clear_queue cycle_model get_available_models set_thinking_level "
    "cycle_thinking_level get_available_thinking_levels set_steering_mode set_follow_up_mode "
    "set_auto_compaction set_auto_retry abort_retry bash abort_bash new_session switch_session "
    "fork clone get_fork_messages get_entries get_tree get_session_stats export_html "
    "get_last_assistant_text set_session_name get_commands extension_ui_response".split()
)


def first_line(message: "Mapping[str, Any]") -> int:
    """A command that only pi has, pi's own words in a prompt, or an id as its client makes them."""
    if not has_type(message):
        return 0
    id = message.get("id")
    named = isinstance(id, str) and id.startswith("req_") and id[4:].isdigit()
    return 2 if message["type"] in OWN or "streamingBehavior" in message or named else 0


def refusal(text: str) -> "dict[str, Any]":
    return {"type": "response", "command": "connect", "success": False, "error": text}


DIALECT = Dialect(
    "pi",
    "pi's RPC mode, for its clients and editors",
    desk="dragoman_pi.desk:Desk",
    settings="dragoman_pi.desk:Settings",
    socket="pi.sock",
    first_line=first_line,
    refusal=refusal,
    stdio="dragoman-pi --mode rpc",
    doc="examples/dialects/pi/README.md",
)
