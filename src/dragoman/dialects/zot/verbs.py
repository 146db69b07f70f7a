"""Every command: its parameters, and what it does.

A verb is a plain function where nothing is awaited. It gets the hearer and its parameters, and
returns the response's `data` (None: there is none). Of a call the id is (command, id).
"""

import re
from collections.abc import Callable
from os import getcwd
from typing import TYPE_CHECKING, Any

import msgspec

from dragoman import __version__
from dragoman.engine.content import Image, Text, Usage
from dragoman.engine.content import Prompt as Content
from dragoman.engine.door import EFFORTS, Door
from dragoman.engine.events import ACTIVE, Verdict
from dragoman.engine.faults import BadInput, Fault, NothingRunning, UnknownModel
from dragoman.engine.info import SessionInfo, SessionQuery
from dragoman.engine.view import SessionView
from dragoman.engine.visible import visible
from dragoman.wire.codec import mend_text
from dragoman.wire.verbs import After, C, P, Table, Verb, reader

from . import shapes
from .faults import BUSY
from .frames import clock_time, success
from .hear import ZotCommand, lowered, read
from .seat import ZotSeat, new_session
from .speak import EVENTS, message, request, usage

if TYPE_CHECKING:
    from dragoman.wire.serve import Call

    from .hear import ZotHearer

PROTOCOL = 1
_MOST_LISTED = 1_000
_OTHER_CASE = rb'"[a-z_]*[A-Z][A-Za-z_]*"\s*:'
_DECISIONS: dict[str, Verdict] = {
    "allow": "allow", "approve": "allow", "yes": "allow", "allow_always": "allow_always",
    "always": "allow_always", "deny": "deny", "no": "deny", "deny_always": "deny_always",
    "edit": "edit", "answer": "answer", "cancelled": "cancelled",
}  # fmt: skip


# --- where the client is ---


def door_of(hearer: "ZotHearer") -> Door:
    door = hearer.desk.door
    assert door is not None
    return door


async def seat_of(hearer: "ZotHearer") -> ZotSeat:
    """The connection's session, opened when there is none yet."""
    if hearer.seat is None:
        await sit(hearer, "new")
    assert hearer.seat is not None
    return hearer.seat


async def sit(
    hearer: "ZotHearer", session: str, agent: str = "", cwd: str = "", *, quiet: bool = False
) -> None:
    """Take a place at a session, and give up the one before."""
    door, settings, who = door_of(hearer), hearer.desk.settings, hearer.who
    if session == "new":
        session = (await door.open(new_session(settings, agent, cwd), who)).id
    seat = await ZotSeat.take(door, hearer.link, who, session, sole=settings.sole, quiet=quiet)
    seat.freed = hearer.maybe_leave
    if hearer.seat is not None:
        hearer.seat.leave()
    hearer.seat = seat
    if hearer.has_left:
        seat.leave()
    elif hearer.has_ended:
        seat.input_ended()


def state_of(hearer: "ZotHearer") -> SessionView | None:
    return hearer.seat.session if hearer.seat is not None else None


def model_of(hearer: "ZotHearer") -> tuple[str, str]:
    """Provider and model in use, or to be used."""
    state = state_of(hearer)
    if state is not None:
        ref = state.model
    else:
        settings, door = hearer.desk.settings, door_of(hearer)
        ref, alias = settings.model, _agent_of(hearer)
        if not ref:
            ref = door.profile(alias).model if alias else ""
        ref = door.model(ref, alias).ref
    provider, _, model = ref.partition("/")
    return provider, model


def _agent_of(hearer: "ZotHearer") -> str:
    """The agent in use, or to be used; empty when none is named among several."""
    state = state_of(hearer)
    if state is not None:
        return state.agent
    return hearer.desk.settings.agent or door_of(hearer).default_agent() or ""


def refuse_when_busy(hearer: "ZotHearer") -> None:
    if hearer.seat is not None and hearer.seat.busy:
        raise BadInput(BUSY)


