"""The table of `dragoman/*`."""

from collections.abc import Callable
from typing import Any

from dragoman.wire.verbs import Verb

from ..table import verb
from . import approvals, host, sessions, shapes, watching


def _verb(run: Callable[..., Any], params: Any = None, *, direct: bool = False) -> Verb:
    return verb(run, params, direct=direct, native=True)


VERBS = {
    "dragoman/hello": _verb(watching.hello, shapes.Name),
    "dragoman/status": _verb(host.status),
    "dragoman/pair": _verb(host.pair, shapes.Pair),
    "dragoman/agents": _verb(host.agents),
    "dragoman/models": _verb(host.models, shapes.Models),
    "dragoman/config": _verb(host.config, shapes.Config),
    "dragoman/clients": _verb(watching.clients),
    "dragoman/tap": _verb(watching.tap, shapes.Tap),
    "dragoman/watch": _verb(watching.watch, shapes.Watch, direct=True),
    "dragoman/unwatch": _verb(watching.unwatch, shapes.Unwatch),
    "dragoman/sessions": _verb(sessions.listed, shapes.Sessions),
    "dragoman/board": _verb(sessions.board, shapes.Board),
    "dragoman/commands": _verb(host.commands, shapes.Folder),
    "dragoman/session": _verb(sessions.facts, shapes.OfSession),
    "dragoman/history": _verb(sessions.history, shapes.History),
    "dragoman/open": _verb(sessions.opened, shapes.Open),
    "dragoman/prompt": _verb(sessions.prompt, shapes.Prompt, direct=True),
    "dragoman/steer": _verb(sessions.steer, shapes.Steer),
    "dragoman/cancel": _verb(sessions.cancel, shapes.Cancel),
    "dragoman/retract": _verb(sessions.retract, shapes.Retract),
    "dragoman/fork": _verb(sessions.fork, shapes.Fork),
    "dragoman/rename": _verb(sessions.rename, shapes.Rename),
    "dragoman/archive": _verb(sessions.archive, shapes.Archive),
    "dragoman/close": _verb(sessions.close, shapes.OfSession),
    "dragoman/delete": _verb(sessions.delete, shapes.OfSession),
    "dragoman/compact": _verb(sessions.compact, shapes.OfSession, direct=True),
    "dragoman/clear": _verb(sessions.clear, shapes.OfSession),
    "dragoman/setModel": _verb(sessions.set_model, shapes.SetModel),
    "dragoman/setMode": _verb(sessions.set_mode, shapes.SetMode),
    "dragoman/setReasoning": _verb(sessions.set_reasoning, shapes.SetReasoning),
    "dragoman/approvals": _verb(approvals.approvals, shapes.Approvals),
    "dragoman/approval": _verb(approvals.approval, shapes.OfApproval),
    "dragoman/rules": _verb(approvals.rules),
    "dragoman/removeRule": _verb(approvals.remove_rule, shapes.OfRule),
    "dragoman/answer": _verb(approvals.answer, shapes.Answer),
}
