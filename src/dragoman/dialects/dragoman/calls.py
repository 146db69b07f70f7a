"""The table of `dragoman/*`: name, what runs, its params."""

from collections.abc import Callable, Mapping
from datetime import date
from inspect import iscoroutinefunction
from typing import Any, NamedTuple

from dragoman.engine.ports.schedules import NewJob
from dragoman.observe.log import get_log

from . import approvals, host, schedules, sessions, shapes, watching


class Entry(NamedTuple):
    """One method; a `direct` one is given the call instead of the connection.

    One that `changes` the session it names is done before anything that the same connection asks of
    that session next: each looks the session up, and may have to wait for it.
    """

    run: Callable[..., Any]
    params: Any = None
    direct: bool = False
    changes: bool = False


CALLS: dict[str, Entry] = {
    "dragoman/hello": Entry(watching.hello, shapes.Name),
    "dragoman/status": Entry(host.status),
    "dragoman/doctor": Entry(host.doctor),
    "dragoman/apps": Entry(host.apps),
    "dragoman/apps/restart": Entry(host.restart_app, shapes.OneApp),
    "dragoman/pair": Entry(host.pair, shapes.Pair),
    "dragoman/agents": Entry(host.agents),
    "dragoman/models": Entry(host.models, shapes.Models),
    "dragoman/config": Entry(host.config, shapes.Config),
    "dragoman/clients": Entry(watching.clients),
    "dragoman/tap": Entry(watching.tap, shapes.Tap),
    "dragoman/watch": Entry(watching.watch, shapes.Watch, direct=True, changes=True),
    "dragoman/unwatch": Entry(watching.unwatch, shapes.Unwatch),
    "dragoman/sessions": Entry(sessions.listed, shapes.Sessions),
    "dragoman/board": Entry(sessions.board, shapes.Board),
    "dragoman/commands": Entry(host.commands, shapes.Folder),
    "dragoman/session": Entry(sessions.facts, shapes.OfSession),
    "dragoman/history": Entry(sessions.history, shapes.History),
    "dragoman/open": Entry(sessions.opened, shapes.Open, changes=True),
    "dragoman/prompt": Entry(sessions.prompt, shapes.Prompt, direct=True, changes=True),
    "dragoman/steer": Entry(sessions.steer, shapes.Steer, changes=True),
    "dragoman/cancel": Entry(sessions.cancel, shapes.Cancel, changes=True),
    "dragoman/retract": Entry(sessions.retract, shapes.Retract, changes=True),
    "dragoman/fork": Entry(sessions.fork, shapes.Fork),
    "dragoman/rename": Entry(sessions.rename, shapes.Rename, changes=True),
    "dragoman/archive": Entry(sessions.archive, shapes.Archive, changes=True),
    "dragoman/close": Entry(sessions.close, shapes.OfSession, changes=True),
    "dragoman/delete": Entry(sessions.delete, shapes.OfSession, changes=True),
    "dragoman/compact": Entry(sessions.compact, shapes.OfSession, direct=True, changes=True),
    "dragoman/checkpoints": Entry(sessions.checkpoints, shapes.OfSession),
    "dragoman/undo": Entry(sessions.undo, shapes.Undo, changes=True),
    "dragoman/endWorktree": Entry(sessions.end_worktree, shapes.EndWorktree, changes=True),
    "dragoman/redo": Entry(sessions.redo, shapes.OfSession, changes=True),
    "dragoman/clear": Entry(sessions.clear, shapes.OfSession, changes=True),
    "dragoman/setModel": Entry(sessions.set_model, shapes.SetModel, changes=True),
    "dragoman/setMode": Entry(sessions.set_mode, shapes.SetMode, changes=True),
    "dragoman/setReasoning": Entry(sessions.set_reasoning, shapes.SetReasoning, changes=True),
    "dragoman/approvals": Entry(approvals.approvals, shapes.Approvals),
    "dragoman/approval": Entry(approvals.approval, shapes.OfApproval),
    "dragoman/rules": Entry(approvals.rules),
    "dragoman/removeRule": Entry(approvals.remove_rule, shapes.OfRule),
    "dragoman/answer": Entry(approvals.answer, shapes.Answer),
    "dragoman/schedules": Entry(schedules.listed),
    "dragoman/addSchedule": Entry(schedules.add, NewJob),
    "dragoman/removeSchedule": Entry(schedules.remove, shapes.OfSchedule),
    "dragoman/enableSchedule": Entry(schedules.enable, shapes.OfSchedule),
    "dragoman/triggerSchedule": Entry(schedules.trigger, shapes.OfSchedule),
    "dragoman/scheduleRuns": Entry(schedules.runs, shapes.ScheduleRuns),
}

# Names of earlier versions, for at least six months: the date until which they are heard, and what
# they are called now. After it they are unknown.
RETIRED: dict[str, tuple[date, str]] = {}

log = get_log("protocol")


def heard(
    retired: Mapping[str, tuple[date, str]] = RETIRED, today: date | None = None
) -> dict[str, Entry]:
    """Every method by each of its names; a call by an older one is told in the log."""
    old = {
        name: CALLS[new]._replace(run=_telling(name, new, until))
        for name, (until, new) in retired.items()
        if (today or date.today()) < until
    }
    return CALLS | old


def _telling(name: str, new: str, until: date) -> Callable[..., Any]:
    run = CALLS[new].run
    told = False

    def tell() -> None:
        nonlocal told
        if not told:  # whoever calls it calls it often
            told = True
            log.warning("a client uses an older name", method=name, now=new, until=str(until))

    def at_once(*given: Any) -> object:
        tell()
        return run(*given)

    async def later(*given: Any) -> object:
        tell()
        return await run(*given)

    return later if iscoroutinefunction(run) else at_once
