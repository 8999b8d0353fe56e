"""finish: end the work with a claim, which the session then checks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from attrs import frozen

from agent_ls.toolbox.base import Claim, ToolContext, ToolOutput


@frozen
class Arguments:
    outcome: Literal["fixed", "tests_contradict", "give_up"]
    summary: str
    evidence: str = ""
    contradictions: tuple[Claim, ...] = ()


def run(ctx: ToolContext, arguments: Mapping[str, Any]) -> ToolOutput:
    """Raises what the session's final check raises."""
    claims = tuple(Claim(**item) for item in arguments.get("contradictions", ()))
    asked = Arguments(**{**arguments, "contradictions": claims})
    return ctx.finish(asked.outcome, asked.summary, asked.evidence, asked.contradictions)
