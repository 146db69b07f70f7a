"""The official Python SDK's client holds whole conversations with `dragoman acp`."""

import asyncio
from pathlib import Path
from typing import Any

import pytest

from .acp_agent import Scene, needs_node

pytestmark = [pytest.mark.interop, needs_node]


class Editor:
    """A client (`acp.Client`) that answers permissions as it is told."""

    def __init__(self) -> None:
        self.updates: list[Any] = []
        self.option = "allow-once"
        self.asked: list[Any] = []
        self.news = asyncio.Event()

    async def request_permission(
        self, session_id: str, tool_call: Any, options: Any, **more: Any
    ) -> Any:
        from acp import schema

        self.asked.append((tool_call, options))
        chosen = schema.AllowedOutcome(outcome="selected", option_id=self.option)
        return schema.RequestPermissionResponse(outcome=chosen)

    async def session_update(self, session_id: str, update: Any, **more: Any) -> None:
        self.updates.append(update)
        self.news.set()

    def of(self, kind: str) -> list[Any]:
        return [one for one in self.updates if one.session_update == kind]

    def text(self, kind: str = "agent_message_chunk") -> str:
        return "".join(one.content.text for one in self.of(kind))

    async def see(self, kind: str) -> None:
        async with asyncio.timeout(60):
            while not self.of(kind):
                self.news.clear()
                await self.news.wait()


def spawn(scene: Scene, editor: Editor) -> Any:
    import acp  # takes a second to load

    return acp.spawn_agent_process(
        editor,
        *scene.command,
        env=scene.env,
        cwd=scene.work,
        use_unstable_protocol=True,
        transport_kwargs={"limit": 64 << 20},
    )


async def test_a_whole_day_with_the_python_client(tmp_path: Path) -> None:
    import acp
    from acp import schema

    scene, editor = Scene(tmp_path), Editor()
    async with spawn(scene, editor) as (agent, _):
        said = await agent.initialize(
            protocol_version=1,
            client_info=schema.Implementation(name="python-sdk", version="1"),
        )
        assert said.protocol_version == 1 and said.agent_capabilities.load_session
        session = (await agent.new_session(cwd=str(scene.work), mcp_servers=[])).session_id

        async def prompt(text: str) -> Any:
            editor.updates.clear()
            return await agent.prompt(session_id=session, prompt=[acp.text_block(text)])

        assert (await prompt("count slowly to 20")).stop_reason == "end_turn"
        assert len(editor.of("agent_message_chunk")) >= 2 and "20" in editor.text()

        await prompt("run echo allowed")
        assert editor.asked[-1][0].title == "Approve bash?"
        done = editor.of("tool_call_update")[-1]
        assert done.status == "completed" and "allowed" in str(done.raw_output)

        editor.option = "reject-once"
        assert (await prompt("run echo refused")).stop_reason == "end_turn"
        assert editor.of("tool_call_update")[-1].status == "failed"

        editor.updates.clear()
        long = asyncio.create_task(
            agent.prompt(session_id=session, prompt=[acp.text_block("count slowly to 5000")])
        )
        await editor.see("agent_message_chunk")
        await agent.cancel(session_id=session)
        assert (await asyncio.wait_for(long, 60)).stop_reason == "cancelled"

        await agent.set_session_mode(session_id=session, mode_id="readonly")
        await editor.see("current_mode_update")
        changed = await agent.set_config_option(
            session_id=session, config_id="mode", value="supervised"
        )
        assert changed.config_options[0].current_value == "supervised"
        listed = await agent.list_sessions()
        assert [one.session_id for one in listed.sessions] == [session]
        assert listed.sessions[0].title == "count slowly to 20"

    later = Editor()
    async with spawn(scene, later) as (agent, _):
        await agent.initialize(protocol_version=1)
        await agent.load_session(cwd=str(scene.work), mcp_servers=[], session_id=session)
        assert later.text("user_message_chunk").startswith("count slowly to 20run echo allowed")
        assert len(later.of("tool_call")) == 2
        answer = await agent.prompt(session_id=session, prompt=[acp.text_block("say still here")])
        assert answer.stop_reason == "end_turn" and "still here" in later.text()
        await agent.close_session(session_id=session)
        await agent.resume_session(cwd=str(scene.work), session_id=session, mcp_servers=[])
    scene.judge()
    assert scene.exits() == [0, 0]
