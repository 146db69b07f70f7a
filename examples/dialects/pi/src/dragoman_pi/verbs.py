"""Every command: its fields, and what it does.

Those that change where the connection is run one after the other; those that may take long run
beside them, so that replies can overtake each other.
"""

import asyncio
from binascii import Error, a2b_base64
from typing import TYPE_CHECKING, Any

import msgspec

from dragoman.engine.content import Image, Message, Prompt, Text, ToolCall, ToolResult, text_of
from dragoman.engine.events import Verdict
from dragoman.engine.faults import (
    AlreadySettled,
    BadInput,
    UnknownAsk,
    UnknownModel,
    UnknownSession,
)
from dragoman.engine.ports import ModelInfo
from dragoman.wire.verbs import Verb

from . import messages as pi
from .speak import level_of

if TYPE_CHECKING:
    from dragoman.wire.serve import Call

    from .hear import PiHearer

LEVELS = ("off", "minimal", "low", "medium", "high", "xhigh", "max")
_MODES = ("all", "one-at-a-time")


class Nothing(msgspec.Struct):
    pass


class Picture(msgspec.Struct):
    data: str
    mimeType: str = "image/png"


class Said(msgspec.Struct):
    message: str
    images: list[Picture] | None = None
    streamingBehavior: str | None = None


class ModelChoice(msgspec.Struct):
    provider: str
    modelId: str


class Level(msgspec.Struct):
    level: str


class ModeOf(msgspec.Struct):
    mode: str


class Switch(msgspec.Struct):
    enabled: bool


class Path(msgspec.Struct):
    sessionPath: str


class Entry(msgspec.Struct):
    entryId: str


class Since(msgspec.Struct):
    since: str | None = None


class Name(msgspec.Struct):
    name: str


class Reply(msgspec.Struct):
    id: Any = None
    value: Any = None
    confirmed: Any = None
    cancelled: Any = None


def _content(said: Said) -> Prompt:
    blocks: list[Text | Image] = [Text(said.message)]
    for number, picture in enumerate(said.images or (), 1):
        try:
            data = a2b_base64(picture.data.encode(), strict_mode=True)
        except (Error, UnicodeEncodeError) as trouble:
            raise BadInput(f"image {number} is not base64: {trouble}") from None
        blocks.append(Image(picture.mimeType, data))
    return tuple(blocks)


# --- prompting ---


async def prompt(conn: "PiHearer", said: Said) -> dict[str, Any]:
    place = await conn.here()
    return {"disposition": await place.prompt(_content(said), said.streamingBehavior or "")}


async def steer(conn: "PiHearer", said: Said) -> dict[str, Any]:
    await (await conn.here()).steer(_content(said))
    return {"disposition": "queued"}


async def follow_up(conn: "PiHearer", said: Said) -> dict[str, Any]:
    await (await conn.here()).follow(_content(said))
    return {"disposition": "queued"}


async def abort(call: "Call[PiHearer]", _: Nothing) -> None:
    place = call.conn.place
    if place is None:
        call.reply(None)
        return
    await place.abort()
    place.then(lambda: call.reply(None))


async def clear_queue(conn: "PiHearer", _: Nothing) -> dict[str, Any]:
    place = await conn.here()
    found = place.queue()
    await place.clear()
    return found


async def answer(conn: "PiHearer", reply: Reply) -> None:
    """A dialog was closed; what is unknown or was answered before is passed over."""
    door = conn.desk.door
    try:
        ask = (await door.ask(str(reply.id))).ask
        verdict: Verdict
        text = ""
        if ask.kind == "tool":
            verdict = "allow" if reply.confirmed is True else "deny"
        elif isinstance(reply.value, str) and reply.cancelled is not True:
            verdict, text = "answer", reply.value
        else:
            verdict = "cancelled"
        await door.answer(ask.id, verdict, conn.who, text=text)
    except (UnknownAsk, AlreadySettled):
        return


# --- what is ---


