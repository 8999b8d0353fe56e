"""Starting a server on one of the three transports, to its end."""

from __future__ import annotations

import asyncio
import logging
import os
import sys
from collections.abc import Awaitable, Callable
from typing import NoReturn

from agent_ls.lsp.features import create_server
from agent_ls.lsp.server import Server
from agent_ls.lsp.stdio import claim_stdio
from agent_ls.lsp.transport import LOOPBACK, Connection, Pipes, accept_tcp, accept_websocket, split_address

_Close = Callable[[], Awaitable[None]]


def serve_stdio() -> NoReturn:
    """Serve a client on standard input and output. Ends the process, with the exit code of the protocol."""
    read, write = claim_stdio()

    async def connect(server: Server) -> _Close:
        return _use(server, Connection(Pipes(read, write), server.receive, server.lost))

    _run(connect)


def serve_tcp(address: str, ready: Callable[[str], None]) -> NoReturn:
    """Serve the first client that connects to HOST:PORT, and end the process. `ready` is told a line for a
    person. Raises UsageError when it can't listen there."""
    host, port = split_address(address)

    async def connect(server: Server) -> _Close:
        channel = await accept_tcp(host, port, lambda at, on: ready(_listening("tcp", at, on)))
        return _use(server, Connection(channel, server.receive, server.lost))

    _run(connect)


def serve_websocket(address: str, ready: Callable[[str], None]) -> NoReturn:
    """As `serve_tcp`, for a WebSocket."""
    host, port = split_address(address)

    async def connect(server: Server) -> _Close:
        connection, listener = await accept_websocket(
            host, port, lambda at, on: ready(_listening("ws", at, on)), server.receive, server.lost
        )
        server.connected(connection)

        async def close() -> None:
            await connection.finish()
            listener.close()

        return close

    _run(connect)


def _use(server: Server, connection: Connection) -> _Close:
    server.connected(connection)

    async def close() -> None:
        connection.close()

    return close


def _listening(scheme: str, host: str, port: int) -> str:
    shown = f"[{host}]" if ":" in host else host
    text = f"listening on {scheme}://{shown}:{port}, for one client"
    if host not in LOOPBACK:
        text += "\nWARNING: whoever reaches this address can read the workspace and run its tests"
    return text


def _run(connect: Callable[[Server], Awaitable[_Close]]) -> NoReturn:
    logging.basicConfig(
        level=os.environ.get("AGENT_LS_LOG", "WARNING").upper(),
        stream=sys.stderr,
        format="%(asctime)s %(levelname)s %(name)s: %(message)s",
    )
    if logging.getLogger().level > logging.DEBUG:
        logging.getLogger("pygls").setLevel(logging.CRITICAL)  # it logs a traceback for each wrong request

    async def main() -> NoReturn:
        server = create_server()
        server.begin()
        connecting = asyncio.ensure_future(connect(server))
        stopped = asyncio.ensure_future(server.ended.wait())
        await asyncio.wait({connecting, stopped}, return_when=asyncio.FIRST_COMPLETED)
        close = await connecting if connecting.done() else None  # raises what prevented it
        await stopped
        await asyncio.to_thread(server.finish)
        if close is not None:
            await close()
        sys.stderr.flush()
        # threads that hang (a stuck disk, a model's native code) must not keep the process
        os._exit(server.exit_code)

    asyncio.run(main())
    raise AssertionError
