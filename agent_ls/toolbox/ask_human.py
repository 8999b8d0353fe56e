"""ask_human: put a question to the person who started the session."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from attrs import frozen

from agent_ls.toolbox.base import ToolContext, ToolOutput


@frozen
class Arguments:
    question: str


def run(ctx: ToolContext, arguments: Mapping[str, Any]) -> ToolOutput:
    """The answer, or that there is none. Raises Cancelled."""
    asked = Arguments(**arguments)
    answer = ctx.ask_human(asked.question)
    if answer is None:
        return ToolOutput("Nobody answered. Take the safest reading of the task and go on, or finish.")
    return ToolOutput(f"The answer: {answer}")