async def get_state(conn: "PiHearer", _: Nothing) -> dict[str, Any]:
    place = await conn.here()
    info = await conn.desk.door.info(place.id)
    model = conn.desk.door.model(info.model)
    made: dict[str, Any] = {
        "model": pi.model(model),
        "thinkingLevel": _level(model, info.reasoning),
        "isStreaming": place.busy,
        "isCompacting": place.compacting,
        **conn.modes,
        "sessionId": info.id,
        "autoCompactionEnabled": True,
        "messageCount": len(await _history(conn)),
        "pendingMessageCount": len(place.steering) + len(place.following),
    }
    if (path := conn.desk.path_of(info.id)) is not None:
        made["sessionFile"] = path
    if info.title:
        made["sessionName"] = info.title
    return made


async def _messages(conn: "PiHearer") -> list[Message]:
    return list(await conn.desk.door.messages((await conn.here()).id))


async def _history(conn: "PiHearer") -> list[dict[str, Any]]:
    place = await conn.here()
    info = await conn.desk.door.info(place.id)
    return pi.history(await conn.desk.door.messages(place.id), info.model)


async def get_messages(conn: "PiHearer", _: Nothing) -> dict[str, Any]:
    return {"messages": await _history(conn)}


async def get_last_assistant_text(conn: "PiHearer", _: Nothing) -> dict[str, Any]:
    for said in reversed(await _messages(conn)):
        if said.role == "assistant" and (text := text_of(said.content)):
            return {"text": text}
    return {}


async def get_session_stats(conn: "PiHearer", _: Nothing) -> dict[str, Any]:
    place = await conn.here()
    info, said = await conn.desk.door.info(place.id), await _messages(conn)
    model = conn.desk.door.model(info.model)
    used, context = info.usage, info.last_usage.context
    tokens = {
        "input": used.input,
        "output": used.output,
        "cacheRead": used.cache_read,
        "cacheWrite": used.cache_write,
        "total": used.input + used.output + used.cache_read + used.cache_write,
    }
    made: dict[str, Any] = {
        "sessionId": info.id,
        "userMessages": sum(1 for one in said if one.role == "user"),
        "assistantMessages": sum(1 for one in said if one.role == "assistant"),
        "toolCalls": _count(said, ToolCall),
        "toolResults": _count(said, ToolResult),
        "totalMessages": len(await _history(conn)),
        "tokens": tokens,
        "cost": info.cost,
    }
    if (path := conn.desk.path_of(info.id)) is not None:
        made["sessionFile"] = path
    if context and model.context_window:
        percent = 100 * context / model.context_window
        window = model.context_window
        made["contextUsage"] = {"tokens": context, "contextWindow": window, "percent": percent}
    return made


def _count(said: list[Message], kind: type) -> int:
    return sum(1 for one in said for block in one.content if isinstance(block, kind))


# --- models and thinking ---


async def _model(conn: "PiHearer") -> tuple[ModelInfo, str]:
    place = await conn.here()
    info = await conn.desk.door.info(place.id)
    return conn.desk.door.model(info.model), info.reasoning


def _level(model: ModelInfo, effort: str) -> str:
    return level_of(effort) if model.reasoning else "off"


async def set_model(conn: "PiHearer", wanted: ModelChoice) -> dict[str, Any]:
    door, name = conn.desk.door, f"{wanted.provider}/{wanted.modelId}"
    place = await conn.here()
    try:
        found = door.model(name)
    except UnknownModel:
        raise BadInput(f"Model not found: {name}") from None
    await door.set_model(place.id, found.ref, conn.who)
    return pi.model(found)


async def cycle_model(conn: "PiHearer", _: Nothing) -> Any:
    door, place = conn.desk.door, await conn.here()
    known = list(door.models())
    if len(known) < 2:
        return msgspec.Raw(b"null")
    current, effort = await _model(conn)
    refs = [one.ref for one in known]
    at = refs.index(current.ref) if current.ref in refs else -1
    found = known[(at + 1) % len(known)]
    await door.set_model(place.id, found.ref, conn.who)
    return {
        "model": pi.model(found),
        "thinkingLevel": _level(found, effort),
        "isScoped": False,
    }


async def get_available_models(conn: "PiHearer", _: Nothing) -> dict[str, Any]:
    return {"models": [pi.model(one) for one in conn.desk.door.models()]}


