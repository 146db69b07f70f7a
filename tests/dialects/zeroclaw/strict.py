"""A reader as strict as the terminal's own types: what must be there, and of which type.

A form is a type, a list with one form (a list of such), a dict (a table: `name?` may be missing but
is never null, `name|` may be missing or null), `Map(form)` (any names), `OneOf(words)`, or `Any`.
Unknown members are ignored, as the terminal does.
"""

from typing import Any, NamedTuple


class Map(NamedTuple):
    form: Any


class OneOf(NamedTuple):
    words: tuple


class Pair(NamedTuple):
    forms: tuple


NUMBER = (int, float)
STR, INT, BOOL = str, int, bool


class Misfit(AssertionError):
    """An answer that the terminal cannot read."""


def fit(value, form, at="$"):
    """Raises Misfit where the value is not of this form."""
    if form is Any:
        return
    if isinstance(form, dict):
        _is(value, dict, at)
        for name, inner in form.items():
            _member(value, name, inner, at)
    elif isinstance(form, list):
        _is(value, list, at)
        for number, one in enumerate(value):
            fit(one, form[0], f"{at}[{number}]")
    elif isinstance(form, Map):
        _is(value, dict, at)
        for name, one in value.items():
            fit(one, form.form, f"{at}.{name}")
    elif isinstance(form, OneOf):
        if value not in form.words:
            raise Misfit(f"{at}: {value!r} is none of {form.words}")
    elif isinstance(form, Pair):
        _is(value, list, at)
        if len(value) != len(form.forms):
            raise Misfit(f"{at}: {len(value)} instead of {len(form.forms)}")
        for number, (one, inner) in enumerate(zip(value, form.forms, strict=True)):
            fit(one, inner, f"{at}[{number}]")
    else:
        _is(value, form, at)


def _member(value, name, form, at):
    plain = name.rstrip("?|")
    if plain not in value:
        if name == plain:
            raise Misfit(f"{at}.{plain} is missing")
        return
    if value[plain] is None and name.endswith("|"):
        return
    fit(value[plain], form, f"{at}.{plain}")


def _is(value, kind, at):
    wanted = kind if isinstance(kind, tuple) else (kind,)
    is_bool = isinstance(value, bool)
    if (is_bool and bool not in wanted) or not isinstance(value, wanted):
        raise Misfit(f"{at}: {value!r} is no {kind}")
    if kind is int and value < 0:
        raise Misfit(f"{at}: {value} is negative")


