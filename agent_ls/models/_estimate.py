"""Token counts without a tokenizer."""

from __future__ import annotations

import math

from agent_ls.models.protocol import Request

_CHARS_PER_TOKEN = 3.2


def estimate_tokens(text: str) -> int:
    """Tokens of `text`, rather too many than too few.

    Code and English take 3.3 to 4.5 characters a token with today's vocabularies; 3.2 leaves a margin.
    Other scripts take about one token per character or more, counted here as one per UTF-8 byte pair.
    """
    if text.isascii():
        return math.ceil(len(text) / _CHARS_PER_TOKEN)
    plain = sum(character.isascii() for character in text)
    rest = len(text.encode("utf-8", "replace")) - plain
    return math.ceil(plain / _CHARS_PER_TOKEN + rest / 2)


def estimate_request(request: Request) -> int:
    """Tokens of a whole request: messages, calls and tool schemas, with a few for each one's framing."""
    total = 8
    for message in request.messages:
        total += 6 + estimate_tokens(message.content)
        total += sum(10 + estimate_tokens(f"{call.name}{call.arguments}") for call in message.tool_calls)
    return total + sum(12 + estimate_tokens(f"{t.name}{t.description}{t.parameters}") for t in request.tools)
