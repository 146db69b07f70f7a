"""Requests one upon the other, in any order: one answer each, and a history that is true."""

import asyncio
import contextlib
import random
from collections import Counter
from typing import Any

import pytest

from dragoman.testing.host import EchoTool, host_of, memory_door
from dragoman.testing.script import Scripted, call, think, turn, wait

from .talking import JOIN, Talker, desk_of

SCRIPT = [
    turn("one ", wait(0), "two ", wait(0), "three"),
    turn(think("hm"), "look", call("echo", text="x")),
    "done",
    turn(call("echo", text="y"), call("echo", text="z")),
    turn("long " * 40),
]


class Editor(Talker):
    """Sends without waiting, answers questions now and then, and keeps count."""

    def __init__(self, desk: Any, dice: random.Random, name: str) -> None:
        super().__init__(desk, name)
        self.dice = dice
        self.name = name
        self.session = ""
        self.prompts: dict[Any, str] = {}  # ids -> what was said
        self.counts: Counter[Any] = Counter()
        self.pending: list[Any] = []

    def say(self) -> None:
        text = f"{self.name} says {len(self.prompts)}"
        prompt = [{"type": "text", "text": text}]
        id = self.ask("session/prompt", {"sessionId": self.session, "prompt": prompt})
        self.prompts[id] = text

    def act(self) -> None:
        """One thing of many."""
        at = {"sessionId": self.session}
        kind = self.dice.randrange(12)
        if kind < 5:
            self.say()
        elif kind == 5:
            self.tell("session/cancel", at)
        elif kind == 6 and self.prompts:
            self.tell("$/cancel_request", {"requestId": self.dice.choice(list(self.prompts))})
        elif kind == 7:
            self.ask("session/close", at)
            self.come()
        elif kind == 8:
            self.come()
        elif kind == 9:
            self.ask("session/status", at)
        elif kind == 10 and self.version == "v2":
            running = [u["toolCallId"] for u in self.updates() if "toolCallId" in u]
            call_id = running[-1] if running else "x"
            self.ask("tool_call/cancel", {**at, "toolCallId": call_id})
        else:
            more = {"type": "id"} if self.version == "v2" else {}
            value = self.dice.choice(["full", "supervised"])
            option = {**at, "configId": "mode", "value": value, **more}
            self.ask("session/set_config_option", option)

    def come(self) -> None:
        params: dict[str, Any] = {"sessionId": self.session, "cwd": "/tmp", "_meta": JOIN}
        if self.version == "v2" and self.dice.randrange(2):
            params["replayFrom"] = {"type": "start"}
        self.ask("session/resume", params)

    async def take(self, within: float = 60.0) -> None:
        """Hear one line, and answer questions in some way or not yet."""
        message = await self.next(within)
        if "method" not in message:
            self.counts[message["id"]] += 1
        elif "id" in message:
            self.pending.append(message["id"])
        if self.pending and self.dice.randrange(3):
            self.reply_to(self.pending.pop())

    def reply_to(self, id: Any) -> None:
        chosen = self.dice.choice(["allow-once", "reject-once", "nothing of the kind"])
        outcome = {"outcome": "selected", "optionId": chosen}
        if not self.dice.randrange(5):
            outcome = {"outcome": "cancelled"}
        self.send({"jsonrpc": "2.0", "id": id, "result": {"outcome": outcome}})

    async def settle(self) -> None:
        """Wait until everything that was asked is answered."""
        async with asyncio.timeout(60):
            while set(self.asked) - set(self.counts):
                while self.pending:
                    self.reply_to(self.pending.pop())
                await self.take()


def accepted(editor: Editor) -> dict[str, str]:
    """The prompts of version 2 that were taken: their ids and texts."""
    return {
        message["result"]["messageId"]: editor.prompts[message["id"]]
        for message in editor.heard
        if "method" not in message and message.get("id") in editor.prompts and "result" in message
    }


def told(editor: Editor) -> dict[str, str]:
    users = [u for u in editor.updates() if u["sessionUpdate"] == "user_message"]
    return {u["messageId"]: u["content"][0]["text"] for u in users}


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.timeout(90)
async def test_whatever_comes_when(seed: int) -> None:
    dice = random.Random(seed)
    door = memory_door(Scripted(SCRIPT, loop=True), [EchoTool()], mode="supervised")
    troubles: list[str] = []
    host_of(door).trouble = lambda what, error, **data: troubles.append(f"{what}: {error!r}")
    desk = desk_of(door)
    new, other, old = (Editor(desk, dice, name) for name in ("new", "other", "old"))
    await new.greet2()
    await other.greet2()
    await old.greet("old editor")
    session = await new.new2()
    for editor in (new, other, old):
        editor.session = session
        editor.counts.update(dict.fromkeys(editor.asked, 1))
    other.come()
    old.come()
    for _ in range(30):
        for editor in (new, other, old):
            for _ in range(dice.randrange(4)):
                editor.act()
        for _ in range(dice.randrange(6)):
            await asyncio.sleep(0)
    await asyncio.gather(*(editor.settle() for editor in (new, other, old)))
    async with asyncio.timeout(60):
        while (live := door.live(session)) is not None and live.busy:  # it may ask once more
            for editor in (new, other, old):
                with contextlib.suppress(TimeoutError):
                    await editor.take(0.01)
                while editor.pending:
                    editor.reply_to(editor.pending.pop())
    for editor in (new, other, old):
        await editor.reply(editor.ask("_test/barrier"))
        assert not {id: n for id, n in editor.counts.items() if n != 1}
    kept = [m for m in await door.messages(session) if m.role == "user"]
    history = [block.text for m in kept for block in m.content]  # type: ignore[union-attr]
    for editor in (new, other):
        taken = accepted(editor)
        assert set(taken.values()) <= set(history)  # what was acknowledged was said
        refused = set(editor.prompts.values()) - set(taken.values())
        assert not refused & set(history)  # and what was refused was not
        seen = told(editor)
        assert all(seen.get(id, text) == text for id, text in taken.items())
        said = {text for text in seen.values() if text.startswith(editor.name)}
        assert said <= set(taken.values())
    for editor in (new, other):
        states = [u["state"] for u in editor.updates() if u["sessionUpdate"] == "state_update"]
        assert not states or states[-1] == "idle"
    assert troubles == []
    await host_of(door).stop(0)
