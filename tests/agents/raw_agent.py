"""An ACP agent without an SDK, for tests: it says what the prompt tells it to, line by line.

A prompt is a JSON array of messages to send. Requests among them get ids; what was answered is said
in the end, as JSON.
"""

import json
import sys
from typing import Any


def send(message: dict[str, Any]) -> None:
    line = json.dumps({"jsonrpc": "2.0", **message})
    sys.stdout.write(line.replace("Infinity", "1e999") + "\n")  # as JSON may write it
    sys.stdout.flush()


def lines() -> Any:
    for line in sys.stdin:
        yield json.loads(line)


def turn(given: list[dict[str, Any]], heard: Any) -> None:
    """Send what was given; then wait until every request was answered."""
    answers: dict[str, Any] = {}
    waiting = []
    for place, message in enumerate(given):
        if message["method"] != "session/update":
            message["id"] = f"r{place}"
            waiting.append(message["id"])
        message.setdefault("params", {})
        if isinstance(message["params"], dict):
            message["params"]["sessionId"] = "s"
        send(message)
    while waiting:
        answer = next(heard)
        if answer.get("id") in waiting:
            waiting.remove(answer["id"])
            answers[answer["id"]] = answer.get("error", {}).get("code") or answer.get("result")
    chunk = {"type": "text", "text": json.dumps(answers)}
    update = {"sessionUpdate": "agent_message_chunk", "content": chunk}
    send({"method": "session/update", "params": {"sessionId": "s", "update": update}})


def main() -> None:
    heard = lines()
    for message in heard:
        method, id = message.get("method"), message.get("id")
        if method == "initialize":
            send({"id": id, "result": {"protocolVersion": 1}})
        elif method == "session/new":
            send({"id": id, "result": {"sessionId": "s"}})
        elif method == "session/prompt":
            turn(json.loads(message["params"]["prompt"][-1]["text"]), heard)
            send({"id": id, "result": {"stopReason": "end_turn"}})


main()
