"""`/api/v1`: the REST interface of the HumanLayer daemon, answered by its dialect."""

import msgspec

from ..feed import Feed
from ..http import JSON, Answer, Response, Stream
from ..outlet import Outlet
from .table import LARGE, Plain, Route


async def answer(call: Plain) -> Answer:
    """Hand the request to the dialect, and its answer back."""
    request = call.request
    who = msgspec.structs.replace(call.who, dialect="humanlayer")
    path = tuple(part for part in call.path["rest"].split("/") if part)
    query = request.target.partition("?")[2].partition("#")[0]
    rest = call.gate.desks.desk("humanlayer").rest
    said = await rest.answer(who, request.method, path, query, request.body)
    if said.shape is None:
        return Response(said.status, said.body, JSON if said.body else "")
    shape = said.shape

    def begin(outlet: Outlet) -> None:
        feed = Feed()
        watch = call.door.watch_all(who, shape, feed.deliver, lambda: feed.paused)
        feed.join(outlet, watch)
        outlet.write(b": connected\n\n")
        call.gate.keep_awake(outlet)

    return Stream(begin)


ROUTES = [
    Route("*", "/api/v1/{rest...}", answer, "The HumanLayer daemon's interface", raw_body=True,
          limit=LARGE, hidden=True),
]  # fmt: skip
