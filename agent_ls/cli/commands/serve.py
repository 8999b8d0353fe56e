"""`agent-ls serve`: the language server."""

from __future__ import annotations

import sys

import click

from agent_ls.errors import UsageError


@click.command()
@click.option("--stdio", is_flag=True, help="Over standard input and output (the default).")
@click.option("--tcp", metavar="HOST:PORT", help="Wait for one client on this address.")
@click.option("--ws", metavar="HOST:PORT", help="The same, over a WebSocket.")
@click.option("--clientProcessId", "client_process", metavar="PID", hidden=True)
def serve(stdio: bool, tcp: str | None, ws: str | None, client_process: str | None) -> int:
    """Run the language server, for an editor to talk to."""
    if (stdio, tcp is not None, ws is not None).count(True) > 1:
        raise UsageError("--stdio, --tcp and --ws exclude each other", "Give one of them, or none for stdio.")

    from agent_ls.lsp.serve import serve_stdio, serve_tcp, serve_websocket

    def ready(line: str) -> None:
        sys.stderr.write(f"{line}\n")
        sys.stderr.flush()

    if tcp is not None:
        serve_tcp(tcp, ready)
    if ws is not None:
        serve_websocket(ws, ready)
    if sys.stdin is not None and sys.stdin.isatty():
        ready("waiting for an editor's messages on standard input; Ctrl-C ends it")
    serve_stdio()
