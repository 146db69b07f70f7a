"""Tool calls as this protocol shows them: title, kind, places, differences."""

import os
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from dragoman.engine import shown
from dragoman.engine.ask import Ask
from dragoman.engine.content import Detail, Image, Text, text_of
from dragoman.engine.events import CallEnded
from dragoman.engine.visible import many, on_a_line, visible

if TYPE_CHECKING:
    from dragoman.engine.view import SessionView

_KINDS: dict[str, str] = {
    "read": "read",
    "ls": "read",
    "glob": "search",
    "grep": "search",
    "write": "edit",
    "edit": "edit",
    "bash": "execute",
    "shell": "execute",
    "ask_user": "other",
    "plan": "think",
}
_MAIN = (
    "command", "path", "file_path", "filePath", "pattern", "question", "url", "query", "text",
    "title", "prompt",
)  # fmt: skip
_TITLE = 200
_DIFF = 256 * 1024  # longer proposals are told by their size alone

Fields = dict[str, Any]


def kind_of(name: str, session: "SessionView | None") -> str:
    """The kind of a tool: as clients of this protocol draw it, else as it says itself."""
    tool = None if name in _KINDS or session is None else session.tool(name)
    return _KINDS.get(name) or (tool is not None and tool.spec.kind) or "other"


def title_of(name: str, args: dict[str, Any] | None) -> str:
    """One line for a screen: the tool and the argument that says most."""
    for key in _MAIN:
        value = (args or {}).get(key)
        if isinstance(value, str) and value.strip():
            line = visible(" ".join(value.split()), strict=True)
            if len(line) > _TITLE:
                line = f"{line[:_TITLE]}… ({many(len(line) - _TITLE, 'more character')})"
            return f"{name}: {line}"
    return name


def path_of(args: dict[str, Any] | None, cwd: str) -> str:
    """The file a call is about, absolute; empty when there is none."""
    for key in ("path", "file_path", "filePath"):
        value = (args or {}).get(key)
        if isinstance(value, str) and value:
            return os.path.normpath(os.path.join(cwd, value))
    return ""


def locations_of(name: str, args: dict[str, Any] | None, cwd: str) -> list[Fields]:
    path = path_of(args, cwd)
    if not path:
        return []
    line = (args or {}).get("offset")
    if name == "read" and isinstance(line, int) and not isinstance(line, bool) and line >= 1:
        return [{"path": path, "line": line}]
    return [{"path": path}]


def proposal_of(name: str, args: dict[str, Any] | None, cwd: str) -> list[Fields]:
    """What an edit would change, as differences; empty for other tools.

    What a write replaces is not known by its arguments: its question and its result tell.
    """
    path = path_of(args, cwd)
    if not path or args is None or name != "edit":
        return []
    edits = args.get("edits")
    found = []
    for edit in edits if isinstance(edits, list) else [args]:
        if not isinstance(edit, dict):
            continue
        old, new = edit.get("oldText"), edit.get("newText")
        if isinstance(old, str) and isinstance(new, str) and len(old) + len(new) <= _DIFF:
            found.append(_diff(path, old, new))
    return found


def question_of(ask: Ask) -> list[Fields]:
    """All that is asked: the differences against the files as they are now, and the rest as text.

    Differences are exact, since the client draws them; when something in them hides, it is written
    out beside them.
    """
    found = [_diff(one.path, one.old, one.new) for one in ask.changes]
    told = [part for part in shown.parts(ask) if part.kind != "note"]
    said = [part for part in told if part.kind != "diff" or _hides(ask)]
    edits = ask.tool == "edit" and not found
    if edits and (found := proposal_of(ask.tool, ask.args, ask.cwd)):
        texts = "".join(one["oldText"] + one["newText"] for one in found)
        plain = visible(texts) == texts and on_a_line(found[0]["path"]) == found[0]["path"]
        listed = (ask.args or {}).get("edits")
        if plain and (not isinstance(listed, list) or len(listed) == len(found)):
            said = [part for part in said if part.label not in ("path", "edits")]
    if not found and len(said) == 1 and said[0].kind != "diff":
        return [text_content(said[0].text)]
    found += [text_content(_words(part)) for part in said]
    return found or [text_content(visible(ask.summary or ask.title))]


def words_of(ask: Ask) -> str:
    """The same for clients that show one text beside the differences."""
    said = [part for part in shown.parts(ask) if part.kind != "diff" or _hides(ask)]
    labelled = any(part.kind == "diff" for part in said)
    return "\n".join(_words(part) if labelled else part.text for part in said if part.text)


def _words(part: shown.Part) -> str:
    kind, label, text = part
    return f"$ {text}" if kind == "command" else f"{label}: {text}" if label else text


def _hides(ask: Ask) -> bool:
    """Whether what the client draws of the changes does not show all of them."""
    return not ask.changes or any(
        change.note
        or visible(change.new) != change.new
        or visible(change.old or "") != (change.old or "")
        or on_a_line(change.path) != change.path
        for change in ask.changes
    )


def _diff(path: str, old: str | None, new: str) -> Fields:
    return {"type": "diff", "path": path, "oldText": old, "newText": new}


def text_content(text: str) -> Fields:
    return {"type": "content", "content": {"type": "text", "text": text}}


def terminal_content(terminal_id: str) -> Fields:
    return {"type": "terminal", "terminalId": terminal_id}


def blocks_of(content: Sequence[Text | Image]) -> list[Fields]:
    return [{"type": "content", "content": block_of(block)} for block in content]


def block_of(block: Text | Image) -> Fields:
    if isinstance(block, Image):
        from base64 import b64encode

        data = b64encode(block.data).decode()
        return {"type": "image", "data": data, "mimeType": block.mime_type}
    return {"type": "text", "text": block.text}


def result_update(ended: CallEnded, *, object_output: bool, terminal: bool) -> Fields:
    """The last update of a call: its differences, else what it said.

    A `terminal` means something only to the client that lent it, and only while it is not released.
    """
    detail = ended.detail or Detail()
    if not ended.is_error and detail.diffs:
        content = [_diff(diff.path, diff.old, diff.new) for diff in detail.diffs]
    elif terminal and detail.terminal_id:
        content = [terminal_content(detail.terminal_id)]
    else:
        content = blocks_of(ended.content)
    output: Any = text_of(ended.content)
    if object_output:
        output = {"output": output}
    update: Fields = {
        "sessionUpdate": "tool_call_update",
        "toolCallId": ended.call_id,
        "status": "completed" if ended.outcome == "done" else "failed",
        "name": ended.name,
        "content": content,
        "rawOutput": output,
    }
    if detail.locations:
        update["locations"] = places_of(detail)
    meta: Fields = {}
    if ended.outcome not in ("done", "failed"):
        meta["outcome"] = ended.outcome
    if detail.exit_code is not None:
        meta["exitCode"] = detail.exit_code
    if meta:
        update["_meta"] = {"dragoman": meta}
    return update


def places_of(detail: Detail) -> list[Fields]:
    """Where a call has been."""
    return [
        {"path": place.path} if place.line is None or place.line < 1
        else {"path": place.path, "line": place.line}
        for place in detail.locations
    ]  # fmt: skip
