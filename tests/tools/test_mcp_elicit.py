"""Servers that ask the human in the middle of a call: forms, and pages to open."""

import asyncio
import sys
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from dragoman.engine.content import text_of
from dragoman.engine.ports import Answer
from dragoman.tools.mcp import McpConnection, McpTools, read_server
from dragoman.tools.mcp_elicit import Asking

SERVER = str(Path(__file__).with_name("mcp_asking_server.py"))


class Human:
    """Answers what is asked, in order (`ToolEnv` as far as it is used)."""

    def __init__(self, *answers: str | None) -> None:
        self._answers = list(answers)
        self.asked: list[tuple[str, tuple[str, ...], str]] = []

    async def inquire(self, question: str, choices: Sequence[str] = (), *, url: str = "") -> Answer:
        self.asked.append((question, tuple(choices), url))
        said = self._answers.pop(0)
        return Answer("", answered=False) if said is None else Answer(said)


async def called(tools: McpTools, human: Human, tool: str, **args: Any) -> str:
    found = tools.find(f"mcp__shop__{tool}")
    assert found is not None
    outcome = await found.run(args, human)  # type: ignore[arg-type]
    return text_of(outcome.content)


async def test_forms_are_asked_field_by_field_and_pages_are_shown() -> None:
    given = {"name": "shop", "command": sys.executable, "args": [SERVER]}
    tools = McpTools([McpConnection(read_server(given), lambda title, text: None)], None)
    try:
        await tools.ready(60)
        human = Human("many", "3", "Yes", "(leave empty)")
        said = await called(tools, human, "order")
        assert said.startswith("accept") and "count=3" in said and "gift=True" in said
        assert [choices for _, choices, _ in human.asked] == [(), (), ("Yes", "No"), ()]
        assert "does not fit" in human.asked[1][0] and "shop asks: What" in human.asked[0][0]
        assert (await called(tools, Human(None), "order")).startswith("cancel")
        page = "https://shop.example/in"
        for answer, action in (("Opened", "accept"), ("Decline", "decline"), (None, "cancel")):
            human = Human(answer)
            assert await called(tools, human, "sign_in", url=page) == action
            question, choices, url = human.asked[0]
            assert url == page and url in question and choices == ("Opened", "Decline")
        human = Human()  # is not asked: only pages of the web are shown
        assert await called(tools, human, "sign_in", url="file:///etc/passwd") == "decline"
    finally:
        await tools.close()


async def test_a_field_says_what_fits() -> None:
    fields = {
        "count": {"type": "integer", "minimum": 1, "maximum": 5},
        "price": {"type": "number"},
        "sizes": {"type": "array", "items": {"enum": ["S", "M", "L"]}},
    }
    params = SimpleNamespace(
        mode="form",
        message="What?",
        requested_schema={"properties": fields, "required": ["count", "sizes", "price"]},
    )
    human = Human("6", "0", "5", "nan", "inf", "1.5", "S, XL", "S, L")
    asking = Asking("shop")
    async with asyncio.timeout(60) as deadline:
        asking.begin(human, deadline, 60)  # type: ignore[arg-type]
        answer = await asking.elicit(None, params)
    assert answer.content == {"count": 5, "price": 1.5, "sizes": ["S", "L"]}
    words = [question for question, _, _ in human.asked]
    assert words[0].endswith("count (a whole number, at least 1, at most 5)")
    assert words[1].endswith("at most 5): '6' does not fit.")
    assert words[3].endswith("price (a number)")
    assert words[6].endswith("sizes (some of S, M, L, with commas between them)")


async def test_who_asks_outside_of_a_call_gets_no_answer() -> None:
    assert (await Asking("shop").elicit(None, None)).action == "cancel"
