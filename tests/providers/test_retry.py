from collections.abc import AsyncGenerator, Callable

import pytest
from tests.providers.parts import read

from dragoman.engine.content import Usage
from dragoman.engine.faults import ProviderFailed
from dragoman.engine.ports import (
    ModelOpened,
    ModelPart,
    ModelRetry,
    ModelStop,
    ModelText,
    ModelUsage,
)
from dragoman.providers.retry import RetryRules, with_retry

RULES = RetryRules(retries=2, base=0.001, cap=0.002, jitter=0.0, patience=1.0)
Step = ModelPart | ProviderFailed


def plays(*attempts: list[Step]) -> Callable[[], AsyncGenerator[ModelPart, None]]:
    waiting = list(attempts)

    async def attempt() -> AsyncGenerator[ModelPart, None]:
        for step in waiting.pop(0):
            if isinstance(step, ProviderFailed):
                raise step
            yield step

    return attempt


GOOD: list[Step] = [ModelOpened(), ModelText("ok"), ModelStop("end_turn")]


@pytest.mark.parametrize("kind", ["rate_limit", "overloaded", "server", "network"])
async def test_what_may_pass_is_tried_again(kind: str) -> None:
    seen = await read(with_retry(plays([ProviderFailed("no", kind)], GOOD), RULES))
    assert seen.failure is None
    assert seen.parts[0] == ModelRetry(1, 0.001, "no")
    assert seen.text == "ok"


@pytest.mark.parametrize("kind", ["auth", "bad_request", "context_full", "refused"])
async def test_what_will_not_pass_is_not(kind: str) -> None:
    seen = await read(with_retry(plays([ProviderFailed("no", kind)], GOOD), RULES))
    assert seen.failure is not None and seen.failure.kind == kind
    assert seen.parts == []


async def test_attempts_are_bounded() -> None:
    fault = ProviderFailed("no", "server")
    seen = await read(with_retry(plays([fault], [fault], [fault], GOOD), RULES))
    assert seen.failure is fault
    assert seen.kinds() == ["ModelRetry", "ModelRetry"]


async def test_a_drop_before_the_first_words_is_tried_again() -> None:
    early: list[Step] = [ModelOpened(), ModelUsage(Usage(1)), ProviderFailed("cut", "network")]
    seen = await read(with_retry(plays(early, GOOD), RULES))
    assert seen.failure is None and seen.text == "ok"


async def test_a_drop_after_words_is_not() -> None:
    late: list[Step] = [ModelOpened(), ModelText("half"), ProviderFailed("cut", "network")]
    seen = await read(with_retry(plays(late, GOOD), RULES))
    assert seen.failure is not None and seen.failure.kind == "network"
    assert seen.text == "half"


async def test_the_wait_is_what_the_provider_asks_for() -> None:
    fault = ProviderFailed("slow down", "rate_limit", retry_after=0.005)
    seen = await read(with_retry(plays([fault], GOOD), RULES))
    assert seen.parts[0] == ModelRetry(1, 0.005, "slow down")


async def test_a_wait_past_patience_is_a_failure() -> None:
    fault = ProviderFailed("come back tomorrow", "rate_limit", retry_after=86_400)
    seen = await read(with_retry(plays([fault], GOOD), RULES))
    assert seen.failure is fault and seen.failure.retry_after == 86_400


@pytest.mark.parametrize(
    ("attempt", "spread", "delay"),
    [(1, 0.5, 1.0), (2, 0.5, 2.0), (3, 0.5, 4.0), (4, 0.5, 5.0), (1, 0.0, 0.8), (1, 1.0, 1.2)],
)
def test_the_wait_grows_to_its_cap(attempt: int, spread: float, delay: float) -> None:
    rules = RetryRules(retries=4, base=1.0, factor=2.0, cap=5.0, jitter=0.2)
    assert rules.delay(attempt, None, spread) == pytest.approx(delay)
    assert rules.delay(5, None, spread) is None
