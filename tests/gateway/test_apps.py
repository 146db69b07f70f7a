"""A real app: its route and its method, from HTTP through the kernel socket and back."""

import asyncio
from pathlib import Path

from tests.gateway.making import serving

from dragoman.apps import App
from dragoman.transports import unix


async def test_an_app_serves_its_route_and_its_method(tmp_path: Path):
    path = str(tmp_path / "kernel.sock")
    app = App("@me/weather", socket=path)

    @app.route("/today")
    async def today(request):
        return {"status": 200, "headers": {"x-sky": "blue"}, "body": f"{request.method} fine"}

    @app.route("/odd")
    async def odd(request):
        names = {"x-sky": " blue ", "x-é": "a", "x y": "a", "x-cut": "a\r\nx-more: b", "x-ä": ""}
        return {"status": 200, "headers": names, "body": "odd"}

    @app.route("/nothing")
    async def no_content(request):
        return {"status": 204, "body": "more than nothing"}

    @app.method("weather.warm")
    async def warm(params):
        return {"degrees": params["degrees"] + 1}

    async with serving() as served:
        opener = served.gate.desks.opener("openclawos")
        listener = await unix.listen(path, opener)
        running = asyncio.ensure_future(app.serve())
        try:
            await asyncio.wait_for(app.ready.wait(), 60)
            async with served.client() as client:
                answer = await client.get("/apps/@me/weather/today")
                assert (answer.status_code, answer.text) == (200, "GET fine"), answer.text
                assert answer.headers["x-sky"] == "blue"
                assert (await client.get("/apps/@me/weather/none")).status_code == 404
                answer = await client.get("/apps/@me/weather/odd")
                assert answer.text == "odd"
                given = {name: value for name, value in answer.headers.items() if name[1] == "-"}
                assert given["x-sky"] == "blue" and not {"x-cut", "x-more", "x-ä"} & given.keys()
                head = f"host: localhost\r\nauthorization: Bearer {served.token}\r\n"
                nothing = f"GET /apps/@me/weather/nothing HTTP/1.1\r\n{head}\r\n"
                last = f"GET /livez HTTP/1.1\r\n{head}connection: close\r\n\r\n"
                said = await served.raw(f"{nothing}{last}".encode())
                assert said.startswith(b"HTTP/1.1 204 ") and b"HTTP/1.1 200 " in said
                done = await client.post("/api/methods/weather.warm", json={"degrees": 20})
                assert done.json() == {"degrees": 21}
            async with served.stranger() as stranger:
                assert (await stranger.get("/apps/@me/weather/today")).status_code == 401
        finally:
            app.stop()
            await asyncio.wait_for(running, 60)
            await listener.close()
