"""locate: the places that the failing tests point at, most suspicious first."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from attrs import frozen

from agent_ls.toolbox.base import ToolContext, ToolOutput


@frozen
class Arguments:
    """No arguments."""


def run(ctx: ToolContext, arguments: Mapping[str, Any]) -> ToolOutput:
    """Raises what the session's fault localisation raises (Cancelled, EnvBroken)."""
    Arguments(**arguments)
    return ctx.locate()
