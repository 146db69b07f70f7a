"""`sessions tail` and `sessions send`: events as they come."""

import sys

from dragoman.client.plain import result_of
from dragoman.engine.faults import NothingRunning

from ... import reach, say
from ...ends import exit_code
from ...parse import Args
from ...questions import QuestionQueue
from ...screen import Screen, who


def tail(args: Args) -> int:
    """The events of a session after a sequence number; with `-f` also those to come."""
    screen = Screen(numbered=True)

    def show(told: reach.Row) -> None:
        if args.json:
            say.plain_json(told, indent=None)
            sys.stdout.flush()
        else:
            screen.show(told)

    if not args.follow:
        with reach.host(args) as host:
            session = reach.session_id(host, args.session)
            for told in reach.history(host, session, args.after):
                show(told)
        return 0
    with reach.daemon(args) as live:
        session = reach.session_id(live, args.session)
        live.call("dragoman/watch", {"session_id": session, "since": args.after})
        for method, params in live.notices(reader=say.reader()):
            if method == "dragoman/event":
                show(params)
                if params["event"]["type"] == "deleted":
                    return 0
    return 0


def send(args: Args) -> int:
    """Send a prompt and show the turn; approvals are asked here when there is a terminal."""
    at_terminal = sys.stdin.isatty()
    rule = args.approve or ("ask" if at_terminal else "nobody")
    with reach.daemon(args) as host:
        session = reach.session_id(host, args.session)
        params = {"session_id": session, "text": " ".join(args.prompt), "key": _key()}
        if args.detach:
            queued = host.call("dragoman/prompt", {**params, "detach": True})
            if args.json:
                say.plain_json({"session": session, **queued})
            else:
                say.err(f"queued; follow it with: dragoman sessions tail {session} -f")
            return 0
        host.call("dragoman/watch", {"session_id": session, "draft": False})
        waited = host.begin("dragoman/prompt", params)
        screen = Screen(quiet=True)
        questions = QuestionQueue(host)
        asks = at_terminal and rule == "ask"
        turn = ""
        try:
            while True:
                if asks and not questions.wait():
                    continue
                message = host.message()
                if "method" not in message:
                    if message.get("id") == waited:
                        return _end(args, screen, result_of(message))
                    continue
                if message["method"] != "dragoman/event":
                    continue
                told = message["params"]
                event = told["event"]
                if event.get("type") == "turn_began" and event.get("key") == params["key"]:
                    turn = event["turn"]
                if not turn or _turn(event) not in ("", turn):
                    continue  # what was queued before us
                _ask(questions, event, asks)
                if args.json:
                    say.plain_json(told, indent=None)
                    sys.stdout.flush()
                elif event["type"] not in _told_otherwise(rule, asks=asks):
                    screen.show(told)
                if event.get("type") == "asked" and rule != "ask":
                    screen.fresh_line()
                    sys.stdout.flush()
                    questions.settle(event["ask"], rule)
        except KeyboardInterrupt:
            try:  # our prompt only: what runs while it is queued is somebody else's
                host.call("dragoman/retract", {"session_id": session, "key": params["key"]})
            except NothingRunning:
                pass  # it ended by itself just now
            screen.fresh_line()
            say.err("cancelled")
            return 130


def _told_otherwise(rule: str, *, asks: bool) -> tuple[str, ...]:
    """Events that the screen leaves out: who is asked here, or what is decided here, tells them."""
    if asks:
        return ("asked", "settled")
    return () if rule == "ask" else ("asked",)


def _ask(questions: QuestionQueue, event: reach.Row, asks: bool) -> None:
    if asks and event["type"] == "asked":
        questions.add(event["ask"])
    elif asks and event["type"] == "settled":
        questions.settled(event["ask_id"], event["verdict"], who(event.get("by"), "the host"))


def _turn(event: reach.Row) -> str:
    found = event["ask"].get("turn", "") if "ask" in event else event.get("turn", "")
    return str(found)


def _end(args: Args, screen: Screen, finished: reach.Row) -> int:
    screen.fresh_line()
    if args.json:
        say.plain_json({"finished": finished}, indent=None)
    return exit_code(finished["outcome"], finished.get("stop", ""))


def _key() -> str:
    import os

    return f"cli-{os.urandom(8).hex()}"
