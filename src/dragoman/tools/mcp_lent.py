"""An MCP server that a client lends: its messages go through the client's own connection."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from dragoman.engine.ports.lent import Channel

_FAILED = -32603


@asynccontextmanager
async def lent(channel: Channel) -> AsyncIterator[tuple[Any, Any]]:
    """Both directions as the library wants them."""
    import anyio
    from mcp.shared.message import SessionMessage
    from mcp.types import JSONRPCRequest, jsonrpc_message_adapter

    to_us, heard = anyio.create_memory_object_stream[Any](64)
    said, to_them = anyio.create_memory_object_stream[Any](64)
    tasks: set[asyncio.Task[None]] = set()

    async def hear(fields: dict[str, Any]) -> None:
        message = jsonrpc_message_adapter.validate_python({"jsonrpc": "2.0", **fields})
        await to_us.send(SessionMessage(message))

    def spawn(work: Any) -> None:
        task = asyncio.ensure_future(work)
        tasks.add(task)
        task.add_done_callback(tasks.discard)

    async def carry(request: JSONRPCRequest) -> None:
        try:
            answer = await channel.ask(str(request.id), request.method, request.params)
        except Exception as problem:  # the client went away, or answered nonsense: it is told
            answer = {"error": {"code": _FAILED, "message": str(problem) or "the client is gone"}}
        await hear({"id": request.id, **answer})

    async def pump() -> None:
        async for item in to_them:
            message = item.message
            if isinstance(message, JSONRPCRequest):
                spawn(carry(message))
            # What is no request has no way to a lent server: the protocol knows none.

    def told(method: str, params: dict[str, Any] | None) -> None:
        spawn(hear({"method": method, **({"params": params} if params is not None else {})}))

    channel.on_told(told)
    spawn(pump())
    try:
        yield heard, said
    finally:
        channel.on_told(None)
        for task in tuple(tasks):
            task.cancel()
        for stream in (to_us, heard, said, to_them):
            await stream.aclose()
