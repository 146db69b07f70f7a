"""HTTP clients beside each other: what a streamed delta, a request and an import cost.

    python bench/clients.py [--rounds N] [--every SECONDS] [CLIENT ...]

Each client runs in a process of its own against the same loopback model, in turn. What is not
installed is left out (`pip install httpx aiohttp pyreqwest pyqwest httptools`); `ours` is
`dragoman.http`. Decision 0012 was taken by these figures.
"""

import argparse
import asyncio
import contextlib
import importlib.util
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

REFS = Path(__file__).with_name("refs")
BODY = json.dumps({"model": "m", "stream": True, "messages": [{"role": "user"}]}).encode()
HEADERS = {"content-type": "application/json", "accept": "text/event-stream"}
Ask = Callable[[str], Awaitable[int]]  # a URL → bytes of the answer
Close = Callable[[], Awaitable[object]]


async def _httpx(cert: str) -> tuple[Ask, Close]:
    import ssl

    import httpx

    context = ssl.create_default_context(cafile=cert) if cert else False
    client = httpx.AsyncClient(verify=context, timeout=60, limits=httpx.Limits(max_connections=500))

    async def ask(url: str) -> int:
        size = 0
        async with client.stream("POST", url, content=BODY, headers=HEADERS) as answer:
            async for chunk in answer.aiter_raw():
                size += len(chunk)
        return size

    return ask, client.aclose


async def _aiohttp(cert: str) -> tuple[Ask, Close]:
    import ssl

    import aiohttp

    context = ssl.create_default_context(cafile=cert) if cert else True
    client = aiohttp.ClientSession(connector=aiohttp.TCPConnector(limit=500, ssl=context))

    async def ask(url: str) -> int:
        size = 0
        async with client.post(url, data=BODY, headers=HEADERS) as answer:
            async for chunk in answer.content.iter_any():
                size += len(chunk)
        return size

    return ask, client.close


async def _pyreqwest(cert: str) -> tuple[Ask, Close]:
    from pyreqwest.client import ClientBuilder

    builder = ClientBuilder()
    if cert:
        builder = builder.add_root_certificate_pem(Path(cert).read_bytes())
    client = builder.build()

    async def ask(url: str) -> int:
        size = 0
        made = client.post(url).headers(HEADERS).body_bytes(BODY).build_streamed()
        async with made as answer:
            while (chunk := await answer.body_reader.read_chunk()) is not None:
                size += len(chunk)
        return size

    return ask, client.close


async def _pyqwest(cert: str) -> tuple[Ask, Close]:
    import pyqwest

    more = {"tls_ca_cert": Path(cert).read_bytes()} if cert else {}
    transport = pyqwest.HTTPTransport(**more)
    client = pyqwest.Client(transport)

    async def ask(url: str) -> int:
        size = 0
        async with client.stream("POST", url, headers=HEADERS, content=BODY) as answer:
            async for chunk in answer.content:
                size += len(chunk)
        return size

    return ask, transport.aclose


async def _ours(cert: str) -> tuple[Ask, Close]:
    from dragoman.http.client import Client
    from dragoman.http.trust import trusting

    client = Client(trust=trusting(cert) if cert else None)

    async def ask(url: str) -> int:
        size = 0

        def count(data: bytes) -> None:
            nonlocal size
            size += len(data)

        async with client.open("POST", url, headers=HEADERS, body=BODY) as answer:
            answer.into(count)
            while await answer.more():
                continue
        return size

    return ask, client.close


MAKERS = {
    "httpx": _httpx,
    "aiohttp": _aiohttp,
    "pyreqwest": _pyreqwest,
    "pyqwest": _pyqwest,
    "ours": _ours,
}


def _spent() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def _memory() -> float:
    """Megabytes of this process, as far as the kernel shares them out among processes (PSS)."""
    with open("/proc/self/smaps_rollup", encoding="ascii") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("Pss:")) / 1024


