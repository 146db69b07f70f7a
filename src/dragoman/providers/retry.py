"""When and how often a provider is asked again."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import aclosing

import msgspec

from dragoman.engine.faults import ProviderFailed
from dragoman.engine.ports import ModelOpened, ModelPart, ModelRetry, ModelUsage


class RetryRules(msgspec.Struct, frozen=True):
    """Exponential back-off with jitter. `patience` bounds a wait the provider asks for.

    `silence` bounds all tries together, as long as the provider asks for no wait itself.
    """

    retries: int = 5
    base: float = 0.25
    factor: float = 2.0
    cap: float = 20.0
    jitter: float = 0.25
    patience: float = 60.0
    silence: float = 20.0

    def delay(self, attempt: int, retry_after: float | None, spread: float) -> float | None:
        """Seconds before retry number `attempt` (from 1); None: do not retry.

        `spread` is a random number between 0 and 1.
        """
        if attempt > self.retries:
            return None
        if retry_after is not None:
            # A little later than asked: clients that come back together collide again.
            return retry_after + self.jitter * spread if retry_after <= self.patience else None
        wait = min(self.cap, self.base * self.factor ** (attempt - 1))
        return wait * (1 + self.jitter * (2 * spread - 1))


async def with_retry(
    attempt: Callable[[], AsyncGenerator[ModelPart, None]], rules: RetryRules
) -> AsyncIterator[ModelPart]:
    """Parts of the first attempt that gets through.

    Once a part of the answer was given out there is no second attempt: what the caller has shown
    stays true.
    """
    number = 0
    began = asyncio.get_running_loop().time()
    while True:
        shown = False
        try:
            async with aclosing(attempt()) as parts:
                async for part in parts:
                    shown = shown or not isinstance(part, ModelOpened | ModelUsage)
                    yield part
            return
        except ProviderFailed as fault:
            number += 1
            delay = None
            if not shown and fault.may_retry:
                import random

                delay = rules.delay(number, fault.retry_after, random.random())
                spent = asyncio.get_running_loop().time() - began
                if (
                    delay is not None
                    and fault.retry_after is None
                    and spent + delay > rules.silence
                ):
                    delay = None
            if delay is None:
                raise
            reason = fault.message
        yield ModelRetry(number, delay, reason)
        await asyncio.sleep(delay)