_ROW = {
    "session_id": STR, "session_key": STR, "created_at": STR, "last_activity": STR,
    "message_count": INT, "agent_alias|": STR, "channel_id|": STR, "name|": STR,
}  # fmt: skip
_MEMORY = {
    "key": STR, "content": STR, "category": STR, "timestamp": STR, "score|": NUMBER,
    "namespace?": STR, "importance|": NUMBER, "agent_alias|": STR,
}  # fmt: skip
_SUM = {"cost_usd": NUMBER, "total_tokens": INT, "request_count": INT}
_TYPE = {"kind": STR, "display_name": STR, "local?": BOOL, "default_runtime_profile|": STR}
_PRESET = {"preset_name": STR, "label": STR, "help": STR}
_ERRORS = [
    {
        "step": OneOf(
            ("model_provider", "risk_profile", "runtime_profile", "memory", "channels",
             "peer_groups", "agent")
        ),
        "field": STR,
        "message": STR,
    }
]  # fmt: skip
KINDS = (
    "string", "bool", "integer", "float", "enum", "alias_ref", "string_array", "object_array",
    "object",
)  # fmt: skip
TABS = (
    "None", "Connection", "Advanced", "Model", "Behavior", "General", "Channels", "Providers",
    "Bundles", "Cron", "Tuning", "Workspace", "Memory", "PeerGroups", "Personality", "Settings",
    "Servers", "Limits", "Costs", "Skills", "Aliases",
)  # fmt: skip
SOURCES = (
    "model_providers", "tts_providers", "transcription_providers", "channels", "risk_profiles",
    "runtime_profiles", "agents", "skill_bundles", "knowledge_bundles", "mcp_bundles",
)  # fmt: skip
JOB = {
    "id": STR, "command": STR, "prompt|": STR, "name|": STR, "agent_alias?": STR, "enabled?": BOOL,
    "created_at": STR, "next_run": STR, "last_run|": STR, "last_status|": STR, "last_output|": STR,
    "schedule": {"kind": OneOf(("cron", "at", "every"))},
}  # fmt: skip
SCHEDULES = {
    "cron": {"expr": STR, "tz|": STR},
    "at": {"at": STR},
    "every": {"every_ms": INT},
}
OUTCOMES = {  # of the quick start, by kind
    "ok": {},
    "errors": {"errors": _ERRORS},
    "applied": {
        "agent": {"alias": STR, "model_provider": STR, "risk_profile": STR,
                  "runtime_profile": STR, "channels": [STR], "memory_backend": STR},
        "daemon_restarted": BOOL,
    },
}  # fmt: skip
RESULTS = {
    "initialize": {
        "server_version": STR, "server_pid": INT, "tui_id": STR, "tui_sig": STR,
        "commands?": [{"id": STR, "name": STR, "aliases?": [STR]}],
    },
    "status": {
        "server_version": STR, "protocol_version": INT, "active_sessions": INT, "config_dir|": STR,
        "config_file|": STR, "config_kind|": STR, "local_ipc_endpoint|": STR,
    },
    "health": {"pid": INT, "uptime_seconds": INT, "components": Map({"status": STR}),
               "process": {"rss_bytes": INT, "num_cpus": INT, "cpu_percent|": NUMBER}},
    "session/new": {"session_id": STR, "workspace_dir|": STR},
    "session/close": {"session_id": STR},
    "session/kill": {"session_id": STR},
    "session/delete": {"session_id": STR},
    "session/state": {"session_id": STR, "state": STR},
    "session/cancel": {"session_id": STR},
    "session/approve": {"session_id": STR, "request_id": STR, "acknowledged": BOOL},
    "session/prompt": {},
    "session/list": {"sessions": [_ROW]},
    "session/list-acp": {"sessions": [_ROW]},
    "session/messages": {
        "messages": [{"role": STR, "content": STR}], "total?": INT, "start?": INT,
    },
    "session/configure": {
        "session_id": STR,
        "overrides?": {"model|": STR, "model_provider|": STR, "temperature|": NUMBER},
    },
    "session/git_branch": {"branch|": STR, "hash|": STR},
    "file/attach": {"files": [{"ref_id": STR, "marker": STR, "size_bytes": INT}]},
    "cost/query": {
        "session_cost_usd": NUMBER, "daily_cost_usd": NUMBER, "monthly_cost_usd": NUMBER,
        "total_tokens": INT, "request_count": INT, "by_model?": Map({"model": STR, **_SUM}),
        "by_agent?": Map({"agent_alias": STR, **_SUM}),
    },
    "cost/org": (dict, type(None)),
    "agents/list": {"agents": [{"alias": STR, "enabled": BOOL, "channels": [STR]}]},
    "agents/status": {
        "agents": [{"alias": STR, "enabled": BOOL, "live_sessions?": INT,
                    "persisted_sessions?": INT, "channels?": [STR]}],
    },
    "tui/list": {
        "tuis": [{"tui_id": STR, "connected_at_unix": INT, "peer_label": STR, "transport?": STR}],
    },
    "logs/subscribe": {"subscribed": BOOL},
    "logs/query": {
        "events": [{"@timestamp": STR, "severity_number": INT, "event": {}}],
        "next_cursor|": Pair((STR, STR)), "next_cursor_line_offset|": INT, "at_end": BOOL,
    },
    "logs/get": {"event": {"@timestamp": STR}},
    "doctor/run": {
        "results": [{"severity": OneOf(("ok", "warn", "error")), "category": STR, "message": STR}],
        "summary": {"ok": INT, "warnings": INT, "errors": INT}, "log_path|": STR,
        "timed_out_phase|": STR,
    },
    "memory/list": {"entries": [_MEMORY]},
    "memory/search": {"entries": [_MEMORY]},
    "memory/get": {"entry|": _MEMORY},
    "memory/store": {"key": STR, "stored": BOOL},
    "memory/delete": {"key": STR, "deleted": BOOL},
    "cron/list": {"jobs": [JOB]},
    "cron/get": JOB,
    "cron/add": JOB,
    "cron/patch": JOB,
    "cron/delete": {"id": STR},
    "cron/settings": {},
    "cron/runs": {
        "runs": [{"id": INT, "job_id": STR, "started_at": STR, "finished_at": STR, "status": STR,
                  "output|": STR, "duration_ms|": INT}],
    },
    "cron/trigger": {"id": STR, "success": BOOL, "output": STR},
    "config/get": {"prop": STR},
    "config/set": {"prop": STR},
    "config/delete": {"prop": STR},
    "config/validate": {"valid": BOOL},
    "config/status": {"needs_quickstart": BOOL},
    "config/catalog": {"model_providers": [{"name": STR, "display_name": STR, "local": BOOL}]},
    "config/list": {
        "entries": [
            {
                "path": STR, "category": STR, "kind": OneOf(KINDS), "type_hint": STR, "value": Any,
                "populated": BOOL, "is_secret": BOOL, "is_env_overridden?": BOOL,
                "enum_variants?": [STR], "description": STR, "section|": STR,
                "tab?": OneOf(TABS), "alias_source|": OneOf(SOURCES),
            }
        ],
    },
    "config/sections": {
        "sections": [
            {
                "key": STR, "label": STR, "help": STR, "completed": BOOL, "group?": STR,
                "shape|": OneOf(("direct_form", "one_tier_alias_map", "typed_family_map",
                                 "backend_picker")),
                "cost_category?": STR,
            }
        ],
    },
    "config/templates": {"templates": [{"path": STR}]},
    "config/map-keys": {"keys": [STR]},
    "config/resolve-alias-source": {"values": [STR]},
    "config/map-key-create": Any,
    "config/map-key-delete": Any,
    "config/map-key-rename": {"renamed": BOOL, "warnings?": [STR]},
    "config/catalog-models": {
        "models": [STR],
        "pricing|": Map({"prompt|": STR, "completion|": STR, "input_cache_read|": STR}),
        "live?": BOOL,
    },
    "config/reload": {"reloading": BOOL},
    "fs/list_dir": {
        "entries": [{"name": STR, "full_path": STR, "is_dir": BOOL, "is_hidden": BOOL, "size": INT,
                     "mtime|": INT}],
        "cwd": STR,
    },
    "personality/list": {
        "files": [{"filename": STR, "exists": BOOL, "size?": INT}], "max_chars": INT,
    },
    "personality/get": {"content|": STR},
    "personality/put": {},
    "personality/templates": {"files": [{"filename": STR, "content": STR}]},
    "skills/bundles": {"bundles": [Any]},
    "skills/list": {"skills": [{"name": STR}]},
    "skills/read": {
        "frontmatter": {"name": STR, "description": STR, "always?": BOOL}, "body": STR,
    },
    "skills/write": {},
    "skills/delete": {},
    "locales/list": {"locales": [{"code": STR, "label": STR}]},
    "locales/fetch": {
        "locale": STR, "catalogs": [{"name": STR, "filename": STR, "content": STR}],
        "skipped": [STR],
    },
    "quickstart/state": {
        "quickstart_completed": BOOL, "agents": [STR], "risk_profiles": [STR],
        "runtime_profiles": [STR], "model_providers": [STR], "channels": [STR], "storage": [STR],
        "default_runtime_profile|": STR, "unassigned_channels?": [STR],
        "model_provider_types?": [_TYPE], "channel_types?": [_TYPE], "risk_presets?": [_PRESET],
        "runtime_presets?": [_PRESET], "memory_kinds?": [STR], "personality_files?": [STR],
    },
    "quickstart/fields": {
        "fields": [{"key": STR, "label": STR, "help": STR, "kind": STR, "is_secret": BOOL,
                    "enum_variants|": [STR], "required": BOOL, "default|": STR}],
    },
    "quickstart/validate": {"kind": OneOf(("ok", "errors"))},
    "quickstart/apply": {"kind": OneOf(("applied", "errors"))},
    "quickstart/dismiss": {"recorded": BOOL},
}  # fmt: skip
UPDATES = {
    "agent_message_chunk": {"text": STR},
    "agent_thought_chunk": {"text": STR},
    "tool_call": {"tool_call_id": STR, "name": STR, "raw_input": dict},
    "tool_result": {"tool_call_id": STR, "raw_output": STR},
    "approval_request": {
        "request_id": STR, "tool_name": STR, "arguments_summary": STR, "timeout_secs": INT,
    },
    "context_usage": {"input_tokens?": INT, "max_context_tokens?": INT},
    "history_trimmed": {"dropped_messages": INT, "kept_turns": INT, "reason": STR},
    "turn_complete": {"content": STR, "outcome": OneOf(("completed", "cancelled", "failed"))},
    "plan": {
        "entries": [{"content": STR, "status?": OneOf(("pending", "in_progress", "completed")),
                     "priority?": OneOf(("high", "medium", "low")), "activeForm|": STR}],
    },
}  # fmt: skip


def read_result(method, result):
    """The result, if the terminal can read it."""
    fit(result, RESULTS[method], method)
    for job in result.get("jobs", [result]) if method.startswith("cron/") and result else ():
        if "schedule" in job:
            fit(job["schedule"], SCHEDULES[job["schedule"]["kind"]], f"{method}.schedule")
    if method in ("quickstart/validate", "quickstart/apply"):
        fit(result, OUTCOMES[result["kind"]], method)
    return result


def read_update(params):
    """The update, if the terminal can read it; None when it knows no such kind."""
    form = UPDATES.get(params["type"])
    if form is None:
        return None
    fit(params, {"session_id": STR, **form}, params["type"])  # type: ignore[dict-item]
    return params
