"""Permissions, questions, and what happens to those that nobody answers in time."""

import asyncio
from typing import Any

import pytest

from dragoman.dialects.acp.permissions import NO_FORMS
from dragoman.engine.content import Text
from dragoman.engine.events import Who
from dragoman.engine.ports import Outcome, ToolSpec
from dragoman.testing.host import EchoTool, memory_door
from dragoman.testing.script import Scripted, call

from .talking import JOIN, Talker, desk_of, dismiss, select, talker


class AskTool:
    """Asks its human."""

    spec = ToolSpec("ask_user", "Ask.", {"type": "object"}, "think")

    async def run(self, args: dict[str, Any], env: Any) -> Outcome:
        answer = await env.ask(args["question"], args.get("choices", ()))
        return Outcome((Text(answer.text),), is_error=not answer.answered)

    def summary(self, args: dict[str, Any]) -> str:
        return str(args["question"])


def results(client: Talker) -> list[tuple[str, str]]:
    return [
        (u["status"], u["rawOutput"])
        for u in client.updates()
        if u["sessionUpdate"] == "tool_call_update" and "rawOutput" in u
    ]


async def test_the_request_is_as_the_document_shows_it() -> None:
    client = talker(memory_door(Scripted([call("echo", text="git status"), "ok"]), [EchoTool()]))
    session = await client.new()
    waiting = client.ask("session/prompt", {"sessionId": session, "prompt": "x"})
    request = await client.until("session/request_permission")
    assert request["id"] == "zc-out-0"
    params = request["params"]
    assert params["sessionId"] == session
    assert [(o["optionId"], o["kind"]) for o in params["options"]] == [
        ("allow-once", "allow_once"),
        ("allow-always", "allow_always"),
        ("allow-always:exact:session", "allow_always"),
        ("allow-always:exact:project", "allow_always"),
        ("reject-once", "reject_once"),
        ("reject-always", "reject_always"),
    ]
    shown = params["toolCall"]
    assert shown["toolCallId"].startswith("approval-")
    assert shown["title"] == "Approve echo?" and shown["kind"] == "execute"
    assert shown["status"] == "pending"
    assert shown["rawInput"] == {"tool": "echo", "summary": "git status"}
    assert shown["content"] == [
        {"type": "content", "content": {"type": "text", "text": "git status"}}
    ]
    assert params["_meta"]["dragoman"]["toolCallId"] == "call_1"
    client.send({"jsonrpc": "2.0", "id": "zc-out-0", "result": select("allow-once")({})})
    assert (await client.reply(waiting))["result"]["stopReason"] == "end_turn"
    assert results(client) == [("completed", "git status")]


YES = {"outcome": {"outcome": "selected", "optionId": "allow-once"}}


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (select("reject-once"), "Denied by user."),
        (dismiss, "Denied: the request for permission was dismissed without a decision."),
        (select("sudo"), "Denied: the request for permission was dismissed without a decision."),
        (lambda p: None, "Denied: the request for permission was dismissed without a decision."),
        (lambda p: {"outcome": 5}, "Denied: the request for permission was dismissed"),
        (lambda p: {**YES, "x": float("inf")}, "Denied: the request for permission was dismissed"),
    ],
)
async def test_everything_but_an_allow_denies(answer: Any, said: str) -> None:
    tool = EchoTool()
    client = talker(memory_door(Scripted([call("echo", text="x"), "ok"]), [tool]))
    client.answers["session/request_permission"] = answer
    assert (await client.prompt(await client.new()))["stopReason"] == "end_turn"
    assert tool.ran == []
    assert results(client)[0][0] == "failed" and results(client)[0][1].startswith(said)


async def test_reject_always_is_not_asked_again() -> None:
    tool = EchoTool()
    script = Scripted([call("echo", text="1"), call("echo", text="2"), "ok"])
    client = talker(memory_door(script, [tool]))
    client.answers["session/request_permission"] = select("reject-always")
    await client.prompt(await client.new())
    asked = [m for m in client.heard if m.get("method") == "session/request_permission"]
    assert len(asked) == 1 and tool.ran == []


