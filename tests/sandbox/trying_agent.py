"""An ACP agent that tries to get out of the sandbox and says what it could do."""

import asyncio
import json
import os
import sys
from typing import Any

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))

import acp
import trials


class Trying(acp.Agent):
    def on_connect(self, conn: Any) -> None:
        self.client = conn

    async def initialize(self, protocol_version: int, **kwargs: Any) -> Any:
        return acp.InitializeResponse(protocol_version=protocol_version)

    async def new_session(self, cwd: str, **kwargs: Any) -> Any:
        return acp.NewSessionResponse(session_id="one")

    async def prompt(self, session_id: str, prompt: list[Any], **kwargs: Any) -> Any:
        said = json.dumps(trials.all_of(json.loads(prompt[0].text)))
        await self.client.session_update(session_id, acp.update_agent_message_text(said))
        return acp.PromptResponse(stop_reason="end_turn")


if __name__ == "__main__":
    asyncio.run(acp.run_agent(Trying()))
