"""Which failures of a provider are worth another attempt, and how long to wait before it.

Exponential backoff with jitter; a server's own wish (`retry-after`) goes first; an overall deadline.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable, Iterator
from typing import TypeVar

from attrs import field, frozen

from agent_ls.cancel import CancelToken
from agent_ls.errors import Cancelled, ProviderError
from agent_ls.models.protocol import Retrying

E = TypeVar("E")


@frozen
class RetryPolicy:
    """All times in seconds.

    `deadline_s` bounds the time from the first attempt to the start of the last; `connect_attempts`
    bounds attempts that never reached the server; `stall_s` is how long a stream may send nothing and
    `total_s` how long one attempt may take in all.
    """

    first_wait_s: float = 2.0
    factor: float = 2.0
    max_wait_s: float = 30.0
    jitter: float = 0.25
    deadline_s: float = 300.0
    connect_attempts: int = 4
    connect_s: float = 15.0
    stall_s: float = 60.0
    total_s: float = 900.0
    clock: Callable[[], float] = field(default=time.monotonic, repr=False)
    random: Callable[[], float] = field(default=random.random, repr=False)


class TransientError(Exception):
    """An attempt failed in a way that may pass. `retry_after_s` is the server's wish, if it had one.

    `unreached` means that not even a connection came about.
    """

    def __init__(self, reason: str, retry_after_s: float | None = None, *, unreached: bool = False) -> None:
        super().__init__(reason)
        self.reason = reason
        self.retry_after_s = retry_after_s
        self.unreached = unreached


def retrying(
    name: str, attempt: Callable[[], Iterator[E]], policy: RetryPolicy, cancel: CancelToken
) -> Iterator[E | Retrying]:
    """Yield the events of `attempt()`; on TransientError yield `Retrying`, wait, and attempt again.

    What an attempt yielded before it failed is void (`gather` drops it). Raises ProviderError when the
    deadline is passed, Cancelled, and everything else that `attempt` raises.
    """
    started = policy.clock()
    wait = policy.first_wait_s
    number = 0
    while True:
        number += 1
        try:
            yield from attempt()
            return
        except TransientError as error:
            failure = error
        delay = wait * (1 + policy.jitter * (2 * policy.random() - 1))
        if failure.retry_after_s is not None:
            delay = failure.retry_after_s * (1 + policy.jitter * policy.random() / 5)
        wait = min(wait * policy.factor, policy.max_wait_s)
        spent = policy.clock() - started
        if spent + delay > policy.deadline_s or (failure.unreached and number >= policy.connect_attempts):
            asked = (
                f"; the server asks to wait {failure.retry_after_s:.0f} s" if failure.retry_after_s else ""
            )
            raise ProviderError(
                f"{name}: {failure.reason} (gave up after {number} attempts in {spent:.0f} s{asked})",
                "Try again later, or go on with `agent-ls resume`.",
            )
        yield Retrying(failure.reason, number, delay)
        if cancel.wait(delay):
            raise Cancelled
