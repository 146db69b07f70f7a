"""`dragoman approvals [--watch]`: questions that wait for an answer; answered as they come."""

import sys

from dragoman.client.problems import ConnectionGone

from .. import reach, say
from ..questions import Questions
from ..screen import brief, what, who
from ..times import ago

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def run(args: "Any") -> int:
    """List them, or stay."""
    if args.watch:
        return _watch(args)
    with reach.host(args) as host:
        found = host.call("dragoman/approvals", {"pending": not args.all})["approvals"]
    if args.json:
        say.plain_json({"approvals": found})
        return 0
    headers: tuple[str, ...] = ("id", "session", "what", "asked")
    rows = [_row(one) for one in found]
    if args.all:
        headers = (*headers, "answer")
        rows = [(*row, _answer(one)) for row, one in zip(rows, found, strict=True)]
    say.table(headers, rows, empty="nothing waits for an answer")
    return 0


def _row(one: "dict[str, Any]") -> "tuple[object, ...]":
    ask = one["ask"]
    return (ask["id"], ask["session"][:12], brief(what(ask)), ago(ask["at"]))


def _answer(one: "dict[str, Any]") -> str:
    settled = one.get("settled")
    if not settled:
        return "waits"
    comment = f": {settled['comment']}" if settled.get("comment") else ""
    return f"{settled['verdict']} by {who(settled.get('by'), 'the host')}{comment}"


def _watch(args: "Any") -> int:
    with reach.daemon(args) as host:
        host.call("dragoman/watch", {})
        questions = Questions(host)
        typing = sys.stdin.isatty() and not args.json
        for one in host.call("dragoman/approvals", {"pending": True})["approvals"]:
            _came(args, questions, one["ask"], typing)
        if typing and not questions.count:
            say.err(say.style("waiting for approvals; Ctrl-C ends", "dim", stream=sys.stderr))
        while True:
            if typing and not questions.wait():
                continue
            try:
                message = host.message()
            except ConnectionGone as gone:
                say.err(f"dragoman: {gone}")
                return 1
            event = (message.get("params") or {}).get("event", {})
            if event.get("type") == "asked":
                _came(args, questions, event["ask"], typing)
            elif event.get("type") == "settled":
                _went(args, questions, event, typing)


def _came(args: "Any", questions: Questions, ask: "dict[str, Any]", typing: bool) -> None:
    if args.json:
        say.plain_json({"asked": ask}, indent=None)
    elif typing:
        questions.add(ask)
    else:
        say.out(f"{ask['id']}  {what(ask)}")
    sys.stdout.flush()


def _went(args: "Any", questions: Questions, event: "dict[str, Any]", typing: bool) -> None:
    by = who(event.get("by"), "the host")
    if args.json:
        say.plain_json({"settled": event}, indent=None)
    elif typing:
        questions.settled(event["ask_id"], event["verdict"], by)
    else:
        say.out(f"{event['ask_id']}  {event['verdict']} by {by}")
    sys.stdout.flush()
