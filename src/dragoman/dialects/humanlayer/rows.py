"""Sessions as clients see them: status words, summaries, rows and states; what is kept of ours."""

import re
from collections.abc import Mapping
from typing import Any

from msgspec import UNSET, UnsetType

from dragoman.engine.door import Door
from dragoman.engine.ending import RESTARTED
from dragoman.engine.faults import Fault
from dragoman.engine.info import SessionInfo
from dragoman.engine.traits import Trait, Waiver

from .shapes import Outcome, Row, SessionState
from .times import precise, seconds

FAMILIES = ("opus", "sonnet", "haiku")
CONTEXT_LIMIT = 168_000  # told when the model is not in the catalogue any more
_RESTING = frozenset({"completed", "failed", "interrupted"})
_SPACES = r"\s+"


class Own(Trait, frozen=True):
    """What this protocol keeps with a session."""

    NAME = "humanlayer"

    run_id: str = ""
    permission_prompt_tool: str = ""
    draft: str = ""  # what a draft is to begin with
    editor_state: str = ""  # the desktop app's
    discarded: bool = False
    place: str = ""  # where a draft is to begin, when that is not where it was made


def run_of(session_id: str, extra: Mapping[str, Any]) -> str:
    """A session's run id; sessions that were begun elsewhere use their own id."""
    return Own.of(extra).run_id or session_id


def status_of(info: SessionInfo) -> str:
    """The status word: a session that can be talked to again has `completed` its last turn."""
    if info.status != "idle":
        return info.status
    if not info.turns:
        return "draft"
    return "failed" if info.error else "completed"


def summary_of(query: str) -> str:
    """The query on one line, at most 50 characters."""
    line = re.sub(_SPACES, " ", query).strip()
    return line if len(line) <= 50 else line[:47] + "..."


def family_of(model: str) -> str:
    """`opus`, `sonnet` or `haiku` when the model is one of these, else the model itself."""
    return next((name for name in FAMILIES if name in model), model)


def error_of(error: str) -> str:
    """What went wrong, in the protocol's own words where it has some."""
    return "daemon restarted while session was active" if error == RESTARTED else error


def _expiry(waiver: Waiver, now: int) -> str | UnsetType:
    until = waiver.until
    return precise(until) if until is not None and waiver.all_at(now) else UNSET


def _permission_mode(info: SessionInfo) -> str | UnsetType:
    return info.mode if info.mode in ("plan", "readonly") else UNSET


def _end(info: SessionInfo, status: str) -> int | None:
    return info.ended_at if status in _RESTING else None


def row_of(info: SessionInfo, now: int) -> Row:
    """A session for the lists."""
    status = status_of(info)
    extra, waiver = info.extra, Waiver.of(info.extra)
    end = _end(info, status)
    claude = info.id if info.turns else UNSET
    return Row(
        id=info.id,
        run_id=run_of(info.id, extra),
        claude_session_id=claude,
        parent_session_id=info.parent or UNSET,
        status=status,
        start_time=precise(info.created_at),
        end_time=precise(end) if end else UNSET,
        last_activity_at=precise(info.updated_at),
        error=error_of(info.error) or UNSET,
        query=info.query,
        summary=summary_of(info.query),
        title=info.title,
        model=family_of(info.model),
        model_id=info.model,
        working_dir=info.cwd,
        result=_outcome(info) if end else UNSET,
        auto_accept_edits=bool(waiver.tools),
        dangerously_skip_permissions=waiver.all_at(now),
        dangerously_skip_permissions_expires_at=_expiry(waiver, now),
        archived=info.archived,
        permission_mode=_permission_mode(info),
    )


def _outcome(info: SessionInfo) -> Outcome:
    return Outcome(
        type="result",
        subtype="session_completed",
        total_cost_usd=info.cost,
        is_error=bool(info.error),
        duration_ms=info.active_ms,
        duration_api_ms=0,
        num_turns=info.turns,
        result=info.result,
        session_id=info.id,
        error=error_of(info.error) or UNSET,
    )


def state_of(info: SessionInfo, door: Door) -> SessionState:
    """A session with all that is known of it."""
    status = status_of(info)
    extra, last, usage = info.extra, info.last_usage, info.usage
    waiver = Waiver.of(extra)
    end = _end(info, status)
    now = door.now_ms()
    return SessionState(
        id=info.id,
        run_id=run_of(info.id, extra),
        claude_session_id=info.id if info.turns else UNSET,
        parent_session_id=info.parent or UNSET,
        status=status,
        query=info.query,
        summary=summary_of(info.query),
        title=info.title,
        model=family_of(info.model),
        model_id=info.model,
        working_dir=info.cwd,
        created_at=seconds(info.created_at),
        last_activity_at=seconds(info.updated_at),
        completed_at=seconds(end) if end else UNSET,
        error_message=error_of(info.error) or UNSET,
        cost_usd=info.cost or UNSET,
        total_tokens=usage.context or UNSET,
        input_tokens=last.input or UNSET,
        output_tokens=last.output or UNSET,
        cache_creation_input_tokens=last.cache_write or UNSET,
        cache_read_input_tokens=last.cache_read or UNSET,
        effective_context_tokens=last.context or UNSET,
        context_limit=_context_limit(info, door),
        duration_ms=info.active_ms or UNSET,
        auto_accept_edits=bool(waiver.tools),
        dangerously_skip_permissions=waiver.all_at(now),
        dangerously_skip_permissions_expires_at=_expiry(waiver, now),
        archived=info.archived,
        permission_mode=_permission_mode(info),
    )


def _context_limit(info: SessionInfo, door: Door) -> int:
    try:
        return door.model(info.model, info.agent).context_window
    except Fault:
        return CONTEXT_LIMIT