async def set_thinking_level(conn: "PiHearer", wanted: Level) -> None:
    model, effort = await _model(conn)
    level = wanted.level if wanted.level in LEVELS else _level(model, effort)
    if not model.reasoning:
        level = "off"
    await conn.desk.door.set_reasoning((await conn.here()).id, level, conn.who)


async def cycle_thinking_level(conn: "PiHearer", _: Nothing) -> Any:
    model, effort = await _model(conn)
    if not model.reasoning:
        return msgspec.Raw(b"null")
    current = _level(model, effort)
    at = LEVELS.index(current) if current in LEVELS else -1
    level = LEVELS[(at + 1) % len(LEVELS)]
    await conn.desk.door.set_reasoning((await conn.here()).id, level, conn.who)
    return {"level": level}


async def get_available_thinking_levels(conn: "PiHearer", _: Nothing) -> dict[str, Any]:
    model, _effort = await _model(conn)
    return {"levels": LEVELS if model.reasoning else ["off"]}


# --- modes ---


async def set_steering_mode(conn: "PiHearer", wanted: ModeOf) -> None:
    conn.modes["steeringMode"] = _mode(wanted)


async def set_follow_up_mode(conn: "PiHearer", wanted: ModeOf) -> None:
    conn.modes["followUpMode"] = _mode(wanted)
    if conn.place is not None:
        conn.place.follow_all = wanted.mode == "all"


def _mode(wanted: ModeOf) -> str:
    if wanted.mode not in _MODES:
        raise BadInput(f"mode must be one of {', '.join(_MODES)}")
    return wanted.mode


async def switch_automatic(conn: "PiHearer", wanted: Switch) -> None:
    if not wanted.enabled:
        raise BadInput(
            "This host compacts and retries by its own configuration.",
            "Change it there: dragoman config list.",
        )


async def abort_retry(conn: "PiHearer", _: Nothing) -> None:
    if conn.place is not None:
        await conn.place.abort()


async def compact(conn: "PiHearer", _: Nothing) -> dict[str, Any]:
    return await (await conn.here()).compact()


# --- sessions ---


async def new_session(conn: "PiHearer", _: Nothing) -> dict[str, Any]:
    await _stop(conn)
    await conn.anew()
    return {"cancelled": False}


async def switch_session(conn: "PiHearer", wanted: Path) -> dict[str, Any]:
    """A path that is not ours, or of a session that is gone, opens an empty one, as pi does."""
    await _stop(conn)
    try:
        await conn.move(conn.desk.id_of(wanted.sessionPath))
    except UnknownSession:
        await conn.anew()
    return {"cancelled": False}


async def _stop(conn: "PiHearer") -> None:
    if conn.place is not None:
        await conn.place.abort()


async def clone(conn: "PiHearer", _: Nothing) -> dict[str, Any]:
    door, place = conn.desk.door, await conn.here()
    info = await door.info(place.id)
    forked = await door.fork(place.id, conn.who)
    if info.title:
        await door.rename(forked.id, info.title, conn.who)
    await conn.move(forked.id)
    return {"cancelled": False}


async def fork(conn: "PiHearer", wanted: Entry) -> dict[str, Any]:
    """A new session that ends before one of the user's messages; its text is given back."""
    place = await conn.here()
    said = await _messages(conn)
    at = int(wanted.entryId[1:]) - 1 if wanted.entryId[1:].isdigit() else -1
    if not wanted.entryId.startswith("m") or not 0 <= at < len(said) or said[at].role != "user":
        raise BadInput("Invalid entry ID for forking")
    await _stop(conn)
    forked = await conn.desk.door.fork(place.id, conn.who, keep=at)
    await conn.move(forked.id)
    return {"text": text_of(said[at].content), "cancelled": False}


async def get_fork_messages(conn: "PiHearer", _: Nothing) -> dict[str, Any]:
    said = await _messages(conn)
    found = [
        {"entryId": f"m{number}", "text": text_of(one.content)}
        for number, one in enumerate(said, 1)
        if one.role == "user"
    ]
    return {"messages": found}


async def _entries(conn: "PiHearer") -> list[dict[str, Any]]:
    place = await conn.here()
    info = await conn.desk.door.info(place.id)
    made: list[dict[str, Any]] = []
    for number, said in enumerate(await _messages(conn), 1):
        for message in pi.history([said], info.model):
            entry = {"type": "message", "id": f"m{number}", "message": message}
            made.append({**entry, "parentId": f"m{number - 1}" if number > 1 else None})
    return made


