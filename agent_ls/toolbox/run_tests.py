"""run_tests: run tests and report each outcome against the state before the first edit."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from attrs import frozen

from agent_ls.toolbox.base import ToolContext, ToolOutput


@frozen
class Arguments:
    ids: tuple[str, ...] = ()


def run(ctx: ToolContext, arguments: Mapping[str, Any]) -> ToolOutput:
    """Raises what the session's test run raises (EnvBroken, Cancelled, ToolRefused for unknown ids)."""
    asked = Arguments(**arguments)
    return ctx.run_tests(tuple(asked.ids))
