"""What the server answers: one module for each group of protocol methods, thin, converting at the edge."""

from __future__ import annotations

from agent_ls.lsp.features import (
    commands,
    diagnostics,
    lifecycle,
    offers,
    previews,
    streaming,
    symbols,
    syncing,
)
from agent_ls.lsp.server import Server


def create_server() -> Server:
    """A server with all its handlers, not yet connected. Needs a running event loop only from `begin` on."""
    server = Server()
    for module in (lifecycle, syncing, symbols):
        module.register(server)
    streams = streaming.Streams(server)
    streaming.register(server, streams)
    previews.register(server, streams)
    shown = diagnostics.Diagnostics(server)
    diagnostics.register(server, shown)
    offers.register(server, shown)
    commands.register(server, streams, shown)
    return server
