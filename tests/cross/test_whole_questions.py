"""One question, every surface: whole, visible, against the file as it is now, and kept to."""

import asyncio
import json
import os
import sys
from typing import Any

import pytest
from tests.cross.house import House, Speaker

HIDDEN = "\x1b\r\x08\u202e\u200b\u00a0\U000e0041"
BIG = "".join(f"line {n} of what is lost\n" for n in range(120_000))
LONG = "echo " + "x" * 39_980 + " END"
CASES = {
    "long": ("", LONG, ""),
    "overwrite": ('write "new words" to kept.txt', "precious", "kept.txt"),
    "large": ('write "short" to big.txt', "line 119999 of what is lost", "big.txt"),
    "escape": ('write "x" to a\x1b[2Jb.txt', "a<ESC>[2Jb.txt", ""),
    "override": ("run echo \u202etxt.exe a\u200bb", "<U+202E>txt.exe a<U+200B>b", ""),
}


async def command(house: House, *words: str, typed: str = "") -> tuple[int, str]:
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "dragoman", *words, "--config-dir", str(house.config),
        stdin=asyncio.subprocess.PIPE, stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT, env={**os.environ, "NO_COLOR": "1"},
    )  # fmt: skip
    async with asyncio.timeout(60):
        out, _ = await process.communicate(typed.encode())
    assert process.returncode is not None
    return process.returncode, out.decode()


def texts_of(value: Any) -> str:
    """Every text that a client would show of a message."""
    if isinstance(value, dict):
        return "\n".join(texts_of(one) for one in value.values())
    if isinstance(value, list):
        return "\n".join(texts_of(one) for one in value)
    return value if isinstance(value, str) else ""


def permission(message: dict[str, Any]) -> bool:
    return message.get("method") == "session/request_permission"


def request(message: dict[str, Any]) -> bool:
    told = message.get("params") or {}
    return message.get("type") == "approval_request" or told.get("type") == "approval_request"


def clean(text: str) -> bool:
    return not set(HIDDEN) & set(text)


async def asked(house: House, prompt: str) -> tuple[Speaker, Speaker, Speaker, str]:
    acp = await house.acp()
    made = await acp.call("session/new", {"cwd": str(house.work), "mcpServers": []})
    session = str(made["sessionId"])
    zeroclaw = await house.zeroclaw()
    await zeroclaw.call("session/new", {"agentAlias": "default", "sessionId": session})
    zot = await house.zot(session)
    acp.begin(
        "session/prompt", {"sessionId": session, "prompt": [{"type": "text", "text": prompt}]}
    )
    return acp, zeroclaw, zot, session


