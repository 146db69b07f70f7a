"""What each protocol's client saw of a turn, in the same few words for all.

Words: user, call (the model asked for a tool), asked, settled, ran (the tool began), done (the tool
ended), end (the turn ended). A client is held to the words that its protocol has.
"""

from typing import Any

from tests.cross.house import Speaker

Words = list[str]


def native(speaker: Speaker) -> Words:
    """`dragoman/event`, kept events only."""
    words: Words = []
    for message in speaker.seen:
        told = message.get("params", {})
        if message.get("method") != "dragoman/event" or not told["seq"]:
            continue
        event = told["event"]
        match event["type"]:
            case "turn_began":
                words.append("user")
            case "spoke":
                words += [f"call {b['id']}" for b in event["content"] if b["type"] == "tool_call"]
            case "asked" | "settled" as kind:
                words.append(kind)
            case "call_started":
                words.append(f"ran {event['call_id']}")
            case "call_ended":
                words.append(f"done {event['call_id']}")
            case "turn_ended":
                words.append("end")
    return words


def acp(speaker: Speaker) -> Words:
    words: Words = []
    for message in speaker.seen:
        method = message.get("method")
        if method == "session/request_permission":
            words.append("asked")
        elif method == "$/cancel_request":
            words.append("settled")
        if method != "session/update":
            continue
        update = message["params"]["update"]
        match update["sessionUpdate"], update.get("status"):
            case "user_message_chunk", _:
                words.append("user")
            case "tool_call", _:
                words.append(f"call {update['toolCallId']}")
            case "tool_call_update", "in_progress":
                words.append(f"ran {update['toolCallId']}")
            case "tool_call_update", "completed":
                words.append(f"done {update['toolCallId']}")
    return words


def zeroclaw(speaker: Speaker) -> Words:
    words: Words = []
    for message in speaker.seen:
        if message.get("method") != "session/update":
            continue
        update = message["params"]
        match update["type"]:
            case "user_message_chunk":
                words.append("user")
            case "approval_request":
                words.append("asked")
            case "tool_call":  # this protocol tells it when the tool begins
                words.append(f"ran {update['toolCallId']}")
            case "tool_result":
                words.append(f"done {update['toolCallId']}")
    return words


def zot(speaker: Speaker) -> Words:
    words: Words = []
    for message in speaker.seen:
        match message.get("type"):
            case "user_message":
                words.append("user")
            case "tool_call":
                words.append(f"call {message['id']}")
            case "approval_request":
                words.append("asked")
            case "approval_settled":
                words.append("settled")
            case "tool_result":
                words.append(f"done {message['id']}")
            case "done":
                words.append("end")
    return words


def humanlayer(speaker: Speaker) -> Words:
    words: Words = []
    for message in speaker.seen:
        event = (message.get("result") or {}).get("event")
        if event is None:
            continue
        data: dict[str, Any] = event["data"]
        match event["type"], data.get("event_type"):
            case "conversation_updated", "message" if data["role"] == "user":
                words.append("user")
            case "conversation_updated", "tool_call":
                words.append(f"call {data['tool_id']}")
            case "conversation_updated", "tool_result":
                words.append(f"done {data['tool_result_for_id']}")
            case "new_approval", _:
                words.append("asked")
            case "approval_resolved", _:
                words.append("settled")
            case "session_status_changed", _ if data.get("new_status") == "completed":
                words.append("end")
    return words


def openclawos(speaker: Speaker) -> Words:
    words: Words = []
    for message in speaker.seen:
        if message.get("type") != "event":
            continue
        told = message["payload"]
        match told["hookName"]:
            case "message_received":
                words.append("user")
            case "tool_completed":
                words.append(f"done {told['data']['callId']}")
            case "agent_completed":
                words.append("end")
    return words


def only(words: Words, kinds: str) -> Words:
    """The words of these kinds, in their order."""
    wanted = kinds.split()
    return [word for word in words if word.split()[0] in wanted]
