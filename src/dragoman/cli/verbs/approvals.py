"""`dragoman approvals`: questions that wait for an answer, and answers that are remembered."""

import sys

from dragoman.client.problems import ConnectionGone, beginning
from dragoman.engine.faults import BadInput

from .. import reach, say
from ..parse import Args
from ..questions import QuestionQueue
from ..screen import what, who
from ..times import ago

LASTS = ("session", "project", "agent")


def run(args: Args) -> int:
    """List them, show one, or stay; or list and withdraw what is remembered."""
    if args.sub == "show":
        return _show(args)
    if args.sub == "rules":
        return _remove(args) if args.action == "remove" else _rules(args)
    if args.watch:
        return _watch(args)
    found = reach.call(args, "approvals", pending=not args.all)["approvals"]
    if say.as_json(args, {"approvals": found}):
        return 0
    if not found:
        say.out(say.style("nothing waits for an answer", "dim"))
    for one in found:
        ask = one["ask"]
        answer = f"  {_answer(one)}" if args.all else ""
        say.row(f"{ask['id']}  ", f"{say.clean(ask['session'][:12])}  {ago(ask['at'])}{answer}")
        say.out(f"  {what(ask)}")  # what is to be judged is not cut to the window
    return 0


def _show(args: Args) -> int:
    """One question, whole."""
    from dragoman.engine.visible import visible

    with reach.host(args) as host:
        ask = reach.ask_id(host, args.id)
        found = host.call("dragoman/approval", {"id": ask})
    if say.as_json(args, found):
        return 0
    row, ask = found["approval"], found["approval"]["ask"]
    risk = f" ({ask['risk']} risk)" if ask.get("risk") else ""
    say.out(say.style(found["title"] + risk, "bold"))
    if found["text"]:
        say.out(found["text"])
    for scope in ask.get("scopes", ()):
        lasts = ", ".join(scope.get("lasts", LASTS))
        say.out(f"always --scope {scope['id']}: {visible(scope['words'])} (--for {lasts})")
    if row.get("settled"):
        say.out(f"answer: {_answer(row)}")
    elif ask["kind"] == "tool":
        say.out(f"dragoman approve {ask['id']} --digest {ask.get('digest', '')}")
    return 0


def _rules(args: Args) -> int:
    found = reach.call(args, "rules")["rules"]
    if say.as_json(args, {"rules": found}):
        return 0
    if not found:
        say.out(say.style("nothing is remembered", "dim"))
    for rule in found:
        by = f"by {who(rule.get('by'), 'the host')}, {ago(rule.get('at', 0))}"
        say.row(f"{rule['id']}  ", f"{_place(rule)}  {by}")
        verb = "deny" if rule.get("deny") else "allow"
        say.out(f"  {verb} {on_one_line(rule['words'])}")
    return 0


def _place(rule: reach.Row) -> str:
    """Where and for how long a rule counts."""
    where = {
        "session": f"session {rule.get('session', '')[:12]}",
        "project": f"project {rule.get('project', '')}",
        "agent": "everywhere",
    }[rule["lasts"]]
    return say.clean(f"{where} (agent {rule['agent']})")


def on_one_line(text: str) -> str:
    from dragoman.engine.visible import on_a_line

    return on_a_line(text)


def _remove(args: Args) -> int:
    if not args.id:
        raise BadInput("Which rule?", "List them: dragoman approvals rules.")
    with reach.host(args) as host:
        rules = [rule["id"] for rule in host.call("dragoman/rules", {})["rules"]]
        found = beginning(rules, args.id)
        if len(found) > 1 and args.id not in found:
            raise BadInput(f"{len(found)} rules begin with {args.id}.", "Write more of it.")
        chosen = args.id if args.id in found or not found else found[0]
        rule = host.call("dragoman/removeRule", {"id": chosen})["rule"]
    text = f"withdrawn: {on_one_line(rule['words'])} ({rule['id']})"
    return say.result(args, {"removed": rule}, text)


def _answer(one: reach.Row) -> str:
    settled = one.get("settled")
    if not settled:
        return "waits"
    comment = f": {settled['comment']}" if settled.get("comment") else ""
    kept = f"; remembered: {settled['scope']}" if settled.get("scope") else ""
    by = who(settled.get("by"), "the host")
    return on_one_line(f"{settled['verdict']} by {by}{comment}{kept}")


def _watch(args: Args) -> int:
    with reach.daemon(args) as host:
        host.call("dragoman/watch", {})
        questions = QuestionQueue(host)
        typing = sys.stdin.isatty() and not args.json
        listed = [
            one["ask"] for one in host.call("dragoman/approvals", {"pending": True})["approvals"]
        ]
        for ask in listed:
            _came(args, questions, ask, typing)
        told = {ask["id"] for ask in listed}  # what came between the two calls is told by both
        if typing and not questions.count:
            say.err(say.style("waiting for approvals; Ctrl-C ends", "dim", stream=sys.stderr))
        reader = say.reader()
        while True:
            if typing and not questions.wait(reader):
                continue
            try:
                message = host.message(reader=reader)
            except ConnectionGone as gone:
                say.err(f"dragoman: {gone}")
                return 1
            event = (message.get("params") or {}).get("event", {})
            if event.get("type") == "asked" and event["ask"]["id"] not in told:
                _came(args, questions, event["ask"], typing)
            elif event.get("type") == "settled":
                _went(args, questions, event, typing)


def _came(args: Args, questions: QuestionQueue, ask: reach.Row, typing: bool) -> None:
    if args.json:
        say.plain_json({"asked": ask}, indent=None)
    elif typing:
        questions.add(ask)
    else:
        say.out(f"{ask['id']}  {what(ask)}")
    sys.stdout.flush()


def _went(args: Args, questions: QuestionQueue, event: reach.Row, typing: bool) -> None:
    by = who(event.get("by"), "the host")
    if args.json:
        say.plain_json({"settled": event}, indent=None)
    elif typing:
        questions.settled(event["ask_id"], event["verdict"], by)
    else:
        say.out(f"{event['ask_id']}  {event['verdict']} by {by}")
    sys.stdout.flush()