async def get_entries(conn: "PiHearer", wanted: Since) -> dict[str, Any]:
    found = await _entries(conn)
    leaf = found[-1]["id"] if found else None
    if wanted.since is not None:
        places = [at for at, one in enumerate(found) if one["id"] == wanted.since]
        if not places:
            raise BadInput(f"Entry not found: {wanted.since}")
        found = found[places[-1] + 1 :]
    return {"entries": found, "leafId": leaf}


async def get_tree(conn: "PiHearer", _: Nothing) -> dict[str, Any]:
    found = await _entries(conn)
    tree: list[dict[str, Any]] = []
    for entry in reversed(found):
        tree = [{"entry": entry, "children": tree}]
    return {"tree": tree, "leafId": found[-1]["id"] if found else None}


async def set_session_name(conn: "PiHearer", wanted: Name) -> None:
    name = wanted.name.strip()
    if not name:
        raise BadInput("Session name cannot be empty")
    await conn.desk.door.rename((await conn.here()).id, name, conn.who)


async def get_commands(conn: "PiHearer", _: Nothing) -> dict[str, Any]:
    door, place = conn.desk.door, await conn.here()
    cwd = (await door.info(place.id)).cwd
    found = await asyncio.to_thread(door.commands, cwd)
    info = {"path": cwd, "source": "dragoman", "scope": "project", "origin": "top-level"}
    return {
        "commands": [
            {
                "name": one.name,
                "description": one.description,
                "source": "prompt",
                "sourceInfo": info,
            }
            for one in found.values()
        ]
    }


# --- what this host does not do for a client ---


async def bash(conn: "PiHearer", _: Nothing) -> None:
    raise BadInput(
        "This host runs commands only in an agent's turn, under its policy.",
        "Ask the agent to run it.",
    )


async def abort_bash(conn: "PiHearer", _: Nothing) -> None:
    """Nothing of the kind ever runs."""


async def export_html(conn: "PiHearer", _: Nothing) -> None:
    raise BadInput("Files are not written for clients.", "Use `dragoman export`.")


def _verb(run: Any, params: type = Nothing, *, beside: bool = False, direct: bool = False) -> Verb:
    return Verb(run, params, order="free" if beside else "serial", direct=direct)


VERBS: dict[str, Verb] = {
    "prompt": _verb(prompt, Said),
    "steer": _verb(steer, Said),
    "follow_up": _verb(follow_up, Said),
    "abort": _verb(abort, beside=True, direct=True),
    "clear_queue": _verb(clear_queue),
    "extension_ui_response": _verb(answer, Reply, beside=True),
    "get_state": _verb(get_state),
    "get_messages": _verb(get_messages),
    "get_last_assistant_text": _verb(get_last_assistant_text),
    "get_session_stats": _verb(get_session_stats),
    "set_model": _verb(set_model, ModelChoice),
    "cycle_model": _verb(cycle_model),
    "get_available_models": _verb(get_available_models),
    "set_thinking_level": _verb(set_thinking_level, Level),
    "cycle_thinking_level": _verb(cycle_thinking_level),
    "get_available_thinking_levels": _verb(get_available_thinking_levels),
    "set_steering_mode": _verb(set_steering_mode, ModeOf),
    "set_follow_up_mode": _verb(set_follow_up_mode, ModeOf),
    "set_auto_compaction": _verb(switch_automatic, Switch),
    "set_auto_retry": _verb(switch_automatic, Switch),
    "abort_retry": _verb(abort_retry, beside=True),
    "compact": _verb(compact, beside=True),
    "new_session": _verb(new_session),
    "switch_session": _verb(switch_session, Path),
    "clone": _verb(clone),
    "fork": _verb(fork, Entry),
    "get_fork_messages": _verb(get_fork_messages),
    "get_entries": _verb(get_entries, Since),
    "get_tree": _verb(get_tree),
    "set_session_name": _verb(set_session_name, Name),
    "get_commands": _verb(get_commands),
    "bash": _verb(bash),
    "abort_bash": _verb(abort_bash),
    "export_html": _verb(export_html),
}
