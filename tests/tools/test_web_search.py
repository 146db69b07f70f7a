"""web_search against an engine on loopback: what is asked, shown and refused; and who is told."""

import asyncio
import json
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
from tests.tools.making import Env, said

from dragoman.agents.builtin import _told
from dragoman.cli.local.prompts import given
from dragoman.engine.content import Message, Text, ToolCall
from dragoman.engine.faults import BadInput
from dragoman.engine.ports import ModelInfo, ModelRequest
from dragoman.policy.autonomy import AutonomyPolicy
from dragoman.providers.anthropic import Anthropic
from dragoman.providers.openai_responses import OpenAIResponses
from dragoman.tools.web_search import ServedSearch, WebSearch

HITS = [{"title": "One\x1b[31m", "url": "https://a.example/1", "description": "about\none"}]
ANSWERS: dict[str, Any] = {
    "brave": {"web": {"results": HITS}},
    "searxng": {"results": [{"title": "Two", "url": "https://b.example", "content": "words"}]},
    "nothing": {"results": []},
    "odd": ["no"],
    "refused": None,
}


@pytest.fixture
async def engine() -> AsyncIterator[tuple[str, list[str]]]:
    heard: list[str] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        heard.append(head)
        wanted = head.split()[1].split("/")[1].split("?")[0]
        answer = ANSWERS.get(wanted, ANSWERS["brave"])
        status = "403 Forbidden" if wanted == "refused" else "200 OK"
        body = json.dumps(answer).encode()
        start = f"HTTP/1.1 {status}\r\nContent-Length: {len(body)}\r\n\r\n"
        writer.write(start.encode() + body)
        await writer.drain()
        writer.close()

    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    async with server:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}", heard


async def search(tool: WebSearch, **args: Any) -> str:
    return said(await tool.run(args, Env("/")))  # type: ignore[arg-type]


async def test_brave(engine: tuple[str, list[str]]) -> None:
    place, heard = engine
    shown = await search(WebSearch("brave", "k3y", f"{place}/brave"), query="a b&c", count=3)
    assert shown == "1. One [31m\n   https://a.example/1\n   about one"
    assert "GET /brave?q=a+b%26c&count=3 " in heard[0]
    assert "x-subscription-token: k3y" in heard[0].lower()


async def test_searxng(engine: tuple[str, list[str]]) -> None:
    place, heard = engine
    shown = await search(WebSearch("searxng", "", f"{place}/searxng/"), query="x")
    assert "Two\n   https://b.example\n   words" in shown
    assert "/searxng/search?q=x&format=json" in heard[0] and "token" not in heard[0].lower()
    assert "nothing" in await search(WebSearch("searxng", "", f"{place}/nothing"), query="x")


@pytest.mark.parametrize(
    ("args", "why"),
    [
        ({}, "query"),
        ({"query": " "}, "query"),
        ({"query": "x" * 500}, "query"),
        ({"query": "x", "count": 0}, "count"),
        ({"query": "x", "count": 99}, "count"),
    ],
)
async def test_odd_arguments(args: dict[str, Any], why: str) -> None:
    with pytest.raises(BadInput, match=why):
        await search(WebSearch("brave", "k", "http://127.0.0.1:1"), **args)


async def test_what_is_not_set_up_or_answers_badly(engine: tuple[str, list[str]]) -> None:
    place, _ = engine
    for tool, why in (
        (WebSearch("brave"), "api_key"),
        (WebSearch("searxng"), "base_url"),
        (WebSearch("searxng", "", f"{place}/odd"), "as it should"),
        (WebSearch("brave", "k", f"{place}/refused"), "403"),
        (WebSearch("searxng", "", "http://127.0.0.1:1"), "cannot be reached"),
    ):
        with pytest.raises(BadInput, match=why):
            await search(tool, query="x")


def test_it_is_asked_about(tmp_path: Path) -> None:
    call = ToolCall("1", "web_search", {"query": "x"})
    verdicts = {
        mode: AutonomyPolicy()
        .judge(call, WebSearch.spec, mode=mode, cwd=str(tmp_path), roots=())  # type: ignore[arg-type]
        .verdict
        for mode in ("readonly", "plan", "supervised", "full")
    }
    assert verdicts == {"readonly": "deny", "plan": "ask", "supervised": "ask", "full": "allow"}


def test_the_models_own_service_is_told_only_where_there_is_one() -> None:
    spec = ServedSearch.spec

    class With:
        serves = frozenset({"web_search"})

    assert _told([spec], With()) == [spec]  # type: ignore[arg-type]
    assert _told([spec], object()) == []  # type: ignore[arg-type]
    request = ModelRequest(
        model=ModelInfo("p", "m"),
        system="",
        messages=(Message("user", (Text("x"),)),),
        tools=[spec],
    )
    claude = json.loads(Anthropic().body(request))["tools"][0]
    assert claude["type"] == "web_search_20250305" and "input_schema" not in claude
    assert json.loads(OpenAIResponses().body(request))["tools"] == [{"type": "web_search"}]


def test_a_configured_engine_brings_the_tool_and_all_stays_small(tmp_path: Path) -> None:
    (tmp_path / "config.toml").write_text(
        '[web_search]\nprovider = "searxng"\nbase_url = "http://x"\n'
    )
    found = given(str(tmp_path), None, str(tmp_path))
    assert "web_search" in {tool["name"] for tool in found["tools"]}
    assert found["prompt_tokens"] < 2_500
    assert found["prompt_tokens"] + found["tool_tokens"] < 6_000
