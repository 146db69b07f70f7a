"""A model API on loopback that says what it was told to say, in the real streams' bytes."""

import asyncio
import json
from collections import deque
from dataclasses import dataclass, field
from typing import Any


@dataclass
class Reply:
    """One HTTP answer. `drop` cuts the connection after the chunks; `hold` keeps it open."""

    chunks: list[bytes] = field(default_factory=list)
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    drop: bool = False
    hold: bool = False
    pause: float = 0.0

    @classmethod
    def error(cls, status: int, body: Any, **headers: str) -> "Reply":
        text = body if isinstance(body, bytes) else json.dumps(body).encode()
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return cls([text], status, {"content-type": "application/json", **named})


@dataclass
class Asked:
    path: str
    headers: dict[str, str]
    body: Any


class FakeApi:
    """`async with FakeApi(reply, ...) as api`; replies come in order, the last one for ever."""

    def __init__(self, *replies: Reply) -> None:
        self.replies = deque(replies)
        self.asked: list[Asked] = []
        self.connections = 0
        self.hung_up = asyncio.Event()  # a client left while its answer was held
        self.holding = asyncio.Event()
        self.url = ""

    async def __aenter__(self) -> "FakeApi":
        self._server = await asyncio.start_server(self._serve, "127.0.0.1", 0)
        self.url = f"http://127.0.0.1:{self._server.sockets[0].getsockname()[1]}"
        self._tasks: set[asyncio.Task[None]] = set()
        return self

    async def __aexit__(self, *_: object) -> None:
        self._server.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._server.wait_closed()

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        task = asyncio.current_task()
        assert task is not None
        self._tasks.add(task)
        try:
            while await self._exchange(reader, writer):
                pass
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            pass
        finally:
            self._tasks.discard(task)
            writer.close()

    async def _exchange(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        line, *rest = head.strip().split("\r\n")
        headers = {k.lower(): v for k, v in (item.split(": ", 1) for item in rest)}
        body = await reader.readexactly(int(headers.get("content-length", 0)))
        self.asked.append(Asked(line.split(" ")[1], headers, json.loads(body) if body else None))
        reply = self.replies.popleft() if len(self.replies) > 1 else self.replies[0]
        fields = {"content-type": "text/event-stream", **reply.headers}
        fields["transfer-encoding"] = "chunked"
        top = "".join(f"{name}: {value}\r\n" for name, value in fields.items())
        writer.write(f"HTTP/1.1 {reply.status} X\r\n{top}\r\n".encode())
        for chunk in reply.chunks:
            if reply.pause:
                await asyncio.sleep(reply.pause)
            if chunk:
                writer.write(b"%x\r\n%s\r\n" % (len(chunk), chunk))
                await writer.drain()
        if reply.drop:
            return False
        if reply.hold:
            self.holding.set()
            await reader.read(1)
            self.hung_up.set()
            return False
        writer.write(b"0\r\n\r\n")
        await writer.drain()
        return True


def sse(*events: Any, name: bool = False) -> bytes:
    """The events as one byte string; `name` adds the event lines that Anthropic sends."""
    out = b""
    for event in events:
        if name:
            out += f"event: {event['type']}\n".encode()
        data = event if isinstance(event, str) else json.dumps(event, ensure_ascii=False)
        out += f"data: {data}\n\n".encode()
    return out


# --- Anthropic --------------------------------------------------------------------------------


def claude_start(**usage: int) -> dict[str, Any]:
    counts = {"input_tokens": 100, "output_tokens": 1, **usage}
    return {
        "type": "message_start",
        "message": {"id": "msg_1", "role": "assistant", "usage": counts},
    }


def claude_text(*deltas: str, index: int = 0) -> list[dict[str, Any]]:
    block = {"type": "text", "text": ""}
    return [
        {"type": "content_block_start", "index": index, "content_block": block},
        {"type": "ping"},
        *(_claude_delta(index, "text_delta", text=text) for text in deltas),
        {"type": "content_block_stop", "index": index},
    ]


def claude_thinking(*deltas: str, signature: str = "sig", index: int = 0) -> list[dict[str, Any]]:
    block = {"type": "thinking", "thinking": "", "signature": ""}
    return [
        {"type": "content_block_start", "index": index, "content_block": block},
        *(_claude_delta(index, "thinking_delta", thinking=text) for text in deltas),
        _claude_delta(index, "signature_delta", signature=signature),
        {"type": "content_block_stop", "index": index},
    ]


def claude_call(call_id: str, name: str, *fragments: str, index: int = 0) -> list[dict[str, Any]]:
    block = {"type": "tool_use", "id": call_id, "name": name, "input": {}}
    return [
        {"type": "content_block_start", "index": index, "content_block": block},
        _claude_delta(index, "input_json_delta", partial_json=""),
        *(_claude_delta(index, "input_json_delta", partial_json=text) for text in fragments),
        {"type": "content_block_stop", "index": index},
    ]


def _claude_delta(index: int, kind: str, **fields: str) -> dict[str, Any]:
    return {"type": "content_block_delta", "index": index, "delta": {"type": kind, **fields}}


def claude_end(stop: str = "end_turn", **usage: int) -> list[dict[str, Any]]:
    delta = {"stop_reason": stop, "stop_sequence": None}
    return [
        {"type": "message_delta", "delta": delta, "usage": {"output_tokens": 10, **usage}},
        {"type": "message_stop"},
    ]


def claude_error(kind: str, message: str = "went wrong") -> dict[str, Any]:
    return {"type": "error", "error": {"type": kind, "message": message}}


def claude(*events: Any) -> bytes:
    return sse(*events, name=True)


# --- OpenAI chat ------------------------------------------------------------------------------


def chat_delta(finish: str | None = None, **delta: Any) -> dict[str, Any]:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return {
        "id": "chatcmpl-1",
        "object": "chat.completion.chunk",
        "choices": [choice],
        "usage": None,
    }


def chat_call(index: int, call_id: str | None, name: str | None, arguments: str) -> dict[str, Any]:
    call: dict[str, Any] = {"index": index, "function": {"arguments": arguments}}
    if call_id:
        call |= {"id": call_id, "type": "function"}
        call["function"]["name"] = name
    return chat_delta(tool_calls=[call])


def chat_usage(prompt: int, output: int, cached: int = 0, reasoning: int = 0) -> dict[str, Any]:
    usage = {
        "prompt_tokens": prompt,
        "completion_tokens": output,
        "total_tokens": prompt + output,
        "prompt_tokens_details": {"cached_tokens": cached, "audio_tokens": 0},
        "completion_tokens_details": {"reasoning_tokens": reasoning},
    }
    return {"id": "chatcmpl-1", "object": "chat.completion.chunk", "choices": [], "usage": usage}


# --- Google -----------------------------------------------------------------------------------


def gemini(*parts: dict[str, Any], finish: str | None = None, **usage: int) -> dict[str, Any]:
    candidate: dict[str, Any] = {"content": {"parts": list(parts), "role": "model"}, "index": 0}
    if finish:
        candidate["finishReason"] = finish
    chunk: dict[str, Any] = {"candidates": [candidate], "modelVersion": "gemini-2.5-pro"}
    if usage:
        chunk["usageMetadata"] = usage
    return chunk