@pytest.mark.parametrize(
    "answer",
    [
        {"error": {"code": -32601, "message": "no"}},
        {"error": {"code": -32601, "message": "no"}, "result": None},
        {"error": "no"},
        {"result": YES, "error": {"code": 1, "message": "both"}},
        {"result": YES, "params": {}},
        {"result": [YES]},
    ],
)
async def test_an_error_for_an_answer_denies(answer: dict[str, Any]) -> None:
    client = talker(memory_door(Scripted([call("echo", text="x"), "ok"]), [EchoTool()]))
    session = await client.new()
    waiting = client.ask("session/prompt", {"sessionId": session, "prompt": "x"})
    request = await client.until("session/request_permission")
    client.send({"jsonrpc": "2.0", "id": request["id"], **answer})
    await client.reply(waiting)
    assert results(client)[0][0] == "failed"


async def test_the_same_id_may_be_used_by_both_sides() -> None:
    client = talker(memory_door(Scripted([call("echo", text="x"), "ok"]), [EchoTool()]))
    session = await client.new()
    waiting = client.ask("session/prompt", {"sessionId": session, "prompt": "x"})
    request = await client.until("session/request_permission")
    assert "result" in await client.reply(client.ask("initialize", id=request["id"]))
    client.send({"jsonrpc": "2.0", "id": request["id"], "result": select("allow-once")({})})
    await client.reply(waiting)
    assert results(client) == [("completed", "x")]


async def test_late_and_double_answers_are_ignored() -> None:
    script = Scripted([call("echo", text="x"), "ok", "next"])
    client = talker(memory_door(script, [EchoTool()]))
    session = await client.new()
    waiting = client.ask("session/prompt", {"sessionId": session, "prompt": "x"})
    request = await client.until("session/request_permission")
    client.tell("session/cancel", {"sessionId": session})
    assert (await client.reply(waiting))["result"]["stopReason"] == "cancelled"
    taken_back = [m for m in client.heard if m.get("method") == "$/cancel_request"]
    assert taken_back[0]["params"] == {"requestId": request["id"]}
    for _ in range(2):
        client.send({"jsonrpc": "2.0", "id": request["id"], "result": select("allow-once")({})})
    await client.silence()
    assert (await client.prompt(session))["content"] == "ok"


async def test_nobody_answers_in_time() -> None:
    client = talker(
        memory_door(Scripted([call("echo", text="x"), "ok"]), [EchoTool()]),
        session_timeout_secs=1,
    )
    session = await client.new()
    assert (await client.prompt(session))["stopReason"] == "end_turn"
    assert results(client) == [("failed", "Denied: nobody decided about this call in time.")]
    assert "$/cancel_request" in [m.get("method") for m in client.heard]


async def test_an_answer_elsewhere_withdraws_the_request_here() -> None:
    tool = EchoTool()
    desk = desk_of(memory_door(Scripted([call("echo", text="x"), "ok"]), [tool]))
    one, two = Talker(desk, "one"), Talker(desk, "two")
    session = await one.new()
    await two.call("session/resume", {"sessionId": session, "_meta": JOIN})
    waiting = one.ask("session/prompt", {"sessionId": session, "prompt": "x"})
    mine = await one.until("session/request_permission")
    theirs = await two.until("session/request_permission")
    two.send({"jsonrpc": "2.0", "id": theirs["id"], "result": select("allow-once")({})})
    withdrawn = await one.until("$/cancel_request")
    assert withdrawn["params"] == {"requestId": mine["id"]}
    assert (await one.reply(waiting))["result"]["stopReason"] == "end_turn"
    one.send({"jsonrpc": "2.0", "id": mine["id"], "result": select("reject-once")({})})
    await one.silence()
    assert tool.ran == [{"text": "x"}]
    assert "$/cancel_request" not in [m.get("method") for m in two.heard]