def refuse_when_working(hearer: "ZotHearer") -> None:
    """A client cannot leave a session while its own prompts wait or run there."""
    if hearer.seat is not None and hearer.seat.works:
        raise BadInput(BUSY)


# --- the commands of the protocol document ---


async def hello(hearer: "ZotHearer", params: shapes.Hello) -> Any:
    if not params.session:
        return _greeting(hearer)
    refuse_when_working(hearer)
    await sit(hearer, params.session, quiet=True)
    return _then_begin(hearer, lambda: {**_greeting(hearer), "session": params.session})


def _then_begin(hearer: "ZotHearer", answer: Callable[[], dict[str, Any]]) -> After:
    """The answer, and after it what the session that was sat down at has said meanwhile."""
    seat = hearer.seat
    assert seat is not None
    try:
        return After(answer(), seat.begin)
    except BaseException:
        seat.begin()
        raise


def _greeting(hearer: "ZotHearer") -> dict[str, Any]:
    provider, model = model_of(hearer)
    return {
        "model": model,
        "protocol_version": PROTOCOL,
        "provider": provider,
        "version": door_of(hearer).facts.version or __version__,
    }


def read_prompt(line: bytes) -> Content:
    """A prompt's content; pictures are checked before anything is queued. Raises ValueError."""
    from binascii import Error, a2b_base64

    params = _read_prompt(line)
    blocks: list[Text | Image] = [Text(params.message)] if params.message else []
    for number, picture in enumerate(params.images or (), 1):
        text = (picture.data or "").replace("\n", "").replace("\r", "")
        try:
            data = a2b_base64(text.encode(), strict_mode=True)
        except (Error, UnicodeEncodeError) as trouble:
            raise ValueError(f"image {number} is not base64: {trouble}") from None
        blocks.append(Image(picture.mime_type or "", data))
    return tuple(blocks)


_read_prompt = reader(shapes.Prompt)


async def prompt(call: "Call[ZotHearer]", content: Content) -> None:
    """The seat answers when the turn begins, in its place among the events."""
    seat = await seat_of(call.conn)
    await seat.prompt(content, call.id[1], lambda: call.is_followed_by(VERBS["abort"]))
    call.finish()


async def abort(hearer: "ZotHearer", params: None) -> None:
    if hearer.seat is not None:
        hearer.seat.abort()
        await door_of(hearer).kept(hearer.seat.session_id)


async def compact(call: "Call[ZotHearer]", params: None) -> None:
    await (await seat_of(call.conn)).compact(call.id[1])
    call.finish()


def get_state(hearer: "ZotHearer", params: None) -> dict[str, Any]:
    provider, model = model_of(hearer)
    settings, state = hearer.desk.settings, state_of(hearer)
    busy = hearer.seat is not None and hearer.seat.busy
    data: dict[str, Any] = {"busy": busy, "model": model, "provider": provider}
    if state is None:
        data |= {"cwd": settings.cwd_shown or settings.cwd or getcwd(), "message_count": 0}
        data["usage"] = usage(Usage(), 0)
    else:
        shown = settings.cwd_shown if state.cwd == settings.cwd else ""
        data |= {"cwd": shown or state.cwd, "message_count": len(state.messages)}
        data["usage"] = usage(state.usage, state.cost)
        if state.mode in ("plan", "readonly"):
            data["mode"] = state.mode
        if settings.keeps:
            data["session"] = state.id
    return data


def get_messages(hearer: "ZotHearer", params: None) -> dict[str, Any]:
    state = state_of(hearer)
    return {"messages": [message(said) for said in state.messages] if state else []}


async def clear(hearer: "ZotHearer", params: None) -> None:
    refuse_when_busy(hearer)
    if hearer.seat is not None:
        await door_of(hearer).clear(hearer.seat.session_id, hearer.who)


async def set_model(hearer: "ZotHearer", params: shapes.SetModel) -> dict[str, Any]:
    refuse_when_busy(hearer)
    door = door_of(hearer)
    provider, _ = model_of(hearer)
    wanted = (params.model or "").removeprefix(f"{provider}/")
    unknown = UnknownModel(f'unknown model "{wanted}" (provider="{provider}")')
    if not wanted:
        raise unknown
    try:
        found = door.model(f"{provider}/{wanted}", _agent_of(hearer))
    except UnknownModel:
        raise unknown from None
    if found.provider != provider:
        raise unknown
    seat = await seat_of(hearer)
    await door.set_model(seat.session_id, found.ref, hearer.who)
    return {"model": found.id}