@pytest.mark.parametrize("case", CASES)
async def test_a_question_is_whole_and_visible_everywhere(house: House, case: str) -> None:
    prompt, expected, file = CASES[case]
    (house.work / "kept.txt").write_text("precious\n")
    (house.work / "big.txt").write_text(BIG)
    acp, zeroclaw, zot, session = await asked(house, prompt or "hello")
    if not prompt:  # the demo model makes no calls of that length: an agent elsewhere does
        caller = await house.speaker("humanlayer")
        given = {"run_id": session, "tool_name": "bash", "tool_input": {"command": LONG}}
        await caller.call("createApproval", {**given, "tool_use_id": "t1"})

    params = (await acp.until(permission))["params"]
    content = params["toolCall"]["content"]
    assert expected in texts_of(content)
    if file:
        (diff,) = [one for one in content if one["type"] == "diff"]
        assert diff["oldText"] == (house.work / file).read_text()
        assert diff["path"] == str(house.work / file)
    else:
        assert any(expected in texts_of(one) for one in content if one["type"] == "content")
    assert clean(params["toolCall"]["title"]) and clean(texts_of(params["options"]))
    names = [one["name"] for one in params["options"] if one["kind"] == "allow_always"]
    assert len(names) == len(set(names)) >= 3 and all("in this" in name for name in names)

    told = (await zeroclaw.until(request))["params"]
    assert expected in told["argumentsSummary"] and clean(told["argumentsSummary"])
    assert told["digest"] == params["_meta"]["dragoman"]["digest"]

    frame = await zot.until(request)
    assert expected in frame["question"] and clean(frame["question"] + frame["summary"])

    decider = await house.speaker("humanlayer")
    (row,) = (await decider.call("fetchApprovals", {"session_id": session}))["approvals"]
    assert expected in row["question"] and clean(row["question"])

    native = await house.zeroclaw()
    whole = await native.call("dragoman/approval", {"id": row["id"]})
    assert expected in whole["text"] and clean(whole["text"] + whole["title"])
    assert whole["approval"]["ask"]["args"] == row["tool_input"]

    code, said = await command(house, "approvals", "show", row["id"])
    assert code == 0 and expected in said and clean(said)
    code, said = await command(house, "approvals")
    assert code == 0 and clean(said)
    if case in ("long", "large"):
        assert "more characters" in said and expected not in said
        code, said = await command(house, "approve", row["id"])
        assert code == 1 and "were left out" in said
        code, said = await command(house, "approve", row["id"], "--digest", "0" * 32)
        assert code == 1 and "Look at the question again" in said
    else:
        assert expected in said

    # An answer about something else is refused in every dialect that can name it.
    wrong = {"session_id": session, "request_id": row["id"], "decision": "allow_once"}
    id = zeroclaw.begin("session/approve", {
        "sessionId": session, "requestId": row["id"], "decision": "allow_once", "digest": "0" * 32,
    })  # fmt: skip
    refused = await zeroclaw.until(lambda m: m.get("id") == id)
    assert row["digest"] in json.dumps(refused["error"]), wrong
    wrong = {"approval_id": row["id"], "decision": "approve", "digest": "0" * 32}
    assert not (await decider.call("sendDecision", wrong))["success"]

    code, said = await command(house, "approve", row["id"], "--digest", row["digest"])
    assert code == 0, said
    await acp.until(lambda m: m.get("result", {}).get("stopReason") == "end_turn")
    code, said = await command(house, "approvals", "--all")
    assert code == 0 and "allow by dragoman approve (zeroclaw)" in said
    if file:
        assert (house.work / file).read_text() in ("new words", "new words\n", "short", "short\n")


async def test_a_file_that_changed_meanwhile_is_asked_about_again(house: House) -> None:
    file = house.work / "kept.txt"
    file.write_text("precious\n")
    acp, _, _, _ = await asked(house, 'write "new words" to kept.txt')
    first = await acp.until(permission)
    file.write_text("more precious\n")
    outcome = {"outcome": "selected", "optionId": "allow-once"}
    acp.send({"jsonrpc": "2.0", "id": first["id"], "result": {"outcome": outcome}})
    second = await acp.until(lambda m: permission(m) and m["id"] != first["id"])
    (diff,) = [one for one in second["params"]["toolCall"]["content"] if one["type"] == "diff"]
    assert diff["oldText"] == "more precious\n" and file.read_text() == "more precious\n"
    outcome = {"outcome": "selected", "optionId": "reject-once"}
    acp.send({"jsonrpc": "2.0", "id": second["id"], "result": {"outcome": outcome}})
    await acp.until(lambda m: m.get("result", {}).get("stopReason") == "end_turn")
    assert file.read_text() == "more precious\n"


async def choose(speaker: Speaker, option: str, since: int) -> dict[str, Any]:
    message = await speaker.until(permission, since)
    result = {"outcome": {"outcome": "selected", "optionId": option}}
    speaker.send({"jsonrpc": "2.0", "id": message["id"], "result": result})
    return message


async def test_rules_made_in_an_editor_are_listed_used_and_withdrawn(house: House) -> None:
    acp, _, _, session = await asked(house, "run touch x1")
    asked_for = await choose(acp, "allow-always", 0)
    names = {one["optionId"]: one["name"] for one in asked_for["params"]["options"]}
    assert names["allow-always"] == "Always allow this exact command: touch x1 (in this session)"
    assert "begin with: touch (in this project)" in names["allow-always:prefix:project"]
    end = {"stopReason": "end_turn"}
    await acp.until(lambda m: m.get("result", {}).get("stopReason") == "end_turn")

    async def turn(prompt: str) -> bool:
        """Whether a prompt runs without a question; a question is rejected."""
        since = len(acp.seen)
        text = [{"type": "text", "text": prompt}]
        id = acp.begin("session/prompt", {"sessionId": session, "prompt": text})
        found = await acp.until(lambda m: permission(m) or m.get("id") == id, since)
        if not permission(found):
            return bool(found["result"]["stopReason"] == end["stopReason"])
        await choose(acp, "reject-once", since)
        await acp.answer(id)
        return False

    assert await turn("run touch x1")
    assert not await turn("run rm -rf x1") and (house.work / "x1").exists()
    code, said = await command(house, "approvals", "rules", "--json")
    (rule,) = json.loads(said)["rules"]
    assert rule["kind"] == "exact" and rule["by"]["dialect"] == "acp"
    code, said = await command(house, "approvals", "rules")
    assert "allow this exact command: touch x1" in said and "(acp), " in said
    code, said = await command(house, "sessions", "tail", session)
    assert f"allowed by {rule['id']}: this exact command: touch x1 in this session" in said

    await house.kill()
    await house.start()  # the rule survives, and withdrawing it counts at once
    acp = await house.acp()
    await acp.call("session/load", {"sessionId": session, "cwd": str(house.work), "mcpServers": []})
    assert await turn("run touch x1")
    code, said = await command(house, "approvals", "rules", "remove", rule["id"][:12])
    assert code == 0 and said.startswith("withdrawn: this exact command: touch x1")
    assert not await turn("run touch x1")
    code, said = await command(house, "approvals", "rules", "remove", rule["id"])
    assert code == 1 and "rule not found" in said


