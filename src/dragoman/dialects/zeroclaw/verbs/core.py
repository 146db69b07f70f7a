"""`initialize`, `status`, `health`, `doctor/run`, `tui/list`."""

import os
import re
from collections.abc import Collection
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from dragoman.observe.process import resident
from dragoman.wire.verbs import Verb

from ..attachments import LOCAL
from ..desk import PROTOCOL, TERMINAL
from ..faults import AUTH_REQUIRED, VERSION_MISMATCH, Refusal, available
from ..shapes import Initialize
from ..spelling import heard, members, rfc3339, snake, verb
from ..terminals import NAME, release_of

if TYPE_CHECKING:
    from ..hear import ZeroclawHearer

METHODS: tuple[str, ...] = ()  # told as capabilities; set when the table is complete
_COMMANDS = (
    {"id": "help", "name": "help"},
    {"id": "new", "name": "new", "aliases": ("new-session",)},
    {"id": "model", "name": "model"},
)
_NAME_LIMIT = 128
_COMPATIBLE = re.compile(r"0\.8\.\d{1,3}(-[\w.]{1,32})?")  # releases that share this protocol
_ENV_COUNT = 1_000
_ENV_SIZE = 256 * 1024
_NAMES = tuple(field.encode_name for field in msgspec.structs.fields(Initialize))


class Hello(NamedTuple):
    """`initialize`, and its names as the client wrote them."""

    params: Initialize
    named: Collection[str]


def read_hello(raw: Any) -> Hello:
    given = members(raw, _NAMES)
    by_name = bytes(raw)[:1] == b"{"
    return Hello(msgspec.convert(heard(given), Initialize), given if by_name else ())


def initialize(conn: "ZeroclawHearer", hello: Hello) -> dict[str, Any]:
    params, named = hello
    version = PROTOCOL if params.protocol_version is None else params.protocol_version
    if version != PROTOCOL:
        raise Refusal(
            VERSION_MISMATCH,
            f"Protocol version mismatch: server={PROTOCOL}, client={version}",
            {"server": PROTOCOL, "client": version},
        )
    desk = conn.desk
    claimed = (params.tui_id or "").strip()[:_NAME_LIMIT]
    if claimed and params.tui_sig is not None and not desk.signer.fits(claimed, params.tui_sig):
        raise Refusal(AUTH_REQUIRED, "Invalid TUI signature")
    conn.form = _has_form(params.client_capabilities)
    conn.camel = "protocolVersion" in named or "protocol_version" not in named
    conn.terminal = _terminal(params, conn.form and not conn.camel, conn.link.peer.pid)
    conn.env = _environment(conn, params.env)
    conn.let_in()
    tui_id = desk.enlist(conn.who, conn.link, claimed)
    signature = desk.signer.sign(tui_id) if conn.terminal or params.tui_sig is not None else ""
    return {
        "protocol_version": PROTOCOL,
        "server_version": desk.version_for(conn.terminal),
        "server_pid": os.getpid(),
        "tui_id": tui_id,
        **({"tui_sig": signature} if signature else {}),
        "capabilities": METHODS,
        "commands": _COMMANDS,
    }


def _has_form(capabilities: object) -> bool:
    """`{}` and `{"form": …}` offer a form; nothing, or only other modes, do not."""
    if not isinstance(capabilities, dict):
        return False
    for name, value in capabilities.items():
        if snake(name) == "elicitation" and isinstance(value, dict):
            return not value or "form" in value
    return False


def _terminal(params: Initialize, alike: bool, pid: int | None) -> str:
    """The version that ZeroClaw's own terminal is to hear; empty for all other clients.

    It accepts a daemon of its own version only. It may name itself; releases that do not are known
    by how they say hello (`alike`): in snake_case, with a form for questions. Which one it is, its
    program tells where it can be read.
    """
    info = params.client_info if isinstance(params.client_info, dict) else {}
    name = params.client_name or info.get("name") or params.client_info
    version = params.client_version or info.get("version")
    if not isinstance(name, str) or not name:
        return (release_of(pid) or TERMINAL) if alike else ""
    if not name.lower().startswith(NAME):
        return ""
    if not isinstance(version, str):
        version = name.partition("/")[2]  # "zerocode/0.8.4"
    return version if _COMPATIBLE.fullmatch(version) else release_of(pid) or TERMINAL


def _environment(conn: "ZeroclawHearer", env: dict[str, Any] | None) -> dict[str, str]:
    """The client's environment, from this machine only; what is no text, or too much, is left."""
    if not env or conn.link.peer.transport not in LOCAL:
        return {}
    found: dict[str, str] = {}
    size = 0
    for name, value in env.items():
        if isinstance(value, str) and "\0" not in name + value and "=" not in name and name:
            size += len(name) + len(value)
            if size > _ENV_SIZE or len(found) >= _ENV_COUNT:
                break
            found[name] = value
    return found


def status(conn: "ZeroclawHearer", _: None) -> msgspec.Raw:
    """The whole way; `status_line` has the same bytes in half the time (decision 0073)."""
    return conn.desk.status(conn.camel, conn.terminal)


def status_line(conn: "ZeroclawHearer") -> bytes | None:
    """The answer of `status` at hand; making it takes twice as long (decision 0073)."""
    return conn.desk.status_line(conn.camel, conn.terminal) if conn.ready else None


def health(conn: "ZeroclawHearer", _: None) -> Any:
    door = conn.door
    now = door.now_ms()
    stamp = rfc3339(now)
    store = door.health
    parts = {"rpc": "", "engine": "", "store": store.problem}
    if door.facts.gateway is not None:
        parts["gateway"] = ""
    components = {
        name: {
            "status": "error" if problem else "ok",
            "updated_at": stamp,
            "last_ok": None if problem else stamp,
            "last_error": problem or None,
            "restart_count": 0,
        }
        for name, problem in parts.items()
    }
    return {
        "pid": os.getpid(),
        "updated_at": stamp,
        "uptime_seconds": door.uptime_ms() // 1000,
        "components": components,
        "process": {
            "rss_bytes": resident(),
            "system_ram_total_bytes": _ram(),
            "cpu_percent": None,
            "num_cpus": os.cpu_count() or 1,
        },
    }


def _ram() -> int:
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (ValueError, OSError, AttributeError):
        return 0


async def doctor(conn: "ZeroclawHearer", _: None) -> Any:
    rows = await available(conn.door.facts.doctor, "Doctor is")()
    counts = {"ok": 0, "warn": 0, "error": 0}
    for row in rows:
        counts[row.severity] += 1
    return {
        "results": [
            {
                "severity": row.severity,
                "category": row.category,
                "message": f"{row.message} {row.fix}".strip(),
            }
            for row in rows
        ],
        "summary": {"ok": counts["ok"], "warnings": counts["warn"], "errors": counts["error"]},
    }


def tuis(conn: "ZeroclawHearer", _: None) -> dict[str, Any]:
    return {
        "tuis": [
            {
                "tui_id": tui.tui_id,
                "connected_at": rfc3339(tui.at),
                "connected_at_unix": tui.at // 1000,
                "peer_label": tui.peer,
                "transport": tui.transport,
            }
            for tui in conn.desk.tuis.values()
        ]
    }


VERBS = {
    "initialize": Verb(initialize, read=read_hello),
    # The desk keeps it ready in both spellings.
    "status": verb(status, native=True, quick=status_line),
    "health": verb(health),
    "doctor/run": verb(doctor),
    "tui/list": verb(tuis),
}
