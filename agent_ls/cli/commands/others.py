"""`agent-ls acp` and `agent-ls mcp`: other protocols on standard input and output."""

from __future__ import annotations

import click

from agent_ls.cli.options import Context, common_reading


@click.command()
def acp() -> int:
    """Speak the Agent Client Protocol, for an editor's agent panel."""
    from agent_ls.acp.serve import serve

    return serve()


@click.command()
@common_reading
def mcp(**given: object) -> int:
    """Serve search, symbols, tests, locate and guard to another agent (Model Context Protocol)."""
    context = Context.of(given)
    from agent_ls.mcp.serve import serve

    return serve(context.repository().root, context.overrides)
