"""What a session has used and where it must stop."""

from __future__ import annotations

import time
from typing import Any

from attrs import asdict, define, field

from agent_ls.agent.stops import LimitReached
from agent_ls.models.protocol import Usage
from agent_ls.settings import Limits


@define
class Meter:
    """Counts steps, tokens, money and time. `started` is on the monotonic clock, in seconds.

    `previous_s` is the time spent before a resume.
    """

    limits: Limits
    steps: int = 0
    model_calls: int = 0
    tool_calls: int = 0
    denied: int = 0
    usage: Usage = field(factory=Usage)
    previous_s: float = 0.0
    started: float = field(factory=time.monotonic)

    @property
    def wall_s(self) -> float:
        return self.previous_s + time.monotonic() - self.started

    @property
    def tokens(self) -> int:
        return self.usage.input_tokens + self.usage.output_tokens

    def remaining_s(self) -> float:
        """Seconds left, infinite without a time limit, never negative."""
        if self.limits.timeout is None:
            return float("inf")
        return max(0.0, self.limits.timeout - self.wall_s)

    def check(self) -> None:
        """Raise `LimitReached` if any limit is used up. Called before every model call and attempt."""
        limits = self.limits
        if limits.max_steps is not None and self.steps >= limits.max_steps:
            raise LimitReached("max_steps", f"all {limits.max_steps} steps are used up")
        if limits.max_tokens is not None and self.tokens >= limits.max_tokens:
            raise LimitReached("max_tokens", f"{self.tokens:,} of {limits.max_tokens:,} tokens are used up")
        cost = self.usage.cost_usd
        if limits.max_cost is not None and cost is not None and cost >= limits.max_cost:
            raise LimitReached("max_cost", f"${cost:.2f} of ${limits.max_cost:.2f} are used up")
        self.check_time()

    def check_time(self) -> None:
        """Raise `LimitReached` if the time is used up. Called before every tool call."""
        if self.remaining_s() <= 0:
            raise LimitReached("timeout", f"the time limit of {self.limits.timeout:g} s is reached")

    def report(self, model: str) -> dict[str, Any]:
        """The `usage` object of the public report."""
        usage = asdict(self.usage)
        return {
            "model": model,
            "model_calls": self.model_calls,
            "tool_calls": self.tool_calls,
            "denied_calls": self.denied,
            "input_tokens": usage["input_tokens"],
            "output_tokens": usage["output_tokens"],
            "cached_tokens": usage["cached_tokens"],
            "cost_usd": None if usage["cost_usd"] is None else round(usage["cost_usd"], 6),
            "wall_s": round(self.wall_s, 2),
        }
