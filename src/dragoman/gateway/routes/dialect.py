"""A dialect's own HTTP interface, below the path that its descriptor names."""

from collections.abc import Iterator

import msgspec

from dragoman.dialects.descriptor import REGISTRY, Dialect

from ..http import JSON, Answer, Response
from .live import stream_all
from .table import LARGE, AnyRoute, Plain, Route


def _route(dialect: Dialect, path: str) -> AnyRoute:
    async def answer(call: Plain) -> Answer:
        """Hand the request to the dialect, and its answer back."""
        request = call.request
        who = msgspec.structs.replace(call.who, dialect=dialect.name)
        path = tuple(part for part in call.path["rest"].split("/") if part)
        query = request.target.partition("?")[2].partition("#")[0]
        rest = call.gate.desks.desk(dialect.name).rest
        said = await rest.answer(who, request.method, path, query, request.body)
        if said.shape is None:
            return Response(said.status, said.body, JSON if said.body else "")
        return stream_all(call, who, said.shape, b": connected\n\n")

    summary = f"The HTTP interface of {dialect.title}"
    return Route(
        "*", f"{path}/{{rest...}}", answer, summary, raw_body=True, limit=LARGE, hidden=True
    )


def routes() -> Iterator[AnyRoute]:
    """One for each dialect that has such an interface."""
    for one in REGISTRY.all():
        if one.rest is not None:
            yield _route(one, one.rest.path)
