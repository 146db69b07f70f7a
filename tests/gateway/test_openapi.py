"""The OpenAPI document is true: schemathesis asks everything it says, in odd ways."""

import asyncio
import threading
from types import SimpleNamespace
from typing import Any

import httpx
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from tests.gateway.making import serving

from dragoman.engine.facts import Facts
from dragoman.gateway.auth import Throttle
from dragoman.gateway.openapi import document
from dragoman.gateway.routes import all_routes
from dragoman.testing.script import Scripted


async def test_the_document_names_every_route():
    async with serving() as served, served.stranger() as client:
        served_one = (await client.get("/openapi.json")).json()
        assert served_one["openapi"].startswith("3.1")
        shown = [route for route in served.gate.routes if not route.hidden]
        there = {(method, path) for path, ops in served_one["paths"].items() for method in ops}
        assert there == {(route.method.lower(), route.path) for route in shown}
        ids = [op["operationId"] for ops in served_one["paths"].values() for op in ops.values()]
        assert len(ids) == len(set(ids))


def test_every_body_may_be_of_a_wrong_kind():
    for path, ways in DOCUMENT["paths"].items():
        for method, one in ways.items():
            is_json = "application/json" in one.get("requestBody", {}).get("content", {})
            assert ("415" in one["responses"]) is is_json, f"{method} {path}"


async def test_an_export_is_of_a_kind_that_the_document_names():
    kinds = DOCUMENT["paths"]["/api/sessions/{id}/export"]["get"]["responses"]["200"]["content"]
    got = []
    async with serving() as served, served.client() as client:
        id = (await client.post("/api/sessions", json={})).json()["id"]
        for form in ("html", "markdown", "json"):
            answer = await client.get(f"/api/sessions/{id}/export", params={"format": form})
            got.append(answer.headers["content-type"].partition(";")[0])
    assert sorted(got) == sorted(kinds)


class Beside:
    """A gateway in a thread of its own, because schemathesis asks synchronously."""

    def __init__(self) -> None:
        self.ready = threading.Event()
        self.thread = threading.Thread(target=lambda: asyncio.run(self._run()))
        self.thread.start()
        assert self.ready.wait(60)

    async def _run(self) -> None:
        self.loop = asyncio.get_running_loop()
        self.stop = asyncio.Event()
        async with serving(Scripted(["hello"] * 10_000)) as served:
            self.served = served
            self.ready.set()
            await self.stop.wait()

    def close(self) -> None:
        self.loop.call_soon_threadsafe(self.stop.set)
        self.thread.join(60)


@pytest.fixture(scope="module")
def beside():
    made = Beside()
    yield made
    made.close()


# The document depends on the table of routes alone, so the cases can be made before a host runs.
BARE = SimpleNamespace(routes=all_routes(), door=SimpleNamespace(facts=Facts()), prefix="")
DOCUMENT = document(BARE)
STREAMS = ("/api/events", "/api/live", "/api/sessions/{id}/stream")
OPERATIONS = [
    f"{method.upper()} {path}"
    for path, ways in DOCUMENT["paths"].items() if path not in STREAMS
    for method in ways
]  # fmt: skip


@pytest.fixture(scope="module")
def operations() -> dict[str, Any]:
    import schemathesis  # takes seconds to load

    schema = schemathesis.openapi.from_dict(DOCUMENT).exclude(path=list(STREAMS))
    return {one.label: one for one in (found.ok() for found in schema.get_all_operations())}


def test_every_operation_is_tried(operations: dict[str, Any]):
    assert sorted(operations) == sorted(OPERATIONS)


@pytest.mark.parametrize("name", OPERATIONS)
def test_answers_are_as_the_document_says(name: str, operations: dict[str, Any], beside: Beside):
    from schemathesis import GenerationMode
    from schemathesis.specs.openapi.checks import positive_data_acceptance

    served, operation = beside.served, operations[name]
    headers = {"Authorization": f"Bearer {served.token}"}

    good = operation.as_strategy(generation_mode=GenerationMode.POSITIVE)
    bad = operation.as_strategy(generation_mode=GenerationMode.NEGATIVE)

    @given(
        case=good if not operation.body and not list(operation.iter_parameters()) else good | bad
    )
    @settings(
        max_examples=20,
        derandomize=True,
        deadline=None,
        suppress_health_check=list(HealthCheck),
        phases=[Phase.explicit, Phase.generate],
    )
    def ask(case: Any) -> None:
        served.gate.auth.throttle = Throttle()
        case.call_and_validate(
            base_url=served.address,
            headers=headers,
            timeout=60,
            # What is well formed may still be refused: an unknown directory, a code that was used.
            excluded_checks=[positive_data_acceptance],
        )

    ask()


@pytest.mark.parametrize("path", STREAMS)
def test_streams_begin_as_the_document_says(beside: Beside, path: str):
    bearer = {"Authorization": f"Bearer {beside.served.token}"}
    with httpx.Client(base_url=beside.served.address, headers=bearer, timeout=60) as client:
        id = client.post("/api/sessions").json()["id"]
        with client.stream("GET", path.replace("{id}", id)) as stream:
            assert stream.status_code == 200
            assert stream.headers["content-type"] == "text/event-stream"
            assert next(stream.iter_lines()) in (": hello", "event: hello")