def get_models(hearer: "ZotHearer", params: None) -> dict[str, Any]:
    provider, _ = model_of(hearer)
    return {
        "models": [
            {
                "context_window": model.context_window,
                "id": model.id,
                "max_output": model.max_output,
                "provider": model.provider,
                "reasoning": model.reasoning,
            }
            for model in door_of(hearer).models(provider)
            if model.provider == provider
        ]
    }


def ping(hearer: "ZotHearer", params: None) -> dict[str, Any]:
    """The whole way; `ZotHearer.hear` answers with the same bytes in half the time (0073)."""
    return {"pong": True}


# --- our additions ---


async def set_reasoning(hearer: "ZotHearer", params: shapes.SetReasoning) -> dict[str, Any]:
    refuse_when_busy(hearer)
    effort = params.reasoning or ""
    if effort not in EFFORTS:
        raise BadInput(f'unknown reasoning "{effort}": use one of {", ".join(EFFORTS)}')
    seat = await seat_of(hearer)
    await door_of(hearer).set_reasoning(seat.session_id, effort, hearer.who)
    return {"reasoning": effort}


async def set_mode(hearer: "ZotHearer", params: shapes.SetMode) -> dict[str, Any]:
    seat = await seat_of(hearer)
    await door_of(hearer).set_mode(seat.session_id, params.mode or "", hearer.who)
    return {"mode": params.mode}


async def steer(hearer: "ZotHearer", content: Content) -> dict[str, Any]:
    nothing = "nothing is running: send it as a prompt"
    if hearer.seat is None:
        raise BadInput(nothing)
    if not content:
        raise BadInput("the message is empty")
    try:
        await door_of(hearer).steer(hearer.seat.session_id, content, hearer.who)
    except NothingRunning:
        raise BadInput(nothing) from None
    return {"steered": True}


async def approve(hearer: "ZotHearer", params: shapes.Approve) -> dict[str, Any]:
    door = door_of(hearer)
    state = state_of(hearer)
    ask_id = params.approval or ""
    if not ask_id:
        open_now = list(state.asks) if state is not None else []
        if len(open_now) != 1:
            raise BadInput(f'"approval" is missing and {len(open_now)} approvals are open')
        ask_id = open_now[0]
    decision = params.decision
    if decision is None and params.allow is not None:
        decision = "allow" if params.allow else "deny"
    if decision is None and params.text is not None:
        decision = "answer"
    verdict = _DECISIONS.get(decision or "")
    if verdict is None:
        raise BadInput(f'unknown decision "{decision or ""}": use one of {", ".join(_DECISIONS)}')
    settled = await door.answer(
        ask_id, verdict, hearer.who, comment=params.comment or "", text=params.text or "",
        scope=params.scope or "", lasts=params.lasts or "", digest=params.digest or "",
    )  # fmt: skip
    answer = {"approval": ask_id, "decision": settled.verdict}
    if settled.scope:
        answer |= {"remembered": visible(settled.scope), "rule": settled.rule}
    return answer


async def list_sessions(hearer: "ZotHearer", params: shapes.ListSessions) -> dict[str, Any]:
    limit = max(1, min(params.limit or 100, _MOST_LISTED))
    query = SessionQuery(cwd=params.cwd, limit=limit, cursor=params.cursor or "")
    page = await door_of(hearer).list(query)
    data: dict[str, Any] = {"sessions": [_row(hearer, info) for info in page.sessions]}
    if page.cursor:
        data["cursor"] = page.cursor
    return data