async def test_an_answer_over_another_protocol() -> None:
    door = memory_door(Scripted([call("echo", text="x"), "ok"]), [EchoTool()])
    client = talker(door)
    session = await client.new()
    waiting = client.ask("session/prompt", {"sessionId": session, "prompt": "x"})
    await client.until("session/request_permission")
    ask = (await door.asks())[0].ask
    await door.answer(ask.id, "allow", Who("humanlayer", id="h"))
    await client.until("$/cancel_request")
    await client.reply(waiting)
    assert results(client) == [("completed", "x")]


async def test_zed_is_shown_the_call_itself() -> None:
    client = talker(memory_door(Scripted([call("echo", text="x"), "ok"]), [EchoTool()]))
    await client.greet("Zed")
    client.answers["session/request_permission"] = select("allow-once")
    await client.prompt(await client.new())
    request = [m for m in client.heard if m.get("method") == "session/request_permission"][0]
    assert request["params"]["toolCall"]["toolCallId"] == "call_1"


async def test_an_edit_shows_its_difference() -> None:
    tool = EchoTool("edit", "edit")
    edits = [{"oldText": "a", "newText": "b"}]
    client = talker(memory_door(Scripted([call("edit", path="x.py", edits=edits), "ok"]), [tool]))
    client.answers["session/request_permission"] = select("allow-once")
    await client.prompt(await client.new("/tmp"))
    request = [m for m in client.heard if m.get("method") == "session/request_permission"][0]
    shown = request["params"]["toolCall"]
    assert shown["kind"] == "edit"
    assert shown["content"] == [
        {"type": "diff", "path": "/tmp/x.py", "oldText": "a", "newText": "b"}
    ]
    assert shown["locations"] == [{"path": "/tmp/x.py"}]


# --- questions ---


async def ask(client: Talker, session: str) -> list[tuple[str, str]]:
    await client.prompt(session)
    return results(client)


@pytest.mark.parametrize(
    ("answer", "result"),
    [
        ({"action": "accept", "content": {"answer": "blue"}}, ("completed", "blue")),
        ({"action": "decline"}, ("failed", "the human declined to answer")),
        ({"action": "cancel"}, ("failed", "the human dismissed the question")),
        ({"action": "accept", "content": {}}, ("failed", "the human dismissed the question")),
    ],
)
async def test_a_free_question_is_a_form(answer: Any, result: tuple[str, str]) -> None:
    script = Scripted([call("ask_user", question="Which colour?"), "ok"])
    client = talker(memory_door(script, [AskTool()]))
    await client.greet(elicitation={"form": {}})
    client.answers["elicitation/create"] = lambda params: answer
    assert await ask(client, await client.new()) == [result]
    request = [m for m in client.heard if m.get("method") == "elicitation/create"][0]["params"]
    assert request["mode"] == "form" and request["message"] == "Which colour?"
    assert request["requestedSchema"]["required"] == ["answer"]


async def test_choices_become_options() -> None:
    script = Scripted([call("ask_user", question="Which?", choices=["red", "blue"]), "ok"])
    client = talker(memory_door(script, [AskTool()]))
    client.answers["session/request_permission"] = select("choice-1")
    assert await ask(client, await client.new()) == [("completed", "blue")]


async def test_choices_in_a_form() -> None:
    script = Scripted([call("ask_user", question="Which?", choices=["red", "blue"]), "ok"])
    client = talker(memory_door(script, [AskTool()]))
    await client.greet(elicitation={"form": {}})
    client.answers["elicitation/create"] = lambda params: {
        "action": "accept",
        "content": {"answer": params["requestedSchema"]["properties"]["answer"]["enum"][0]},
    }
    assert await ask(client, await client.new()) == [("completed", "red")]


