"""A small ACP agent on the official SDK, for tests: the prompt says what it does.

`hosted_agent.py STATE` keeps its sessions in the folder STATE, so that they can be loaded again.
"""

import asyncio
import os
import sys
from pathlib import Path
from typing import Any
from uuid import uuid4

import acp
from acp import schema

STATE = Path(sys.argv[1]) if len(sys.argv) > 1 else None
OPTIONS = [
    schema.PermissionOption(option_id="yes", name="Yes", kind="allow_once"),
    schema.PermissionOption(option_id="always", name="Always", kind="allow_always"),
    schema.PermissionOption(option_id="no", name="No", kind="reject_once"),
]


class Example(acp.Agent):
    def __init__(self) -> None:
        self.cwd: dict[str, str] = {}
        self.servers: dict[str, Any] = {}
        self.cancelled = asyncio.Event()

    def on_connect(self, conn: Any) -> None:
        self.client = conn

    async def initialize(self, protocol_version: int, **kwargs: Any) -> Any:
        return acp.InitializeResponse(
            protocol_version=protocol_version,
            agent_capabilities=schema.AgentCapabilities(
                load_session=STATE is not None,
                prompt_capabilities=schema.PromptCapabilities(image=True),
            ),
        )

    async def new_session(self, cwd: str, mcp_servers: Any = None, **kwargs: Any) -> Any:
        session = uuid4().hex
        self.cwd[session], self.servers[session] = cwd, mcp_servers or []
        self.remember(session, "")
        return acp.NewSessionResponse(session_id=session)

    async def load_session(self, cwd: str, session_id: str, **kwargs: Any) -> Any:
        if STATE is None or not (STATE / session_id).exists():
            raise acp.RequestError(-32602, "no such session")
        self.cwd[session_id] = cwd
        await self.say(session_id, "this was said long ago")
        return acp.LoadSessionResponse()

    def remember(self, session: str, line: str) -> None:
        if STATE is not None:
            with open(STATE / session, "a") as file:
                file.write(line)

    async def say(self, session: str, text: str) -> None:
        await self.client.session_update(session, acp.update_agent_message_text(text))

    async def cancel(self, session_id: str, **kwargs: Any) -> None:
        self.cancelled.set()

    async def prompt(self, session_id: str, prompt: list[Any], **kwargs: Any) -> Any:
        text = "\n".join(getattr(block, "text", f"[{block.type}]") for block in prompt)
        self.remember(session_id, f"{text}\n")
        word, _, rest = text.partition(" ")
        act = getattr(self, f"do_{word}", None)
        stop = "end_turn"
        if act is None:
            await self.say(session_id, f"you said: {text}")
        else:
            stop = await act(session_id, rest) or "end_turn"
        return acp.PromptResponse(stop_reason=stop)

    async def do_think(self, session: str, rest: str) -> None:
        await self.client.session_update(session, acp.update_agent_thought_text(rest))
        await self.client.session_update(
            session, acp.update_plan([acp.plan_entry("one"), acp.plan_entry("two")])
        )
        for word in ("a ", "b ", "c"):
            await self.say(session, word)

    async def do_remembered(self, session: str, rest: str) -> None:
        assert STATE is not None
        await self.say(session, (STATE / session).read_text().splitlines()[0])

    async def do_servers(self, session: str, rest: str) -> None:
        await self.say(session, ",".join(server.name for server in self.servers[session]))

    async def do_refine(self, session: str, rest: str) -> None:
        """Say what a call is about bit by bit, as agents do that stream their input."""
        start = acp.start_tool_call("call-r", "Run", kind="execute", status="pending", raw_input={})
        await self.client.session_update(session, start)
        for raw in ({"command": "ec"}, {"command": "echo"}):
            more = acp.update_tool_call("call-r", raw_input=raw)
            await self.client.session_update(session, more)
        done = acp.update_tool_call(
            "call-r", status="completed", raw_input={"command": f"echo {rest}"}, raw_output=rest
        )
        await self.client.session_update(session, done)

    async def do_tool(self, session: str, rest: str) -> None:
        """Ask, then do."""
        await self.say(session, "Let me see.")
        start = acp.start_tool_call(
            "call-1", f"Touch {rest}", kind="edit", status="pending", raw_input={"path": rest}
        )
        await self.client.session_update(session, start)
        answer = await self.client.request_permission(
            session, schema.ToolCallUpdate(tool_call_id="call-1", title=f"Touch {rest}"), OPTIONS
        )
        outcome = answer.outcome
        chosen = getattr(outcome, "option_id", "cancelled")
        if chosen in ("yes", "always"):
            running = acp.update_tool_call("call-1", status="in_progress")
            await self.client.session_update(session, running)
            (Path(self.cwd[session]) / rest).write_text("touched")
            content = [acp.tool_content(acp.text_block(f"touched {rest}"))]
            status = "completed"
        else:
            content, status = [acp.tool_content(acp.text_block("not touched"))], "failed"
        ended = acp.update_tool_call("call-1", status=status, content=content)
        await self.client.session_update(session, ended)
        await self.say(session, f"Answered: {chosen}.")

    async def do_replace(self, session: str, rest: str) -> None:
        """Ask to write a file, and say that there is none."""
        path, _, text = rest.partition(" ")
        call = schema.ToolCallUpdate(
            tool_call_id="call-w", title="Write", kind="edit",
            raw_input={"file_path": path, "content": text},
            content=[acp.tool_diff_content(path, text)],
        )  # fmt: skip
        answer = await self.client.request_permission(session, call, OPTIONS)
        await self.say(session, f"Answered: {getattr(answer.outcome, 'option_id', 'none')}.")

    async def do_two(self, session: str, rest: str) -> None:
        """Two calls at once."""
        for name in ("a", "b"):
            start = acp.start_tool_call(name, f"Read {name}", kind="read", status="in_progress")
            await self.client.session_update(session, start)
        for name in ("a", "b"):
            content = [acp.tool_content(acp.text_block(f"read {name}"))]
            ended = acp.update_tool_call(name, status="completed", content=content)
            await self.client.session_update(session, ended)
        await self.say(session, "Both read.")

    async def do_choose(self, session: str, rest: str) -> None:
        options = [
            schema.PermissionOption(option_id=name, name=name, kind="allow_once")
            for name in rest.split()
        ]
        call = schema.ToolCallUpdate(tool_call_id="q", title="Which one?")
        answer = await self.client.request_permission(session, call, options)
        await self.say(session, getattr(answer.outcome, "option_id", "none"))

    async def do_read(self, session: str, rest: str) -> None:
        await self.say(session, await self.file(session, rest))

    async def file(self, session: str, path: str) -> str:
        try:
            return (await self.client.read_text_file(session, path)).content
        except acp.RequestError as refused:
            return f"refused: {refused}"

    async def do_write(self, session: str, rest: str) -> None:
        path, _, content = rest.partition(" ")
        try:
            await self.client.write_text_file(session, path, content)
        except acp.RequestError as refused:
            await self.say(session, f"refused: {refused}")
        else:
            await self.say(session, "written")

    async def do_run(self, session: str, rest: str) -> None:
        try:
            made = await self.client.create_terminal(session, rest)
        except acp.RequestError as refused:
            await self.say(session, f"refused: {refused}")
            return
        name = made.terminal_id
        ended = await self.client.wait_for_terminal_exit(session, name)
        shown = await self.client.terminal_output(session, name)
        await self.client.release_terminal(session, name)
        await self.say(session, f"{ended.exit_code}: {shown.output.strip()}")

    async def do_wait(self, session: str, rest: str) -> str:
        self.cancelled.clear()
        await self.say(session, "waiting")
        await self.cancelled.wait()
        return "cancelled"

    async def do_stop(self, session: str, rest: str) -> str:
        return rest.strip()

    async def do_deaf(self, session: str, rest: str) -> None:
        await self.say(session, "deaf")
        await asyncio.Event().wait()

    async def do_die(self, session: str, rest: str) -> None:
        await self.say(session, "goodbye")
        start = acp.start_tool_call("x", "Break", kind="execute", status="in_progress")
        await self.client.session_update(session, start)
        print("something went wrong", file=sys.stderr, flush=True)
        os._exit(3)

    async def do_fail(self, session: str, rest: str) -> None:
        raise acp.RequestError(-32603, "Internal error", {"details": "the model is on fire"})


if __name__ == "__main__":
    asyncio.run(acp.run_agent(Example()))
