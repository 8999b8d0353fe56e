"""What a model call costs, and what else is known about hosted models: a reading of `prices.toml`."""

from __future__ import annotations

import re
import tomllib
from functools import cache
from pathlib import Path
from typing import Any

from attrs import field, frozen

from agent_ls.models.protocol import Usage

_DATED = re.compile(r"-(\d{8}|\d{4}-\d{2}-\d{2}|latest)$")


@frozen
class Rates:
    """USD per million tokens."""

    input: float
    output: float
    cached: float
    cache_write: float = field()

    @cache_write.default
    def _as_input(self) -> float:
        return self.input


@frozen
class HostedModel:
    """A hosted model's prices (`long_rates` for prompts over `long_over` tokens) and window in tokens.

    `rates` is None where no public document says what it costs.
    """

    rates: Rates | None
    window: int
    reasoning: bool = False
    long_over: int | None = None
    long_rates: Rates | None = None


@cache
def _table() -> dict[str, HostedModel]:
    raw = tomllib.loads((Path(__file__).parent / "prices.toml").read_text(encoding="utf-8"))
    return {
        f"{provider}:{name}": _entry(dict(data))
        for provider in ("anthropic", "openai")
        for name, data in raw[provider].items()
    }


def _entry(data: dict[str, Any]) -> HostedModel:
    window, reasoning = data.pop("window"), data.pop("reasoning", False)
    long = dict(data.pop("long", {}))
    over = long.pop("over", None)
    rates = Rates(**data) if data else None
    return HostedModel(rates, window, reasoning, over, Rates(**long) if long else None)


def hosted_model(model: str) -> HostedModel | None:
    """What is known about `anthropic:…` or `openai:…`; None if nothing."""
    table = _table()
    return table.get(model) or table.get(_DATED.sub("", model))


def price(model: str, usage: Usage, *, cache_write_tokens: int = 0) -> float | None:
    """USD for one call's usage; 0.0 for local models, `repair` and replays, None if the price is unknown.

    `cache_write_tokens` are those of `usage.input_tokens` that were written to the provider's cache.
    """
    if model == "repair" or model.startswith(("local:", "replay:")):
        return 0.0
    known = hosted_model(model)
    if known is None or known.rates is None:
        return None
    rates = known.rates
    if known.long_rates is not None and known.long_over is not None and usage.input_tokens > known.long_over:
        rates = known.long_rates
    fresh = max(0, usage.input_tokens - usage.cached_tokens - cache_write_tokens)
    total = (
        fresh * rates.input
        + usage.cached_tokens * rates.cached
        + cache_write_tokens * rates.cache_write
        + usage.output_tokens * rates.output
    )
    return total / 1_000_000
