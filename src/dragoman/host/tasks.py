"""The tool `task`: a child session with a context of its own, as visible as any other session."""

import asyncio
from collections.abc import Sequence
from typing import Any

import msgspec

from dragoman.engine import events as ev
from dragoman.engine.content import Text
from dragoman.engine.door import narrower
from dragoman.engine.events import Who
from dragoman.engine.faults import BadInput, TooMany
from dragoman.engine.host import Host, OpenSpec
from dragoman.engine.info import SessionInfo
from dragoman.engine.ports import AgentProfile, Outcome, Toolbox, ToolEnv, ToolSpec
from dragoman.engine.traits import Given, StartedBy
from dragoman.holding import Holder
from dragoman.tools.args import brief, decode, schema, text

_MOST = 8  # children of one session at once
_STEPS = 60


class TaskArgs(msgspec.Struct):
    prompt: str
    role: str = "explore"
    title: str = ""


class Tasks(Holder):
    """Gives the tool to sessions that may have children."""

    _host: Host
    _running: dict[str, int] = {}

    async def part(self, profile: AgentProfile, info: SessionInfo) -> Toolbox | None:
        """A toolbox with `task`; children have none, so that nothing grows without end."""
        if (
            profile.tools is not None
            and "task" not in profile.tools
            or StartedBy.of(info.extra).session
        ):
            return None
        from dragoman.agents.roles import find_roles
        from dragoman.tools.registry import Box

        roles = await asyncio.to_thread(find_roles, info.cwd)
        known = "; ".join(f"{role.name}: {role.description}" for role in roles.values())
        return Box([Task(self, known)])

    async def run(self, asked: TaskArgs, env: ToolEnv) -> tuple[str, str, bool]:
        """Run a child to its end: its id, what it said, and whether it failed."""
        from dragoman.agents.roles import find_roles

        roles = await asyncio.to_thread(find_roles, env.cwd)
        role = roles.get(asked.role)
        if role is None:
            raise BadInput(f"There is no role {asked.role!r}.", f"Use one of: {', '.join(roles)}.")
        if self._running.get(env.session, 0) >= _MOST:
            raise TooMany(f"{_MOST} tasks run in this session already.", "Wait for one to end.")
        parent = self._host.live[env.session]
        # As it is now: somebody may have changed it since the call began.
        mode = narrower(env.mode if role.acts else "readonly", parent.state.mode)
        own = parent.gear.profile()
        given = Given(
            append_system_prompt=(*own.append_system_prompt, role.prompt),
            tools=_narrowed(role.tools, own.tools),
            max_steps=min(_STEPS, own.max_steps or _STEPS),
            approval_timeout=own.approval_timeout,
            memory=own.memory,
            context_files=own.context_files,
            asks=False,
            roots=tuple(env.roots),
        )
        spec = OpenSpec(
            agent=env.agent,
            cwd=env.cwd,
            model=role.model or parent.state.model,
            mode=mode,
            title=asked.title or f"{role.name}: {brief(asked.prompt, 60)}",
            parent=env.session,
            traits=(given, StartedBy(env.session, env.turn)),
        )
        by = Who("task", name=role.name, id=env.call_id)
        self._running[env.session] = self._running.get(env.session, 0) + 1
        try:
            return await self._taken(spec, by, asked.prompt, env)
        finally:
            left = self._running[env.session] - 1
            self._running[env.session] = left
            if not left:
                del self._running[env.session]

    async def _taken(
        self, spec: OpenSpec, by: Who, prompt: str, env: ToolEnv
    ) -> tuple[str, str, bool]:
        child = await self._host.open(spec, by)
        env.progress(f"[session {child.id}]\n")
        await env.delegated(child.id, spec.title, by.name)
        parent = self._host.live[env.session]  # whose mode somebody may have changed meanwhile
        while (allowed := narrower(child.state.mode, parent.state.mode)) != child.state.mode:
            await child.ledger.put(ev.ModeSet(allowed, by))
        work = await self._host.prompt(
            child.id, (Text(prompt),), by, key="", metadata=None, when_busy="queue", limit=4,
            wait=None,
        )  # fmt: skip
        try:
            finished = await asyncio.shield(work.done)
        except asyncio.CancelledError:  # the parent stops, and so does what it started
            child.inbox.cancel("parent")
            await asyncio.wait({work.done}, timeout=5.0)
            raise
        said = finished.text or finished.error or "It said nothing."
        failed = finished.outcome != "completed" or finished.stop == "refusal"
        if finished.stop == "length":
            said = f"{said}\n[cut here: it may write no more at once]"
        if finished.stop == "refusal":
            said = f"It refused to answer.\n{finished.text}"
        if finished.outcome != "completed":
            how = finished.outcome if finished.outcome == "failed" else f"was {finished.outcome}"
            said = f"It {how}: {finished.error or finished.cause}\n{finished.text}"
        return child.id, said.strip(), failed


def _narrowed(role: Sequence[str] | None, parent: Sequence[str] | None) -> tuple[str, ...] | None:
    """The tools of a role, as far as the parent has them itself: no file gives more than that."""
    wanted = parent if role is None else role
    if wanted is None:
        return None
    return tuple(one for one in wanted if one != "task" and (parent is None or one in parent))


class Task:
    """Starts a child session and waits for its answer."""

    def __init__(self, tasks: Tasks, known: str) -> None:
        self._tasks = tasks
        self.spec = ToolSpec(
            "task",
            "Give a piece of work to a child agent with a context of its own; its last answer is "
            "the result. It knows nothing of this conversation: tell it all it needs. Several in "
            f"one step run side by side. Roles: {known}",
            schema(
                "prompt",
                prompt=text("What it is to do, and what it is to report."),
                role=text("Its role; explore when left out."),
                title=text("A few words that tell it from others."),
            ),
            "think",
        )

    def summary(self, args: dict[str, Any]) -> str:
        return f"Task ({brief(args.get('role') or 'explore')}): {brief(args.get('prompt', '?'))}"

    def touches(self, args: dict[str, Any], env: ToolEnv) -> list[str]:
        return []  # what the child changes is kept when it does, with this turn

    async def run(self, args: dict[str, Any], env: ToolEnv) -> Outcome:
        asked = decode(TaskArgs, args, {"subagent_type": "role", "agent": "role", "task": "prompt"})
        if not asked.prompt.strip():
            raise BadInput("prompt is required")
        child, said, failed = await self._tasks.run(asked, env)
        return Outcome((Text(f"{said}\n\n[session {child}]"),), is_error=failed)
