"""A host in memory with the real tools and the real policy, and somebody who answers."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.engine.tape import ME, Tape

from dragoman.engine import events as ev
from dragoman.engine.content import Text
from dragoman.engine.door import Door
from dragoman.engine.events import Ask, Settled
from dragoman.engine.host import OpenSpec
from dragoman.engine.ports import AgentProfile, Store
from dragoman.policy.autonomy import AutonomyPolicy, Rules
from dragoman.testing.host import MODEL, EchoTool, FixedAgents, host_of, memory_door
from dragoman.testing.script import Scripted, call
from dragoman.tools.bash import Bash
from dragoman.tools.edit import Edit
from dragoman.tools.write import Write


class Asking:
    """One door, one session, one watcher."""

    def __init__(self, folder: Path, *, store: Store | None = None, **rules: Any) -> None:
        self.folder = folder
        self.script = Scripted([])
        self.policy = AutonomyPolicy(Rules(forbidden_paths=(), **rules))

        def bounds(env: Any) -> Any:
            return self.policy.boundary(env.mode, env.cwd, env.roots)

        self.echo = EchoTool()
        tools = [Bash(bounds), Write(bounds), Edit(bounds), self.echo]
        base = AgentProfile("default", model=MODEL.ref, context_files=False, auto_compact=0.0)
        other = AgentProfile("other", model=MODEL.ref, context_files=False, auto_compact=0.0)
        self.door: Door = memory_door(self.script, tools, store=store, profiles=[base, other])
        agents: Any = host_of(self.door).agents
        assert isinstance(agents, FixedAgents)
        agents.judge = self.policy
        self.tape = Tape()
        self.session = ""

    async def open(self, *, agent: str = "default", cwd: str = "", mode: Any = None) -> "Asking":
        spec = OpenSpec(agent=agent, cwd=cwd or str(self.folder), mode=mode)
        self.session = (await self.door.open(spec, ME)).id
        self.tape = Tape()
        await self.door.watch(self.session, ME, self.tape, lambda said: None, exact=True)
        return self

    async def go(self, *calls: tuple[str, dict[str, Any]]) -> Any:
        """Begin a turn in which the model makes these calls, one after the other."""
        host_of(self.door).models.provider = Scripted(  # type: ignore[attr-defined]
            [*(call(name, **args) for name, args in calls), "done"]
        )
        self.tape.events.clear()
        return await self.door.prompt(self.session, (Text("go"),), ME)

    async def asked(self, number: int = 1) -> Ask:
        """The question of this number in the running turn."""
        seen: list[str] = []

        def nth(event: Any) -> bool:
            if event.body.ask.id not in seen:
                seen.append(event.body.ask.id)
            return len(seen) >= number and seen[number - 1] == event.body.ask.id

        event = await self.tape.until(ev.Asked, nth)
        ask: Ask = event.body.ask  # type: ignore[union-attr]
        return ask

    async def answer(self, ask: Ask, verdict: Any = "allow", **more: Any) -> Settled:
        return await self.door.answer(ask.id, verdict, ME, **more)

    def asks(self) -> list[Ask]:
        return [body.ask for body in self.tape.of(ev.Asked)]

    def ended(self) -> list[ev.CallEnded]:
        return self.tape.of(ev.CallEnded)

    def started(self) -> list[ev.CallStarted]:
        return self.tape.of(ev.CallStarted)

    def said(self, number: int = 0) -> str:
        return "".join(block.text for block in self.ended()[number].content)  # type: ignore[union-attr]

    async def always(
        self, calls: Sequence[tuple[str, dict[str, Any]]], scope: str = "", lasts: str = ""
    ) -> Settled:
        """Have the first question of a turn answered for always, and all others denied."""
        work = await self.go(*calls)
        first = await self.asked()
        settled = await self.answer(first, "allow_always", scope=scope, lasts=lasts)
        await work.done
        return settled

    async def passes(self, name: str, **args: Any) -> bool:
        """Whether a call runs without a question; a question is denied."""
        import asyncio

        work = await self.go((name, args))
        waiting = asyncio.ensure_future(self.tape.until(ev.Asked))
        await asyncio.wait({waiting, work.done}, return_when=asyncio.FIRST_COMPLETED)
        if not work.done.done():
            await self.answer(await self.asked(), "deny")
        waiting.cancel()
        await work.done
        return not self.asks() and self.ended()[0].outcome != "denied"
