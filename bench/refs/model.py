"""A model on loopback: streams deltas in the real APIs' bytes, as fast as it can or at a pace.

    model.py DELTAS SECONDS [CERTIFICATE KEY]

Prints its port. `/v1/messages` answers as Anthropic does, anything else as OpenAI's chat. Each
delta is one event, one HTTP chunk and, when paced, one write; streams have phases of their own.
"""

import asyncio
import json
import ssl
import sys

import uvloop

WORD = "word "
_HEAD = (
    b"HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncache-control: no-cache\r\n"
    b"transfer-encoding: chunked\r\n\r\n"
)


def _event(body: object, name: str = "") -> bytes:
    top = f"event: {name}\n" if name else ""
    text = f"{top}data: {body if isinstance(body, str) else json.dumps(body)}\n\n".encode()
    return b"%x\r\n%s\r\n" % (len(text), text)


def _claude(kind: str, **fields: object) -> bytes:
    return _event({"type": kind, **fields}, kind)


def _chat(finish: str | None = None, **delta: object) -> bytes:
    choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": finish}
    return _event({"id": "chatcmpl-B9MHDbslfkBeAs8l4bebGdFOJ6PeG",
                   "object": "chat.completion.chunk", "created": 1741570283, "model": "m",
                   "system_fingerprint": "fp_ee1d74bde0", "choices": [choice]})  # fmt: skip


ANTHROPIC = (
    _claude("message_start", message={"id": "msg_1", "type": "message", "role": "assistant",
            "content": [], "usage": {"input_tokens": 10, "output_tokens": 1}})
    + _claude("content_block_start", index=0, content_block={"type": "text", "text": ""}),
    _claude("content_block_delta", index=0, delta={"type": "text_delta", "text": WORD}),
    _claude("content_block_stop", index=0)
    + _claude("message_delta", delta={"stop_reason": "end_turn", "stop_sequence": None},
              usage={"output_tokens": 15})
    + _claude("message_stop"),
)  # fmt: skip
OPENAI = (
    _chat(role="assistant", content=""),
    _chat(content=WORD),
    _chat("stop")
    + _event({"id": "chatcmpl-1", "object": "chat.completion.chunk", "choices": [],
              "usage": {"prompt_tokens": 10, "completion_tokens": 15, "total_tokens": 25}})
    + _event("[DONE]"),
)  # fmt: skip


class Model(asyncio.Protocol):
    """One connection: answers requests one after the other."""

    def __init__(self, deltas: int, every: float) -> None:
        self.deltas, self.every = deltas, every
        self.data = b""
        self.gone = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport
        self.loop = asyncio.get_running_loop()

    def connection_lost(self, exc: Exception | None) -> None:
        self.gone = True

    def data_received(self, data: bytes) -> None:
        self.data += data
        head, end, body = self.data.partition(b"\r\n\r\n")
        if not end:
            return
        fields = head.lower()
        at = fields.find(b"\r\ncontent-length:")
        length = int(fields[at + 17 :].split(b"\r\n", 1)[0]) if at >= 0 else 0
        if len(body) < length:
            return
        self.data = body[length:]
        if head.split(b" ", 2)[1].endswith(b"/none"):
            self.transport.write(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{}")  # type: ignore[attr-defined]
            return
        begin, delta, end = ANTHROPIC if b"/v1/messages" in head else OPENAI
        self.transport.write(_HEAD + begin)  # type: ignore[attr-defined]
        if self.every:
            self.left, self.delta, self.end = self.deltas, delta, end
            self.due = self.loop.time() + self.every
            self.loop.call_at(self.due, self.tick)
        else:
            left = self.deltas
            while left:
                now = min(64, left)
                self.transport.write(delta * now)  # type: ignore[attr-defined]
                left -= now
            self.transport.write(end + b"0\r\n\r\n")  # type: ignore[attr-defined]

    def tick(self) -> None:
        if self.gone:
            return
        if not self.left:
            self.transport.write(self.end + b"0\r\n\r\n")  # type: ignore[attr-defined]
            return
        self.left -= 1
        self.transport.write(self.delta)  # type: ignore[attr-defined]
        self.due += self.every
        self.loop.call_at(self.due, self.tick)


async def main() -> None:
    deltas, every = int(sys.argv[1]), float(sys.argv[2])
    context = None
    if len(sys.argv) > 3:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(sys.argv[3], sys.argv[4])
    loop = asyncio.get_running_loop()
    server = await loop.create_server(
        lambda: Model(deltas, every), "127.0.0.1", 0, ssl=context, backlog=1000
    )
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(main())