def _row(hearer: "ZotHearer", info: SessionInfo) -> dict[str, Any]:
    provider, _, model = info.model.partition("/")
    session = door_of(hearer).live(info.id)
    return {
        "agent": info.agent,
        "busy": info.status in ACTIVE if session is None else session.busy,
        "cwd": info.cwd,
        "id": info.id,
        "message_count": info.messages,
        "model": model,
        "provider": provider,
        "status": info.status,
        "time": clock_time(info.updated_at),
        "title": info.title or info.query[:100],
    }


async def open_session(hearer: "ZotHearer", params: shapes.Open) -> After:
    """The answer comes before anything of the new session, and after all of the old one."""
    refuse_when_working(hearer)
    session, agent, cwd = params.session or "new", params.agent or "", params.cwd or ""
    await sit(hearer, session, agent, cwd, quiet=True)
    return _then_begin(hearer, lambda: _opened(hearer))


def _opened(hearer: "ZotHearer") -> dict[str, Any]:
    state = state_of(hearer)
    assert state is not None
    data: dict[str, Any] = {"agent": state.agent, "session": state.id}
    data["state"] = get_state(hearer, None)
    if state.asks:
        data["approvals"] = [request(ask) for ask in state.asks.values()]
    return data


def get_capabilities(hearer: "ZotHearer", params: None) -> dict[str, Any]:
    return {
        "commands": sorted(VERBS),
        "events": EVENTS,
        "max_line_bytes": shapes.MAX_LINE,
        "protocol_version": PROTOCOL,
        "reasoning": EFFORTS,
        "sessions": door_of(hearer).durable,
        "version": door_of(hearer).facts.version or __version__,
    }


def _verb(
    run: Callable[[C, P], object], params: type[P] | None = None, *, direct: bool = False
) -> Verb:
    read = None if params is None else _mending(reader(params))
    return Verb(run, order="serial", direct=direct, read=read, takes=params)


def _saying(run: Callable[[C, Content], object], *, direct: bool = False) -> Verb:
    """One whose params are a prompt."""
    read = _mending(read_prompt)
    return Verb(run, order="serial", direct=direct, read=read, takes=shapes.Prompt)


def _folded(line: bytes) -> bytes:
    """The line with its fields' names, and its pictures', in small letters: zot does not mind."""
    fields = lowered(msgspec.json.decode(line))
    pictures = fields.get("images")
    if isinstance(pictures, list):
        fields["images"] = [lowered(one) if isinstance(one, dict) else one for one in pictures]
    return msgspec.json.encode(fields)


def _mending(read: Callable[[bytes], P]) -> Callable[[bytes], P]:
    """Half a surrogate pair in a command's fields is mended, and names in any case are read."""

    def mended(line: bytes) -> P:
        try:
            if re.search(_OTHER_CASE, line):
                line = _folded(line)
            return read(line)
        except msgspec.DecodeError:
            whole = mend_text(line)
            if whole == line:
                raise
        return read(whole)

    return mended


VERBS: dict[str, Verb] = {
    "abort": _verb(abort),
    "approve": _verb(approve, shapes.Approve),
    "clear": _verb(clear),
    "compact": _verb(compact, direct=True),
    "get_capabilities": _verb(get_capabilities),
    "get_messages": _verb(get_messages),
    "get_models": _verb(get_models),
    "get_state": _verb(get_state),
    "hello": _verb(hello, shapes.Hello),
    "list_sessions": _verb(list_sessions, shapes.ListSessions),
    "open": _verb(open_session, shapes.Open),
    # Plain pings are answered by the hearer's own `pong`, with the same bytes.
    "ping": _verb(ping),
    "prompt": _saying(prompt, direct=True),
    "set_mode": _verb(set_mode, shapes.SetMode),
    "set_model": _verb(set_model, shapes.SetModel),
    "set_reasoning": _verb(set_reasoning, shapes.SetReasoning),
    "steer": _saying(steer),
}


def _answer(hearer: "ZotHearer", verb: Verb, id: tuple[str, str], value: Any) -> bytes:
    return success(*id, value)


TABLE = Table(
    VERBS, read=read, request=ZotCommand, answer=_answer, expected=(Fault,), strict=True,
    may_overtake=True, prepares=True, waiting=4_095,
)  # fmt: skip