async def test_other_dialects_say_what_a_plain_always_means(house: House) -> None:
    acp, zeroclaw, zot, session = await asked(house, "run touch z1")
    told = (await zeroclaw.until(request))["params"]
    assert [one["id"] for one in told["scopes"]] == ["exact", "prefix", "tool"]
    answer = await zeroclaw.call("session/approve", {
        "sessionId": session, "requestId": told["requestId"], "decision": "allow_always",
    })  # fmt: skip
    assert answer["remembered"] == "this exact command: touch z1 in this session"
    await acp.until(lambda m: m.get("result", {}).get("stopReason") == "end_turn")

    since = len(zot.seen)
    await zot.command("prompt", message="run touch z2")
    frame = await zot.until(request, since)
    said = await zot.command(
        "approve", approval=frame["approval"], decision="always", scope="prefix", lasts="project"
    )
    assert said["remembered"] == "commands that begin with: touch in this project"
    await zot.until(lambda m: m.get("type") == "done", since)

    decider = await house.speaker("humanlayer")
    await zot.command("prompt", message='write "x" to z3.txt')
    rows: list[dict[str, Any]] = []
    while not rows:
        found = await decider.call("fetchApprovals", {"session_id": session})
        rows = found["approvals"] or []
    said = await decider.call(
        "sendDecision", {"approval_id": rows[0]["id"], "decision": "approve", "always": True}
    )
    assert said["success"] and said["remembered"].startswith("writing this file: ")
    row = (await decider.call("getApproval", {"approval_id": rows[0]["id"]}))["approval"]
    assert row["responded_by"].endswith("over humanlayer") and row["remembered"]


async def test_an_approval_from_outside_shows_its_command(house: House) -> None:
    acp = await house.acp()
    made = await acp.call("session/new", {"cwd": str(house.work), "mcpServers": []})
    caller = await house.speaker("humanlayer")
    given = {"command": "rm -rf build \u202e; echo " + "y" * 5_000, "description": "tidy"}
    asked_for = {"run_id": made["sessionId"], "tool_name": "Bash", "tool_input": given}
    id = (await caller.call("createApproval", {**asked_for, "tool_use_id": "t1"}))["approval_id"]
    params = (await acp.until(permission))["params"]
    assert "rm -rf build <U+202E>" in texts_of(params["toolCall"]["content"])
    assert params["toolCall"]["rawInput"]["input"] == given
    code, said = await command(house, "approvals")
    assert "Bash" in said and "rm -rf build <U+202E>" in said and "more characters" in said
    code, said = await command(house, "approvals", "show", id)
    assert "y" * 5_000 in said and "tidy" in said and clean(said)
    said = await caller.call(
        "sendDecision", {"approval_id": id, "decision": "approve", "always": True}
    )
    assert said["remembered"].startswith("this exact command: rm -rf build")
    again = (await caller.call("createApproval", {**asked_for, "tool_use_id": "t2"}))["approval_id"]
    row = (await caller.call("getApproval", {"approval_id": again}))["approval"]
    assert row["status"] == "approved" and said["rule_id"] in row["comment"]
    asked_for["tool_input"] = {"command": "rm -rf /"}
    again = (await caller.call("createApproval", {**asked_for, "tool_use_id": "t3"}))["approval_id"]
    row = (await caller.call("getApproval", {"approval_id": again}))["approval"]
    assert row["status"] == "pending"