async def _child(name: str, url: str, cert: str, streams: int, deltas: int) -> dict[str, float]:
    began, before = _spent(), _memory()
    ask, close = await MAKERS[name](cert)
    found = {"import": (_spent() - began) * 1e3, "memory": _memory() - before}
    first = time.perf_counter()
    await asyncio.gather(*(ask(f"{url}/none") for _ in range(streams)))  # connections are warm now
    found["first"] = (time.perf_counter() - first) * 1e3
    began = _spent()
    for _ in range(200 // streams):
        await asyncio.gather(*(ask(f"{url}/none") for _ in range(streams)))
    found["request"] = (_spent() - began) / (200 // streams * streams) * 1e3
    began = _spent()
    sizes = await asyncio.gather(*(ask(url) for _ in range(streams)))
    found["delta"] = (_spent() - began) / (streams * deltas) * 1e6
    assert min(sizes) > deltas * 50, sizes
    found["all"] = _memory() - before
    await close()
    return found


@contextlib.contextmanager
def model(deltas: int, every: float, certificate: tuple[str, str] | None = None) -> Iterator[str]:
    """A loopback model; yields its address."""
    command = [sys.executable, str(REFS / "model.py"), str(deltas), str(every)]
    process = subprocess.Popen([*command, *(certificate or ())], stdout=subprocess.PIPE)
    try:
        assert process.stdout is not None
        port = int(process.stdout.readline())
        scheme = "https" if certificate else "http"
        yield f"{scheme}://127.0.0.1:{port}"
    finally:
        process.kill()
        process.wait()
        if process.stdout is not None:
            process.stdout.close()


def certificate(folder: str) -> tuple[str, str]:
    """A certificate for 127.0.0.1 that nobody signed, and its key."""
    cert, key = os.path.join(folder, "cert.pem"), os.path.join(folder, "key.pem")
    subprocess.run(
        ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1",
         "-nodes", "-keyout", key, "-out", cert, "-days", "2", "-subj", "/CN=127.0.0.1",
         "-addext", "subjectAltName=IP:127.0.0.1,DNS:localhost",
         "-addext", "basicConstraints=critical,CA:FALSE"],
        check=True, capture_output=True,
    )  # fmt: skip
    return cert, key


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("clients", nargs="*")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--every", type=float, default=0.005)
    parser.add_argument("--deltas", type=int, default=200)
    parser.add_argument("--child", default="", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.child:
        name, url, cert, streams, deltas = options.child.split(",")
        import uvloop

        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            print(json.dumps(runner.run(_child(name, url, cert, int(streams), int(deltas)))))
        return
    there = [n for n in MAKERS if n == "ours" or importlib.util.find_spec(n)]
    names = [n for n in there if not options.clients or n in options.clients]
    found: dict[tuple[str, bool, int], list[dict[str, float]]] = {}
    with tempfile.TemporaryDirectory(prefix="drb-") as folder:
        pair = certificate(folder)
        for secure in (False, True):
            with model(options.deltas, options.every, pair if secure else None) as url:
                for _ in range(options.rounds):
                    for streams in (1, 20, 100):
                        for name in names:
                            cert = pair[0] if secure else ""
                            asked = f"{name},{url}/v1/messages,{cert},{streams},{options.deltas}"
                            made = subprocess.run(
                                [sys.executable, __file__, "--child", asked],
                                capture_output=True, timeout=120,
                            )  # fmt: skip
                            if made.returncode:
                                sys.exit(f"{name}: {made.stderr.decode()[-2000:]}")
                            key = (name, secure, streams)
                            found.setdefault(key, []).append(json.loads(made.stdout))
    _show(names, found)


def _show(names: list[str], found: dict[tuple[str, bool, int], list[dict[str, float]]]) -> None:
    def best(what: str, name: str, secure: bool, streams: int) -> float:
        return min(one[what] for one in found[name, secure, streams])

    print(
        "| client | µs CPU per delta, 1 / 20 / 100 streams | with TLS | request | import, PSS "
        "| PSS after 100 |"
    )
    print("|---|---|---|---|---|---|")
    for name in names:
        cells = [
            " / ".join(f"{best('delta', name, secure, n):.0f}" for n in (1, 20, 100))
            for secure in (False, True)
        ]
        request = best("request", name, False, 20)
        start, memory = best("import", name, True, 1), best("memory", name, True, 1)
        after = best("all", name, True, 100)
        print(f"| {name} | {cells[0]} | {cells[1]} | {request:.2f} ms | "
              f"{start:.0f} ms, {memory:.1f} MB | {after:.1f} MB |")  # fmt: skip


if __name__ == "__main__":
    main()