async def test_a_free_question_that_nobody_can_answer_fails_at_once() -> None:
    script = Scripted([call("ask_user", question="Which colour?"), "ok"])
    client = talker(memory_door(script, [AskTool()]))
    await client.greet(elicitation={})
    assert await ask(client, await client.new()) == [("failed", NO_FORMS)]
    assert "elicitation/create" not in [m.get("method") for m in client.heard]


async def test_a_free_question_waits_for_a_client_of_another_protocol() -> None:
    door = memory_door(Scripted([call("ask_user", question="Which colour?"), "ok"]), [AskTool()])
    door.visitors.arrive(Who("zeroclaw", id="z"))
    client = talker(door)
    session = await client.new()
    waiting = client.ask("session/prompt", {"sessionId": session, "prompt": "x"})
    async with asyncio.timeout(60):
        await client.update("tool_call_update")
        while not (rows := await door.asks()):  # noqa: ASYNC110 - nothing tells of it here
            await asyncio.sleep(0)
    await door.answer(rows[0].ask.id, "answer", Who("zeroclaw", id="z"), text="green")
    await client.reply(waiting)
    assert results(client) == [("completed", "green")]


class Sends(EchoTool):
    """Sends the human to a page, and waits until they were there."""

    def __init__(self) -> None:
        super().__init__()
        self.went = asyncio.Event()
        self.answers: list[str] = []

    async def run(self, args: dict[str, Any], env: Any) -> Any:
        page = "https://shop.example/in"
        answer = await env.inquire(f"Sign in: {page}", ("Opened", "Decline"), url=page)
        self.answers.append(answer.text if answer.answered else "")
        if answer.text == "Opened":
            await self.went.wait()
        return await super().run({"text": "in"}, env)


@pytest.mark.parametrize("second", [False, True])
async def test_an_address_is_opened_by_the_client_and_its_end_is_told(second: bool) -> None:
    tool = Sends()
    door = memory_door(Scripted([call("echo", text="x"), "ok"]), [tool], mode="full")
    client = talker(door)
    can = {"elicitation": {"form": {}, "url": {}}}
    await (client.greet2(**can) if second else client.greet("t", **can))
    session = await (client.new2() if second else client.new())
    prompt = [{"type": "text", "text": "go"}]
    client.ask("session/prompt", {"sessionId": session, "prompt": prompt})
    asked = await client.until("elicitation/create")
    params = asked["params"]
    assert (params["mode"], params["url"]) == ("url", "https://shop.example/in")
    assert params["sessionId"] == session and params["toolCallId"]
    client.send({"jsonrpc": "2.0", "id": asked["id"], "result": {"action": "accept"}})
    await client.reply(client.ask("_test/barrier"))  # an agreement is not yet the end
    assert not any(m.get("method") == "elicitation/complete" for m in client.heard)
    tool.went.set()
    told = await client.until("elicitation/complete")
    assert told["params"] == {"elicitationId": params["elicitationId"]}
    assert tool.answers == ["Opened"]


@pytest.mark.parametrize(
    ("can", "answer", "said"),
    [
        ({"url": {}}, {"action": "decline"}, "Decline"),
        ({"url": {}}, {"action": "cancel"}, ""),
        ({"url": {}}, {"action": "what"}, ""),
        ({"form": {}}, {"outcome": {"outcome": "selected", "optionId": "choice-1"}}, "Decline"),
        ({}, {"outcome": {"outcome": "cancelled"}}, ""),
    ],
)
async def test_an_address_that_is_not_opened(can: Any, answer: Any, said: str) -> None:
    tool = Sends()
    door = memory_door(Scripted([call("echo", text="x"), "ok"]), [tool], mode="full")
    client = talker(door)
    await client.greet("t", elicitation=can)
    method = "elicitation/create" if "url" in can else "session/request_permission"
    client.answers[method] = lambda params: answer
    await client.prompt(await client.new(), "go")
    assert tool.answers == [said]
    asked = next(m for m in client.heard if m.get("method") == method)
    assert "https://shop.example/in" in str(asked["params"])
    assert not any(m.get("method") == "elicitation/complete" for m in client.heard)
