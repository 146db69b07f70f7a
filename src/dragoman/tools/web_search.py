"""The tool `web_search`: pages about something, by Brave, a SearXNG, or the model's own service.

Where to search is the owner's choice, so that place may be on this machine; what is found there is
fetched by `web_fetch`, which asks about each host.
"""

import asyncio
from typing import Any
from urllib.parse import urlencode

import msgspec

from dragoman.engine.content import Text
from dragoman.engine.faults import BadInput
from dragoman.engine.ports import Outcome, ToolEnv, ToolSpec

from .args import brief, decode, schema, text, whole
from .web import WebFetch

BRAVE = "https://api.search.brave.com/res/v1/web/search"
_MOST = 20
_SECONDS = 20.0
_LONGEST = 400  # characters of a query
_DESCRIPTION = (
    "Search the web; the result lists titles, addresses and excerpts. Read with web_fetch."
)
_SCHEMA = schema(
    "query", query=text("What to search for."), count=whole("How many results; 8 when left out.")
)


class SearchArgs(msgspec.Struct):
    query: str
    count: int = 8


class SearchHit(msgspec.Struct, frozen=True):
    title: str = ""
    url: str = ""
    description: str = ""  # Brave
    content: str = ""  # SearXNG


class Hits(msgspec.Struct, frozen=True):
    results: tuple[SearchHit, ...] = ()


class BraveAnswer(msgspec.Struct, frozen=True):
    web: Hits = Hits()


class WebSearch:
    """Asks a search engine that the configuration names."""

    spec = ToolSpec("web_search", _DESCRIPTION, _SCHEMA, "fetch", repeatable=True)

    def __init__(
        self, provider: str, key: str = "", address: str = "", way: WebFetch | None = None
    ) -> None:
        """`provider` is brave or searxng; `way` is how pages are fetched."""
        self._provider = provider
        self._key = key
        self._address = address or (BRAVE if provider == "brave" else "")
        self._way = way or WebFetch(public=lambda address: True)

    def summary(self, args: dict[str, Any]) -> str:
        return f"Search the web for {brief(args.get('query', '?'))}"

    async def run(self, args: dict[str, Any], env: ToolEnv) -> Outcome:
        asked = decode(SearchArgs, args, {"q": "query", "limit": "count"})
        words = asked.query.strip()
        if not words or len(words) > _LONGEST:
            raise BadInput(f"query: it must have 1 to {_LONGEST} characters")
        if not 1 <= asked.count <= _MOST:
            raise BadInput(f"count: it must be from 1 to {_MOST}")
        if not self._address or self._provider == "brave" and not self._key:
            missing = "api_key" if self._address else "base_url"
            raise BadInput(f"web_search is not set up: web_search.{missing} is missing.")
        hits = await self._ask(words, asked.count)
        lines = [
            f"{number}. {_line(hit.title, 200)}\n   {_line(hit.url, 500)}\n   "
            f"{_line(hit.description or hit.content, 400)}"
            for number, hit in enumerate(hits[: asked.count], 1)
        ]
        return Outcome((Text("\n".join(lines) or "[nothing was found]"),))

    async def _ask(self, words: str, count: int) -> tuple[SearchHit, ...]:
        brave = self._provider == "brave"
        more = {"q": words, "count": count} if brave else {"q": words, "format": "json"}
        base = self._address if brave else f"{self._address.rstrip('/')}/search"
        headers = [("X-Subscription-Token", self._key)] if brave else []
        try:
            async with asyncio.timeout(_SECONDS):
                page = await self._way.get(f"{base}?{urlencode(more)}", headers)
        except TimeoutError:
            raise BadInput(f"The search took more than {_SECONDS:g} s.") from None
        if page.status != 200 or page.cut:
            hint = "Is its key right?" if page.status in (401, 403) else ""
            hint = hint or ("Does it offer `format=json`?" if not brave else "")
            raise BadInput(f"The search engine answered {page.status}.", hint)
        try:
            if brave:
                return msgspec.json.decode(page.body, type=BraveAnswer).web.results
            return msgspec.json.decode(page.body, type=Hits).results
        except (msgspec.DecodeError, RecursionError) as error:
            raise BadInput(f"The search engine did not answer as it should: {error}.") from None


class ServedSearch:
    """Stands for the search that the model's own service does: it is only ever told."""

    spec = ToolSpec("web_search", _DESCRIPTION, _SCHEMA, "fetch", repeatable=True, served=True)

    def summary(self, args: dict[str, Any]) -> str:
        return f"Search the web for {brief(args.get('query', '?'))}"

    async def run(self, args: dict[str, Any], env: ToolEnv) -> Outcome:
        raise BadInput("The model's own service searches; this model has none.")


def _line(value: str, longest: int) -> str:
    return brief("".join(char if char.isprintable() else " " for char in value), longest)
