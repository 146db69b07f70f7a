"""Starts the ACP dialect for its talks.

Options: `mode`, `keeps` (a store on disk, so that sessions can be loaded), and those of `[acp]`.
Tools: `shell` repeats what it is given and is asked about, `ask_user` asks its human, `plan` makes
a plan. `! note TEXT` puts a warning into the newest session.
"""

from typing import Any

from dragoman.dialects.acp import Desk, Settings
from dragoman.engine.content import PlanEntry, Text
from dragoman.engine.ports import Outcome, ToolSpec
from dragoman.testing.host import EchoTool, host_of, memory_door
from dragoman.testing.play import Setup, Stage

BARRIER = '{"jsonrpc":"2.0","id":"probe","method":"_test/barrier"}'
ANSWER = {
    "jsonrpc": "2.0",
    "error": {"code": -32601, "message": "Method not found: _test/barrier"},
    "id": "probe",
}


class Shell(EchoTool):
    def __init__(self) -> None:
        super().__init__("shell")

    async def run(self, args: dict[str, Any], env: Any) -> Outcome:
        return Outcome((Text(f"ran {args['command']}"),))

    def summary(self, args: dict[str, Any]) -> str:
        return str(args["command"])


class AskUser:
    spec = ToolSpec("ask_user", "Ask.", {"type": "object"}, "think")

    async def run(self, args: dict[str, Any], env: Any) -> Outcome:
        answer = await env.ask(args["question"], args.get("choices", ()))
        return Outcome((Text(answer.text),), is_error=not answer.answered)

    def summary(self, args: dict[str, Any]) -> str:
        return str(args["question"])


class Plan:
    spec = ToolSpec("plan", "Plan.", {"type": "object"}, "think")

    async def run(self, args: dict[str, Any], env: Any) -> Outcome:
        await env.plan([PlanEntry(one) for one in args["entries"]])
        return Outcome((Text("planned"),))

    def summary(self, args: dict[str, Any]) -> str:
        return "plan"


async def start(setup: Setup) -> Stage:
    options = dict(setup.options)
    store = None
    if options.pop("keeps", False):
        from dragoman.store.sqlite import open_store

        store, _ = open_store(str(setup.folder / "sessions.db"))
    mode = options.pop("mode", "full")
    door = memory_door(setup.script, [Shell(), AskUser(), Plan()], store=store, mode=mode)
    desk = Desk(door, Settings(**options))
    folder = setup.folder / "project"
    folder.mkdir(exist_ok=True)

    async def close() -> None:
        await desk.close()
        await host_of(door).stop(1.0)
        if store is not None:
            await store.close()

    async def note(text: str) -> None:
        await door.note(door.live_infos()[-1].id, "warning", "Something is wrong", text)

    names = {"cwd": str(folder.resolve()), "crooked": f"{folder}/../project"}
    return Stage(
        door, desk.hearer, (BARRIER, ANSWER), names=names, directions={"note": note}, close=close
    )
