"""finish: end the work with a claim, which the session then checks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from attrs import frozen

from agent_ls.toolbox.base import ToolContext, ToolOutput


@frozen
class Arguments:
    outcome: Literal["fixed", "tests_contradict", "give_up"]
    summary: str
    evidence: str = ""


def run(ctx: ToolContext, arguments: Mapping[str, Any]) -> ToolOutput:
    """Raises what the session's final check raises."""
    asked = Arguments(**arguments)
    return ctx.finish(asked.outcome, asked.summary, asked.evidence)
